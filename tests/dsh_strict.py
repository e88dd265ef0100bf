"""What the Harness demands of a log, checked row by row and independently of the reader.

It is stricter than the reader on purpose: whatever is exported must pass.
"""

from __future__ import annotations

import json
from typing import Any

ELIGIBLE = {"system/message", "user/message", "assistant/message", "tool/result"}
IN_STEP = {"system/message", "assistant/message", "tool/call", "tool/result", "assistant/attempt"}
ROLES = {"system/message": "system", "user/message": "user", "assistant/message": "assistant", "tool/result": "user"}
HEADER = {
    0: {"type", "version", "id", "createdAt", "cwd", "parentSession", "seedLength", "origin", "delegationDepth"},
    3: {"type", "version", "id", "createdAt", "cwd", "parentSession", "isSeeded", "origin", "delegationDepth"},
}


def check(lines: list[bytes], relations: bool = True) -> list[list[dict[str, Any]]]:
    """The blocks of the messages that the Harness derives. Raises AssertionError at the first broken rule.

    Args:
        lines: of the file, without LF.
        relations: check the numbers of turns and steps as well.
    """
    header, *rows = [json.loads(line) for line in lines]
    version = header["version"]
    assert set(header) - {"agentPreset"} <= HEADER[0 if version < 2 else 3]
    assert header["id"] and isinstance(header["createdAt"], int) and header["createdAt"] >= 0
    assert ("isSeeded" in header) == (version >= 2)
    surface: list[int] = []
    at: dict[int, dict[str, Any]] = {}
    turn = step = 0
    turn_open = step_open = False
    for number, row in enumerate(rows):
        type_, data = row["type"], row["data"]
        assert set(row) <= {"type", "seq", "time", "data", "surfaceOp", "sourceEventSeqs", "ignorable"}
        assert row["seq"] == number and isinstance(row["time"], int)
        at[number] = row
        sources = flat(row.get("sourceEventSeqs"), version)
        assert ("surfaceOp" in row) == (type_ in ELIGIBLE), (type_, number)
        if sources is not None:
            assert type_ in ELIGIBLE
            assert sources or (version < 2 and type_ == "assistant/message")
            assert len(set(sources)) == len(sources) and all(0 <= source < number for source in sources)
            assert not (version >= 2 and type_ == "assistant/message")
        if type_ in ELIGIBLE:
            place(row, number, surface, at, sources or [], version)
            message(row, version)
        if type_ == "request/header":
            config = data["header"]["config"]
            assert (
                config["provider"] and config["model"] and data["reason"] in {"initial", "resume", "change", "series"}
            )
            assert not (version >= 3 and ({"system"} & set(data["header"]) or data["header"].get("tools") == []))
            assert turn_open or not relations
        if type_ == "compaction/summary":
            assert data["shadowedSeqs"] and data["shadowedRange"] == {
                "start": data["shadowedSeqs"][0],
                "end": data["shadowedSeqs"][-1],
            }
            assert data["provider"] and data["model"] and data["compactionId"]
        if not relations:
            continue
        if type_ == "turn/start":
            assert not turn_open and data["turn"] == turn + 1
            turn, step, turn_open = data["turn"], 0, True
        elif type_ == "turn/end":
            assert turn_open and not step_open and data["turn"] == turn and data["reason"]["kind"]
            turn_open = False
        elif type_ == "step/start":
            assert turn_open and not step_open and data == {"turn": turn, "step": step + 1}
            step, step_open = step + 1, True
        elif type_ == "step/end":
            assert step_open and data == {"turn": turn, "step": step}
            step_open = False
        elif type_ in IN_STEP and not is_swap(row):
            assert step_open and (data["turn"], data["step"]) == (turn, step), (type_, number)
    if version >= 3 and surface:
        assert at[surface[0]]["type"] == "system/message"
    return [blocks for number in surface if (blocks := content(at[number]))]


def is_swap(row: dict[str, Any]) -> bool:
    return row["type"] == "tool/result" and isinstance(row["surfaceOp"], dict)


def flat(sources: Any, version: int) -> list[int] | None:
    if sources is None:
        return None
    out: list[int] = []
    for item in sources:
        if isinstance(item, list):
            assert version >= 2 and item[1] - item[0] >= 2
            out.extend(range(item[0], item[1] + 1))
        else:
            out.append(item)
    return out


def place(row: dict[str, Any], number: int, surface: list[int], at: Any, sources: list[int], version: int) -> None:
    op = row["surfaceOp"]
    if op == "append":
        surface.append(number)
        return
    start, end = ("startSeq", "endSeq") if version >= 3 else ("start", "end")
    assert set(op) == {"op", start, end} and op["op"] == "replace"
    first, last = surface.index(op[start]), surface.index(op[end])
    assert first <= last and set(surface[first : last + 1]) <= set(sources)
    gone = [at[node] for node in surface[first : last + 1]]
    if row["type"] == "tool/result":
        (old,) = gone
        assert old["type"] == "tool/result" and without_content(old["data"]) == without_content(row["data"])
    if version >= 3 and first == 0 and gone[0]["type"] == "system/message":
        assert row["type"] == "system/message" and len(gone) == 1
    surface[first : last + 1] = [number]


def without_content(data: dict[str, Any]) -> Any:
    copy = json.loads(json.dumps(data))
    copy["message"]["content"][0].pop("content")
    return copy


def message(row: dict[str, Any], version: int) -> None:
    data = row["data"]
    said = data if row["type"] == "user/message" else data["message"]
    assert said["id"] and said["role"] == ROLES[row["type"]] and said["source"]["kind"]
    assert isinstance(said["content"], list)
    if row["type"] == "assistant/message":
        assert said["source"]["kind"] == "model" and said["source"]["provider"] and said["source"]["model"]
        assert ("stream" in data) == (version >= 2)
    if row["type"] == "tool/result":
        (block,) = said["content"]
        assert block["type"] == "tool-result" and block["toolCallId"] == said["source"]["callId"]
        assert "error" not in data or block["isError"] is True


def content(row: dict[str, Any]) -> list[dict[str, Any]]:
    data = row["data"]
    blocks: list[dict[str, Any]] = (data if row["type"] == "user/message" else data["message"])["content"]
    return blocks
