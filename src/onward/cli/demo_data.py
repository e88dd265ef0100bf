"""Two small sessions for the demonstration, made up, in the formats of Pi and of the DeepSeek Harness.

They have what real ones have: tools, a branch that was left, a compaction, a turn that was interrupted in a tool call.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

Json = dict[str, Any]

START = 1_767_261_600_000
"""Unix milliseconds of the first record; each record comes a few seconds after the one before it."""

FAILURE = """\
tests/test_checkout.py::test_totals_of_a_mixed_basket FAILED
E   AssertionError: assert [Line('tea', 2), Line('milk', 1)] == [Line('milk', 1), Line('tea', 2)]
1 failed, 41 passed in 3.12s (run 4 of 20)"""

CODE = """\
def lines_of(basket):
    seen = set(basket.items)
    return [Line(item, basket.count(item)) for item in seen]"""

SUMMARY = """\
Goal: find out why test_totals_of_a_mixed_basket fails one run in five, and fix it in the code.
Done: lines_of() walked a set, whose order changes from run to run; it now walks the items in the order of the basket.
Checked: 50 runs, all green. Not checked: other callers of lines_of().
Files: shop/checkout.py (changed), tests/test_checkout.py (read)."""


def pi_session(cwd: str = "/srv/shop") -> bytes:
    """A session file of Pi, version 3, of an agent that worked in `cwd`."""
    file = _Pi(cwd)
    file.add("session_info", name="A test that fails one run in five")
    file.add("model_change", provider="anthropic", modelId="claude-sonnet-4-5")
    file.user("The checkout test fails about one run in five. Find out why, but change nothing yet.")
    file.calls("I run it until it fails.", "c1", "bash", command="pytest -x --count 20 tests/test_checkout.py")
    file.result("c1", "bash", FAILURE)
    file.calls("The order differs. I look at what makes the lines.", "c2", "read", path="shop/checkout.py")
    file.result("c2", "read", CODE)
    why = file.says("lines_of() walks a set, and the order of a set of strings changes from run to run.")
    file.add("label", targetId=why, label="the cause")

    file.go_to(why)
    file.user("Then sort both sides in the test.")
    file.calls("I sort both lists.", "c3", "edit", path="tests/test_checkout.py", old="== [", new="== sorted([")
    file.result("c3", "edit", "1 replacement in tests/test_checkout.py")
    file.says("The test sorts both sides now.")

    file.go_to(why)
    file.add("branch_summary", fromId=file.last, summary="Left: sorting in the test hides the cause; it was put back.")
    file.user("No: a customer sees that order too. Fix it in the code and put the test back.")
    file.calls(
        "I keep the order of the basket.", "c4", "edit", path="shop/checkout.py", old="set(", new="dict.fromkeys("
    )
    file.result("c4", "edit", "1 replacement in shop/checkout.py")
    file.calls("Now fifty runs.", "c5", "bash", command="pytest -q --count 50 tests/test_checkout.py")
    file.result("c5", "bash", "\n".join(f"run {run}: 42 passed" for run in range(1, 51)))
    file.says("Fixed: lines_of() keeps the order of the basket. 50 runs, all green.")
    kept = file.user("Good. Write the changelog entry.")
    file.says("I will add it under Unreleased, as a fix.")
    file.add("compaction", summary=SUMMARY, firstKeptEntryId=kept, tokensBefore=5210)
    file.user("Yes, and commit it.")
    file.calls(
        "I write it and commit.", "c6", "bash", stop="aborted", command="git commit -am 'Keep the order of lines'"
    )
    return file.bytes()


class _Pi:
    """Entries with ids, each the child of the one before it, or of the one that was gone to."""

    def __init__(self, cwd: str) -> None:
        self._time = START
        head = {"type": "session", "version": 3, "id": "6a1d5f0e-demo", "timestamp": self._stamp(), "cwd": cwd}
        self._rows: list[Json] = [head]
        self._parent: str | None = None
        self.last = ""

    def add(self, type_: str, **fields: Any) -> str:
        self._time += 4_000
        self.last = sha256(str(len(self._rows)).encode()).hexdigest()[:8]
        entry = {"type": type_, "id": self.last, "parentId": self._parent, "timestamp": self._stamp(), **fields}
        self._rows.append(entry)
        self._parent = self.last
        return self.last

    def go_to(self, id_: str) -> None:
        """The next entry is a child of this one."""
        self._parent = id_

    def user(self, text: str) -> str:
        return self._message(role="user", content=[{"type": "text", "text": text}])

    def says(self, text: str, *more: Json, stop: str = "stop") -> str:
        blocks = [{"type": "text", "text": text}, *more]
        size = 400 + 90 * len(self._rows)
        cost = {"input": 0.0009, "output": 0.0012, "cacheRead": 0.0003, "cacheWrite": 0.0011, "total": 0.0035}
        used = {"input": 12, "output": 80, "cacheRead": size, "cacheWrite": 300, "totalTokens": size + 392}
        source = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-5"}
        usage = {**used, "cost": cost}
        return self._message(role="assistant", content=blocks, **source, usage=usage, stopReason=stop)

    def calls(self, text: str, id_: str, name: str, *, stop: str = "toolUse", **arguments: Any) -> str:
        call = {"type": "toolCall", "id": f"toolu_{id_}", "name": name, "arguments": arguments}
        return self.says(text, call, stop=stop)

    def result(self, id_: str, name: str, text: str) -> str:
        content = [{"type": "text", "text": text}]
        return self._message(
            role="toolResult", toolCallId=f"toolu_{id_}", toolName=name, content=content, isError=False
        )

    def _message(self, **message: Any) -> str:
        return self.add("message", message={**message, "timestamp": self._time + 4_000})

    def _stamp(self) -> str:
        return datetime.fromtimestamp(self._time / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def bytes(self) -> bytes:
        return _lines(self._rows)


def harness_session() -> bytes:
    """A session file of the DeepSeek Harness, version 3."""
    file = _Harness()
    file.start("Which files of this folder are larger than a megabyte?")
    file.calls(1, "call_1", "bash", '{"command": "find . -size +1M"}', "./data/orders.db\n./docs/poster.pdf\n")
    file.says(2, "Two: data/orders.db and docs/poster.pdf.")
    file.end("completed")
    file.start("Pack the poster, and tell me what it saved.")
    file.calls(1, "call_2", "bash", '{"command": "gzip --keep docs/poster.pdf && ls -l docs"}', None)
    file.end("aborted")
    return file.bytes()


class _Harness:
    """Rows with numbers, within turns and steps."""

    def __init__(self) -> None:
        head = {"type": "session", "version": 3, "id": "harness-demo", "createdAt": START, "cwd": "/srv/shop"}
        self._rows: list[Json] = [{**head, "isSeeded": False, "delegationDepth": 0}]
        self._turn = 0

    def row(self, type_: str, data: Json, **fields: Any) -> int:
        seq = len(self._rows) - 1
        self._rows.append({"type": type_, "seq": seq, "time": START + 2_000 * seq, "data": data, **fields})
        return seq

    def start(self, text: str) -> None:
        self._turn += 1
        message = {"role": "user", "content": [{"type": "text", "text": text}], "source": {"kind": "user"}}
        said = {**message, "id": f"u-{self._turn}"}
        self.row("turn/start", {"turn": self._turn})
        self.row("user/message", said, surfaceOp="append")

    def calls(self, step: int, id_: str, name: str, arguments: str, output: str | None) -> None:
        """A step that calls a tool; without an output it was interrupted there."""
        at = {"turn": self._turn, "step": step}
        call = {"type": "tool-call", "id": id_, "name": name, "arguments": arguments}
        self.row("step/start", at)
        self._reply(at, [call])
        seq = self.row("tool/call", {**at, "callId": id_, "name": name, "arguments": arguments})
        if output is not None:
            result = {"type": "tool-result", "toolCallId": id_, "content": [{"type": "text", "text": output}]}
            message = {
                "role": "user",
                "source": {"kind": "tool", "callId": id_},
                "content": [{**result, "isError": False}],
            }
            data = {**at, "message": {**message, "id": f"r-{seq}"}}
            self.row("tool/result", data, surfaceOp="append", sourceEventSeqs=[seq])
        self.row("step/end", at)

    def says(self, step: int, text: str) -> None:
        at = {"turn": self._turn, "step": step}
        self.row("step/start", at)
        self._reply(at, [{"type": "text", "text": text}])
        self.row("step/end", at)

    def _reply(self, at: Json, content: list[Json]) -> None:
        source = {"kind": "model", "provider": "deepseek-official", "model": "deepseek-v4-flash"}
        message = {"role": "assistant", "content": content, "source": source, "id": f"a-{len(self._rows)}"}
        usage = {"inputTokens": 900, "outputTokens": 40, "cacheReadTokens": 512, "reasoningTokens": 12}
        self.row("assistant/message", {**at, "message": message, "usage": usage}, surfaceOp="append")

    def end(self, reason: str) -> None:
        self.row("turn/end", {"turn": self._turn, "reason": {"kind": reason}})

    def bytes(self) -> bytes:
        return _lines(self._rows)


def _lines(rows: list[Json]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for row in rows)
