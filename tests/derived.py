"""Helpers for tests of derived observations: a call and its result as events, and an observation as one line."""

from __future__ import annotations

from typing import Any

from onward.evidence.derived.deriving import derive
from onward.evidence.observation import (
    Absent,
    Excerpt,
    Fingerprint,
    Lines,
    Listing,
    Matches,
    Observation,
    Unverifiable,
    Whole,
)
from onward.model.event import Event

HOME = "/w"


def asked(seq: int, name: str, arguments: Any, call_id: str = "c", **meta: Any) -> Event:
    block = {"type": "tool_call", "call_id": call_id, "name": name, "arguments": arguments}
    data: dict[str, Any] = {"message": {"role": "assistant", "blocks": [block]}}
    return Event(seq=seq, type="assistant/message", time=0, data={**data, "meta": meta} if meta else data)


def answered(seq: int, text: str, call_id: str = "c", **fields: Any) -> Event:
    data = {"call_id": call_id, "content": [{"type": "text", "text": text}], **fields}
    return Event(seq=seq, type="tool/result", time=0, data=data)


def seen(name: str, arguments: Any, text: str, **fields: Any) -> list[str]:
    """What is derived from one call and its result, an observation a line. Fields are those of the result."""
    return [line_of(one) for one in derive([asked(0, name, arguments), answered(1, text, **fields)], HOME)]


def line_of(one: Observation) -> str:
    where = "" if one.subject.cwd is None else f"@{one.subject.cwd}"
    to = "" if one.to is None else f" -> {one.to}"
    return f"{one.action} {one.subject}{where}{to} {then_of(one.then)}"


def then_of(then: Fingerprint) -> str:
    match then:
        case Whole(text=text, sha256=digest):
            return f"whole {text!r}" if text is not None else f"whole {'?' if digest is None else digest[:6]}"
        case Lines(excerpts=parts, ends=ends, replaced=replaced, blank=blank):
            said = [
                *map(_part, parts),
                *(["end or blank" if blank else "end"] if ends else []),
                *(f"-{old!r}" for old in replaced),
            ]
            return "lines " + " ".join(said)
        case Matches(matches=found, complete=complete, within=within):
            rows = [f"{one.path}:{one.line or ''}:{'' if one.text is None else one.text}" for one in found]
            return f"matches {rows}{' all' if complete else ''}" + ("" if within is None else f" in {within}")
        case Listing(names=names, complete=complete, pattern=pattern, deep=deep, hidden=hidden):
            flags = [word for word, on in (("all", complete), ("deep", deep), ("hidden", hidden)) if on]
            return " ".join(["names", repr(list(names)), *([] if pattern is None else [pattern]), *flags])
        case Absent():
            return "absent"
        case Unverifiable():
            return "?"
    return repr(then)


def _part(part: Excerpt) -> str:
    marks = "".join(f"~{at}" for at in part.cut)
    return f"{'snip' if part.snippet else part.first or '?'}:{part.text!r}{marks}"
