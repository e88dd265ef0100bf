"""The tool `read`: a file's text with line numbers, or an image; it reports which lines of which content it showed."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any

from msgspec import Meta

from onward.errors import ToolFailed
from onward.model.messages import Image, Text
from onward.runtime.tools.paths import place, read_bytes, touching
from onward.runtime.tools.tool import Tool, ToolContext, ToolOutput, tool

LINES = 2_000
"""Lines that a reading shows unless asked for fewer."""

SHOWN = 64 * 1024
"""Characters that a reading shows at most: about 16,000 tokens of prose."""

LINE = 2_000
"""Characters of one line that are shown."""

IMAGE = 5 * 1024 * 1024
"""Bytes of an image: what Anthropic takes at most."""

TIMEOUT = 60.0
"""Seconds; for file systems that do not answer."""

_SNIFF = 8_192
_IMAGES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A file's text.

    Attributes:
        encoding: that it was read with.
        mark: its byte order mark, which is not part of the text.
        broken: how many places were no text in that encoding; the text has U+FFFD there.
    """

    text: str
    encoding: str
    mark: bytes
    broken: int


def decode(data: bytes) -> Decoded | None:
    """A file's bytes as text; None where they are binary: a NUL byte near the start, and no mark of UTF-16."""
    mark, encoding = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    if encoding == "utf-8" and b"\0" in data[:_SNIFF]:
        return None
    body = data[len(mark) :]
    try:
        return Decoded(body.decode(encoding), encoding, mark, 0)
    except UnicodeDecodeError:
        text = body.decode(encoding, "replace")
        own = body.decode(encoding, "ignore").count("\ufffd")  # such characters that are really there
        return Decoded(text, encoding, mark, text.count("\ufffd") - own)


def split_lines(text: str) -> list[str]:
    """The lines of a text, ended by LF (a CR before it is not part of a line); a last end makes no empty line."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def image_type(data: bytes) -> str | None:
    """The media type of an image that models take, by its first bytes."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _IMAGES if data.startswith(start)), None)


def read_tool(*, allow_outside: bool = False) -> Tool:
    """The tool `read`. `allow_outside`: it may read outside of the session's directory."""

    @tool(effect="read", timeout=TIMEOUT, touches=touching(allow_outside))
    def read(
        path: str,
        context: ToolContext,
        offset: Annotated[int, Meta(ge=1)] = 1,
        limit: Annotated[int, Meta(ge=1, le=LINES)] = LINES,
    ) -> ToolOutput:
        """Read a text file, with line numbers, or look at an image (PNG, JPEG, GIF, WebP).

        Args:
            path: relative to the working directory.
            offset: the first line to show, from 1.
            limit: how many lines to show.
        """
        where = place(context.cwd, path, allow_outside=allow_outside)
        data = read_bytes(where)
        looked: dict[str, Any] = {"path": where.shown, "sha256": sha256(data).hexdigest(), "bytes": len(data)}
        media_type = image_type(data)
        if media_type is not None:
            return _image(where.shown, data, media_type, looked, context)
        decoded = decode(data)
        if decoded is None:
            raise ToolFailed(f"{where.shown} is a binary file of {len(data):,} bytes; there is no text to show.")
        return _text(where.shown, decoded, looked, offset, limit)

    return read


def _image(shown: str, data: bytes, media_type: str, looked: dict[str, Any], context: ToolContext) -> ToolOutput:
    if len(data) > IMAGE:
        raise ToolFailed(f"{shown} is an image of {len(data):,} bytes; models take at most {IMAGE:,}.")
    if context.session is None:
        raise ToolFailed(f"{shown} is an image, and there is no session to keep it in.")
    digest = context.session.put_blob(data)
    block = Image(media_type=media_type, sha256=digest, size=len(data))
    return ToolOutput([Text(f"{shown}: {media_type}, {len(data):,} bytes"), block], data={"looked": [looked]})


def _text(shown: str, decoded: Decoded, looked: dict[str, Any], offset: int, limit: int) -> ToolOutput:
    lines = split_lines(decoded.text)
    total = len(lines)
    if total == 0:
        return ToolOutput(f"({shown} is empty)", data={"looked": [{**looked, "lines": [0, 0], "of": 0}]})
    if offset > total:
        raise ToolFailed(f"{shown} has {total} lines; there is no line {offset}.")
    out: list[str] = []
    room, cut = SHOWN, 0
    for number, line in enumerate(lines[offset - 1 : offset - 1 + limit], offset):
        if len(line) > LINE:
            line, cut = f"{line[:LINE]}… [{len(line) - LINE:,} more characters]", cut + 1
        row = f"{number}\t{line}"
        room -= len(row) + 1
        if room < 0 and out:
            break
        out.append(row)
    last = offset + len(out) - 1
    notes = []
    if last < total:
        notes.append(f"lines {offset} to {last} of {total}; go on with offset {last + 1}")
    if cut:
        notes.append(f"{cut} long lines are cut at {LINE:,} characters")
    if decoded.broken:
        notes.append(f"{decoded.broken} places are no {decoded.encoding} and shown as \ufffd; do not edit those lines")
    if decoded.encoding != "utf-8":
        notes.append(f"the encoding is {decoded.encoding}")
    if "\r\n" in decoded.text:
        notes.append("lines end in CRLF")
    text = "\n".join([*out, *(f"[{note}]" for note in notes)])
    return ToolOutput(text, data={"looked": [{**looked, "lines": [offset, last], "of": total}]})
