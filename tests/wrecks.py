"""A store of files whose logs tests damage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from builders import header
from onward.log import opening
from onward.log.jsonl_backend import JsonlBackend
from onward.log.protocol import LogWriter
from onward.log.salvage import Salvaged, salvage
from onward.model.event import Cut, Draft, Event, Header


class Store:
    """Sessions in files below a folder."""

    def __init__(self, home: Path) -> None:
        self.backend = JsonlBackend(home)

    def create(self, head: Header, *drafts: Draft) -> list[Event]:
        """Make a session with these events, each appended alone."""
        inherited = None
        if isinstance(head.parent, Cut):
            inherited = opening.inherited_state(self.backend, head.parent, None)
        log = opening.create(self.backend, head, clock=lambda: 2_000, sync="never", inherited=inherited)
        try:
            return [log.append([draft], native=False)[0] for draft in drafts]
        finally:
            log.close()

    def fork(self, session: str, event: Event, id_: str, *drafts: Draft) -> list[Event]:
        """Fork a session behind an event."""
        return self.create(header(id_, parent=Cut(session, event.seq, event.hash)), *drafts)

    def folder(self, session: str) -> Path:
        return self.log(session).parent

    def log(self, session: str) -> Path:
        path = self.backend.locate(session).path
        assert path is not None
        return path

    def edit(self, session: str, change: Callable[[bytes], bytes]) -> None:
        """Change a log's bytes in place."""
        path = self.log(session)
        path.write_bytes(change(path.read_bytes()))

    def edit_lines(self, session: str, change: Callable[[list[bytes]], None]) -> None:
        """Change the list of a log's lines (each with its newline) in place."""
        path = self.log(session)
        lines = path.read_bytes().splitlines(keepends=True)
        change(lines)
        path.write_bytes(b"".join(lines))

    def events(self, session: str) -> list[Event]:
        """All events of a session, inherited ones as well, opened, verified and folded as by any reader."""
        log = opening.read(self.backend, session, catalogue=None, clock=lambda: 0)
        try:
            return list(log.chain.events())
        finally:
            log.close()

    def salvage(self, session: str, new: str = "new") -> Salvaged:
        def put_new(head: Header) -> LogWriter:
            return self.backend.create(msgspec.structs.replace(head, id=new, created=3_000), sync="never")

        return salvage(self.backend, session, put_new)
