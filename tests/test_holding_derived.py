"""From a tool's run to whether what it saw still holds: real tools, real files, derived observations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from derived import answered, asked
from onward.evidence.checking import check
from onward.evidence.derived.deriving import derive
from onward.evidence.rooting import scope_of
from onward.evidence.status import Report
from onward.model.event import Event
from onward.runtime.tools.changing import edit_tool, write_tool
from onward.runtime.tools.reading import read_tool
from onward.runtime.tools.searching import list_tool, search_tool
from tools import at, call

TOOLS = {tool.name: tool for tool in (read_tool(), write_tool(), edit_tool(), list_tool(), search_tool())}


def ran(cwd: Path, events: list[Event], name: str, **arguments: Any) -> None:
    """Run a tool and log it as a session does."""
    outcome = call(TOOLS[name], at(cwd), **arguments)
    assert not outcome.is_error, outcome.text
    number = len(events)
    events.append(asked(number, name, arguments, f"c{number}"))
    events.append(answered(number + 1, outcome.text, f"c{number}", name=name, meta=outcome.data))


def report(cwd: Path, events: list[Event]) -> Report:
    return check(derive(events, str(cwd)), scope_of(str(cwd)).scope)


def statuses(cwd: Path, events: list[Event]) -> list[str]:
    return [f"{one.observation.action} {one.observation.subject} {one.status}" for one in report(cwd, events).findings]


def test_what_the_tools_saw_and_did_holds_until_somebody_else_changes_it(tmp_path: Path) -> None:
    cwd = tmp_path / "work"
    (cwd / "src").mkdir(parents=True)
    rows = [f"def f{number}(): return {number}" for number in range(1, 61)]
    (cwd / "src" / "a.py").write_text("\n".join(rows) + "\n")
    (cwd / "b.txt").write_text("b\n")
    events: list[Event] = []
    ran(cwd, events, "read", path="src/a.py")
    ran(cwd, events, "search", pattern="return 7$", path="src")
    ran(cwd, events, "edit", path="src/a.py", old="return 7\n", new="return 8\n")
    ran(cwd, events, "read", path="src/a.py", offset=20, limit=10)
    ran(cwd, events, "write", path="new.txt", content="one\ntwo\n")
    ran(cwd, events, "read", path="b.txt")
    ran(cwd, events, "list", path=".")
    before = statuses(cwd, events)
    assert before and {row.split()[-1] for row in before} <= {"fresh", "superseded", "unverifiable"}, before

    (cwd / "src" / "a.py").write_text((cwd / "src" / "a.py").read_text().replace("return 25\n", "return 0\n"))
    (cwd / "b.txt").unlink()
    after = statuses(cwd, events)
    changed = [now for was, now in zip(before, after, strict=True) if was != now]
    assert "looked file:b.txt missing" in changed and "looked file:src/a.py stale" in changed
    assert not any("new.txt" in row for row in changed)
    (stale,) = [one for one in report(cwd, events).findings if one.diff and one.observation.call_id == "c6"]
    assert stale.diff is not None and "-def f25(): return 25" in stale.diff.splitlines()
