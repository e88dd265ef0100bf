"""The tool `read_tool_result`: what an earlier call gave back, where the context has only a part of it or a pointer."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from onward.context.results import READ_CAP, Result, page, search
from onward.errors import BlobMissing, NotFound, Refused, ToolFailed
from onward.runtime.tools.tool import Tool, ToolContext, ToolOutput, tool
from onward.session import Session


def read_tool_result_tool() -> Tool:
    """The tool `read_tool_result`."""

    @tool(effect="read")
    def read_tool_result(
        call: Annotated[str, Meta(min_length=1)],
        context: ToolContext,
        offset: Annotated[int, Meta(ge=0)] = 0,
        limit: Annotated[int, Meta(ge=-1)] = -1,
        search: str | None = None,
    ) -> ToolOutput:
        """Read what an earlier tool call gave back. It is what was recorded then; nothing is run again.

        Args:
            call: the id of the call, or its number.
            offset: the first character to show, from 0; with search, where to look from.
            limit: how many characters to show; -1 for as many as one answer may have.
            search: instead, show the places where this text occurs.
        """
        if context.session is None:
            raise ToolFailed("There is no session to read from.")
        found = _find(context.session, call)
        return _page(found, offset, limit) if search is None else _places(found, search, offset)

    return read_tool_result


def _find(session: Session, call: str) -> Result:
    """The result of a call by its id; else, where that is a number, by its seq. Raises ToolFailed."""
    try:
        try:
            return session.find_result(call)
        except NotFound:
            if not (call.isascii() and call.isdigit() and len(call) <= 18):
                raise
            return session.find_result(int(call))
    except (NotFound, Refused, BlobMissing) as error:
        raise ToolFailed(f"{error.message}.") from None


def _page(found: Result, offset: int, limit: int) -> ToolOutput:
    part = page(found.text, offset, limit, cap=READ_CAP)
    end = part.offset + part.returned
    more = f"; go on with offset {part.next_offset}" if part.has_more else ""
    note = f"[characters {part.offset:,} to {end:,} of {part.total:,}{more}]"
    if offset >= part.total > 0:
        note = f"[the result has {part.total:,} characters; there is none at {offset:,}]"
    return ToolOutput(
        f"{part.content}\n{note}", data=_data(found, sha256=part.sha256, offset=offset, returned=end - offset)
    )


def _places(found: Result, text: str, offset: int) -> ToolOutput:
    if not text.strip():
        raise ToolFailed("There is nothing to search for.")
    places = search(found.text, text, offset, cap=READ_CAP)
    rows = [f"[at {match.offset:,}]\n{match.content}" for match in places.matches]
    more = "" if places.next_offset is None else f"; search on with offset {places.next_offset}"
    note = f"[{len(places.matches)} places in {len(found.text):,} characters{more}]"
    return ToolOutput("\n".join([*rows, note]), data=_data(found, search=text, offset=offset))


def _data(found: Result, **facts: Any) -> dict[str, Any]:
    return {"result": {"call_id": found.call_id, "seq": found.seq, **facts}}
