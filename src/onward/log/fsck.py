"""Checking: everything that can be wrong with a stored session, found without touching it.

Problem kinds that are damage, so that `ok` is False:

* `header`: the first line is missing, damaged or another session's; `unsupported`: a newer format (upgrade);
  `unreadable`: the disk would not give the bytes
* `line`: no event, or its line break is damaged; `hash`: the hash does not fit; `gap`: events are missing;
  `order`: a line out of place; `duplicate`: a line twice; `rule`: an event that the log's rules refuse
* `parent`: what a fork inherits is gone, damaged or another; `blob`: a blob is missing, altered or of another size

Kinds that are not, since nothing that was acknowledged depends on them: `torn` (bytes behind the last newline, which
the next writer sets aside), `index` and `lock` (files that are made anew), `leftover` (files of interrupted work).
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import UNSET, Struct, field

from onward.errors import BlobMissing, NotFound, Refused, StorageFailed
from onward.log.backend import Backend, Blobs
from onward.log.lineage import Prefix, opened, survey
from onward.log.lock import Content
from onward.log.mend import Mender
from onward.log.references import may_refer, walk
from onward.log.survey import Survey
from onward.log.wreck import Flaw, Kept
from onward.model.event import SourceFile, decode_event

BENIGN = frozenset({"torn", "index", "lock", "leftover"})
"""Problem kinds that are no damage."""

_OURS = frozenset({"log.jsonl", "log.idx", "writer.lock", "inbox", "blobs"})


class Problem(Struct, frozen=True):
    """Something wrong with a session.

    Attributes:
        session: whose.
        kind: see the module.
        line: 1-based physical line of the log, None where it is about no line.
        seq: the event that is, or should be, there; None likewise.
        offset: bytes from the start of the log to that line; None likewise.
        message: what is wrong, for people.
    """

    session: str
    kind: str
    line: int | None
    seq: int | None
    offset: int | None
    message: str


class Report(Struct, frozen=True):
    """What a check found.

    Attributes:
        ok: there is no damage (problems of the kinds in `BENIGN` are none).
        checked: how many sessions were looked at.
        problems: everything that is wrong, by session, in order of the file.
    """

    ok: bool
    checked: int
    problems: list[Problem] = field(default_factory=list)


def check(backend: Backend, session: str) -> Report:
    """Look at every byte of a session, in the trash or not. Nothing is changed.

    Raises:
        NotFound, InvalidId.
    """
    problems = _Check(backend, session).run()
    return Report(ok=all(problem.kind in BENIGN for problem in problems), checked=1, problems=problems)


def check_all(backend: Backend, progress: Callable[[str], None] | None = None) -> Report:
    """Look at every session, those in the trash included (forks may rest on them).

    Args:
        progress: called with each session's id before it is looked at.
    """
    problems: list[Problem] = []
    checked = 0
    for where in (*backend.sessions(), *backend.trashed()):
        if progress is not None:
            progress(where.id)
        with suppress(NotFound):  # Deleted for good, or moved, since it was listed.
            problems += check(backend, where.id).problems
            checked += 1
    return Report(ok=all(problem.kind in BENIGN for problem in problems), checked=checked, problems=problems)


class _Check:
    """One session's check."""

    def __init__(self, backend: Backend, session: str) -> None:
        self._backend, self._session = backend, session
        self._flaws: list[Flaw] = []
        self._blobs: Blobs = backend.blobs(session, trashed=True)
        self._sizes: dict[str, int | str] = {}

    def run(self) -> list[Problem]:
        try:
            with opened(self._backend, self._session) as where:
                # The index before the log: a live writer may add to both meanwhile.
                index = _read_index(where.folder)
                looked = survey(where, self._session)
                self._events(looked, index)
                self._flaws += looked.flaws
                if not looked.unsupported:
                    self._header(looked)
                    if where.folder is not None:
                        self._flaws += _folder(where.folder)
        except StorageFailed as error:
            self._flaws.append(Flaw("unreadable", None, None, error.where.get("offset"), error.message))
        self._flaws.sort(key=lambda flaw: (sys.maxsize if flaw.offset is None else flaw.offset, flaw.kind != "header"))
        return [Problem(self._session, *flaw) for flaw in self._flaws]

    def _events(self, looked: Survey, index: array[int] | None) -> None:
        mender: Mender | None = None
        wrong_index = False
        for kept in looked.lines():
            if mender is None:
                mender = self._inherited(looked)
            while mender.state.next_seq < kept.seq:
                mender.lose()
            try:
                mender.take(kept.raw)
            except msgspec.DecodeError as error:
                self._at(kept, "line", f"the line is no event: {error}")
                mender.lose()
            except Refused as error:
                # After a loss an event may only seem to break a rule; what was lost has been reported.
                if not mender.lossy:
                    self._at(kept, "rule", f"the event breaks a rule of the log: {error.message}")
                mender.lose()
            if may_refer(kept.raw):
                self._references(kept)
            at = kept.seq - looked.first_seq
            if index is not None and not wrong_index and at < len(index) and index[at] != kept.offset:
                wrong_index = not looked.damaged  # A good index may disagree with a damaged log.
                if wrong_index:
                    self._at(kept, "index", f"log.idx says that the line is at byte {index[at]}")
        if mender is None and not looked.unsupported:
            self._inherited(looked)
        if index is not None and not looked.flaws and not wrong_index:
            count = looked.next_seq - looked.first_seq
            if len(index) > count:
                self._flaws.append(
                    Flaw("index", None, None, None, f"log.idx has {len(index)} entries for {count} lines")
                )

    def _inherited(self, looked: Survey) -> Mender:
        prefix = Prefix(self._backend, looked.header, looked.first_seq)
        cut = looked.header.parent if looked.header is not None else UNSET
        if cut is not UNSET:
            self._flaws += [Flaw("parent", 1, cut.seq, 0, problem) for problem in prefix.problems]
        return prefix.mender

    def _header(self, looked: Survey) -> None:
        origin = looked.header.origin if looked.header is not None else UNSET
        if origin is not UNSET:
            for file in origin.files:
                self._source_file(file, 1, None, 0)

    def _references(self, kept: Kept) -> None:
        try:
            event = decode_event(kept.raw)
        except msgspec.DecodeError:
            return  # Reported by the fold.
        complaints: list[str] = []

        def look(name: str, size: int | None) -> bool:
            complaint = self._blob(name, size)
            if complaint is not None:
                complaints.append(complaint)
            return False

        walk(event.type, event.data, look)
        if event.type == "import" and not complaints:
            for file in msgspec.convert(event.data["files"], list[SourceFile]):
                self._source_file(file, kept.line, kept.seq, kept.offset)
        self._flaws += [Flaw("blob", kept.line, kept.seq, kept.offset, text) for text in dict.fromkeys(complaints)]

    def _blob(self, name: str, size: int | None = None) -> str | None:
        """What is wrong with a blob; None if nothing."""
        if name not in self._sizes:
            try:
                self._sizes[name] = len(self._blobs.get(name))
            except BlobMissing as error:
                self._sizes[name] = error.message
        found = self._sizes[name]
        if isinstance(found, str):
            return found
        if size is not None and size != found:
            return f"the blob {name} has {found} bytes, not {size}"
        return None

    def _source_file(self, file: SourceFile, line: int, seq: int | None, offset: int) -> None:
        """An imported file: its blobs, and that they are its bytes together."""
        complaints = [text for name in file.blobs if (text := self._blob(name)) is not None]
        if not complaints:
            digest, total = sha256(), 0
            for name in file.blobs:
                data = self._blobs.get(name)
                digest.update(data)
                total += len(data)
            if total != file.bytes or digest.hexdigest() != file.sha256:
                complaints = [f"the blobs of the imported file {file.path} are not its {file.bytes} bytes"]
        self._flaws += [Flaw("blob", line, seq, offset, text) for text in dict.fromkeys(complaints)]

    def _at(self, kept: Kept, kind: str, message: str) -> None:
        self._flaws.append(Flaw(kind, kept.line, kept.seq, kept.offset, message))


def _read_index(folder: Path | None) -> array[int] | None:
    """The entries of `log.idx`, None where there is none."""
    if folder is None:
        return None
    try:
        raw = (folder / "log.idx").read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageFailed(f"could not read log.idx: {error.strerror}") from error
    index: array[int] = array("Q")
    index.frombytes(raw[: len(raw) // 8 * 8])
    if sys.byteorder == "big":
        index.byteswap()
    return index


def _folder(folder: Path) -> Iterator[Flaw]:
    """What is wrong with the files beside the log."""
    with suppress(FileNotFoundError):
        try:
            msgspec.json.decode((folder / "writer.lock").read_bytes(), type=Content)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            yield Flaw("lock", None, None, None, f"writer.lock says nothing that a writer wrote: {error}")
    for path in sorted(folder.iterdir()):
        if path.name not in _OURS and not path.name.startswith(("log.torn-", "log.v")):
            yield Flaw("leftover", None, None, None, f"{path.name} is none of the session's files")
    for name in ("blobs", "inbox"):
        with suppress(FileNotFoundError):
            for path in sorted((folder / name).iterdir()):
                if path.name.startswith("."):
                    yield Flaw("leftover", None, None, None, f"{name}/{path.name} is of an interrupted write")
