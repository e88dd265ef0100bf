"""What imported events say beyond their own session: the names that lines have there, and titles given to such lines.

Claude Code keeps a conversation's summary in whatever file is written next, under the uuid of the line that it ends in.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from onward.model.event import Header, Origin

LINKING = frozenset({"claude-code"})
"""Foreign formats whose files give titles to lines of each other."""

SUMMARY = "claude-code.summary"
"""The type of a record that gives a title to a line that its own file does not have before it."""


class Told(NamedTuple):
    """A title for the session that holds a line: the line's foreign name, and the title on one line."""

    line: str
    title: str


def links(header: Header) -> bool:
    """Whether a session's own events may be named, or give titles, elsewhere."""
    return isinstance(header.origin, Origin) and header.origin.format in LINKING


def name_of(data: Any) -> str | None:
    """The name that an imported event's line has in its format; None for one without.

    Args:
        data: the event's, as stored. An event with a meaning of ours keeps the name in `meta`.
    """
    if type(data) is not dict:
        return None
    meta = data.get("meta")
    for place in (meta, data):
        if type(place) is dict and type(place.get("uuid")) is str:
            return str(place["uuid"])
    return None


def told(type_: str, data: Any) -> Told | None:
    """The title that an imported event gives to a line of whatever session; None for other events.

    Args:
        type_: the event's type.
        data: its data with blobs fetched.
    """
    if type_ != SUMMARY or type(data) is not dict:
        return None
    line, summary = data.get("leafUuid"), data.get("summary")
    title = " ".join(summary.split()) if type(summary) is str else ""
    return Told(line, title) if type(line) is str and title else None
