"""The tools `write` and `edit`: files put in place whole, and a probe that tells afterwards whether that happened.

Before a call is logged, the content that is there and the content that will be are hashed. After a crash the file is
one or the other, because it is written beside and renamed; anything else was somebody else's doing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Annotated, Any

from msgspec import Meta

from onward.errors import ToolFailed
from onward.log.files import fsync, token, write_all
from onward.runtime.tools.paths import Place, fingerprint, parent_of, place, read_bytes, saying, touching
from onward.runtime.tools.reading import decode
from onward.runtime.tools.tool import Probe, Probed, Tool, ToolContext, ToolOutput, tool


def write_tool(*, allow_outside: bool = False) -> Tool:
    """The tool `write`. `allow_outside`: it may write outside of the session's directory."""

    def prepare(arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        where = place(context.cwd, arguments["path"], allow_outside=allow_outside)
        before = fingerprint(where)
        _check_seen(where, before, context)
        return _evidence(where, before, arguments["content"].encode())

    @tool(
        effect="verifiable",
        prepare=prepare,
        probe=_probe(allow_outside),
        touches=touching(allow_outside),
    )
    def write(path: str, content: str, context: ToolContext) -> ToolOutput:
        """Write a whole text file. What was in it is gone; missing directories are made. To change a part, use edit.

        Args:
            path: relative to the working directory.
            content: the whole new text, in UTF-8.
        """
        where = place(context.cwd, path, allow_outside=allow_outside)
        data = content.encode()
        before = _expected(where, context, data)
        put(where, data)
        what = "created" if before is None else "rewritten"
        return ToolOutput(f"{where.shown} {what}: {len(data):,} bytes.", data=_changed(where, before, data))

    return write


def edit_tool(*, allow_outside: bool = False) -> Tool:
    """The tool `edit`. `allow_outside`: it may edit outside of the session's directory."""

    def edited(arguments: dict[str, Any], context: ToolContext) -> tuple[Place, str, bytes, int]:
        where = place(context.cwd, arguments["path"], allow_outside=allow_outside)
        data = read_bytes(where)
        before = sha256(data).hexdigest()
        _check_seen(where, before, context)
        after, count = replaced(
            where.shown, data, arguments["old"], arguments["new"], everywhere=bool(arguments.get("all"))
        )
        return where, before, after, count

    def prepare(arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        where, before, after, _ = edited(arguments, context)
        return _evidence(where, before, after)

    @tool(
        effect="verifiable",
        prepare=prepare,
        probe=_probe(allow_outside),
        touches=touching(allow_outside),
    )
    def edit(
        path: str, old: Annotated[str, Meta(min_length=1)], new: str, context: ToolContext, all: bool = False
    ) -> ToolOutput:
        """Replace a piece of a text file by another.

        Args:
            path: relative to the working directory.
            old: the text to replace, exactly as it is in the file (without line numbers). It must occur once, so give
                enough of what is around it.
            new: what to put there.
            all: replace every occurrence instead.
        """
        where, before, after, count = edited({"path": path, "old": old, "new": new, "all": all}, context)
        _expected(where, context, after, before)
        put(where, after)
        times = "1 replacement" if count == 1 else f"{count} replacements"
        return ToolOutput(f"{where.shown} edited: {times}.", data=_changed(where, before, after))

    return edit


def replaced(shown: str, data: bytes, old: str, new: str, *, everywhere: bool) -> tuple[bytes, int]:
    """A file's bytes with a piece of text replaced, and how often.

    In a file whose lines end in CRLF, line ends in `old` and `new` count as CRLF.

    Raises:
        ToolFailed: the file is no text, `old` does not occur or occurs more than once, or nothing would change.
    """
    decoded = decode(data)
    if decoded is None:
        raise ToolFailed(f"{shown} is a binary file; it was not edited.")
    if decoded.broken:
        raise ToolFailed(f"{shown} is no valid {decoded.encoding}; it was not edited, because that would damage it.")
    if old == new:
        raise ToolFailed(f"`old` and `new` are the same; {shown} was not edited.")
    if old not in decoded.text and "\r\n" in decoded.text and "\r" not in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    places = [] if everywhere else _occurrences(decoded.text, old)
    count = decoded.text.count(old)  # of those that do not overlap
    if count == 0:
        raise ToolFailed(f"`old` does not occur in {shown}; it was not edited. Read the file, and give the exact text.")
    if len(places) > 1 and not everywhere:
        lines = [decoded.text.count("\n", 0, at) + 1 for at in places]
        named = ", ".join(map(str, lines[:10])) + (", …" if len(lines) > 10 else "")
        raise ToolFailed(
            f"`old` occurs {len(places)} times in {shown} (lines {named}); it was not edited. "
            "Give more of what is around the one that you mean, or set `all`."
        )
    return decoded.mark + decoded.text.replace(old, new).encode(decoded.encoding), count


def put(where: Place, data: bytes) -> None:
    """Put a file in place at once, on disk when this returns. One that is there keeps its mode.

    Raises:
        ToolFailed: it cannot be written; what was there is untouched.
    """
    with saying(where), parent_of(where, make=True) as (folder, name):
        mode = _mode(folder, name, where.shown)
        beside = f".{name[:200]}.{token(6)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(beside, flags, 0o666, dir_fd=folder)
        try:
            try:
                write_all(fd, data)
                if mode is not None:
                    os.fchmod(fd, mode)
                fsync(fd)
            finally:
                os.close(fd)
            os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):  # the first failure is the one to report
                os.unlink(beside, dir_fd=folder)
            raise
        fsync(folder)


def _mode(folder: int, name: str, shown: str) -> int | None:
    """The mode of the file that is there, or None. Raises ToolFailed where it is none, or may not be written."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise ToolFailed(f"{shown} is no regular file; it was not written.")
    if not os.access(name, os.W_OK, dir_fd=folder):
        raise ToolFailed(f"{shown} may not be written: permission denied.")
    return stat.S_IMODE(found.st_mode)


def _check_seen(where: Place, now: str | None, context: ToolContext) -> None:
    seen = context.seen.get(where.shown)
    if seen is not None and now is not None and now != seen:
        raise ToolFailed(f"{where.shown} has changed since it was last read here; it was not touched. Read it again.")


def _evidence(where: Place, before: str | None, after: bytes) -> dict[str, Any]:
    return {"path": where.shown, "before": before, "after": sha256(after).hexdigest()}


def _expected(where: Place, context: ToolContext, after: bytes, now: str | None = None) -> str | None:
    """The sha256 of what is there, once it is sure that this call's evidence still holds."""
    found = fingerprint(where) if now is None else now
    if context.evidence and (
        found != context.evidence["before"] or sha256(after).hexdigest() != context.evidence["after"]
    ):
        raise ToolFailed(f"{where.shown} changed while this call was being started; it was not touched. Read it again.")
    return found


def _changed(where: Place, before: str | None, after: bytes) -> dict[str, Any]:
    return {"changed": [{**_evidence(where, before, after), "bytes": len(after)}]}


def _probe(allow_outside: bool) -> Probe:
    def probe(arguments: dict[str, Any], evidence: Mapping[str, Any], context: ToolContext) -> Probed:
        if "after" not in evidence:
            return Probed("unknown", "it was not recorded what the file was to become")
        where = place(context.cwd, arguments["path"], allow_outside=allow_outside)
        now = fingerprint(where)
        said = f"{where.shown} is {'absent' if now is None else f'sha256 {now}'}"
        if now == evidence["after"]:
            return Probed("applied", f"{said}, as it was to become")
        if now == evidence["before"]:
            return Probed("not-applied", f"{said}, as it was before")
        return Probed("unknown", f"{said}: neither what it was before nor what it was to become")

    return probe


def _occurrences(text: str, piece: str) -> list[int]:
    """Where a piece begins in a text, also where it overlaps itself."""
    places, at = [], text.find(piece)
    while at >= 0:
        places.append(at)
        at = text.find(piece, at + 1)
    return places
