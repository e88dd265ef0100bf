"""From a tool's output to the answer: what our tools did is derived exactly, and scripted changes are told apart."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from derived import answered, asked
from onward.evidence.checking import check
from onward.evidence.derived.deriving import derive
from onward.evidence.observation import Lines, Listing, Matches, Observation, Unverifiable, Whole
from onward.evidence.scope import Scope
from onward.evidence.status import Finding
from onward.model.event import Event
from onward.runtime.tools.coding import coding_tools
from tools import at, call

TEXT = "".join(f"line {number}\n" for number in range(1, 41))


def ran(root: Path, seq: int, name: str, **arguments: Any) -> list[Event]:
    """A call of one of our tools, as it is logged."""
    tool = coding_tools().get(name)
    assert tool is not None
    outcome = call(tool, at(root), **arguments)
    result = answered(seq + 1, outcome.text, f"c{seq}", is_error=outcome.is_error, meta=outcome.data or {})
    return [asked(seq, name, arguments, f"c{seq}"), result]


def derived(root: Path, *events: Event) -> tuple[Observation, ...]:
    return derive(events, str(root))


def holds(root: Path, *observations: Observation) -> list[Finding]:
    return list(check(observations, Scope(str(root), str(root), str(root))).findings)


OWN: list[tuple[bytes, str, dict[str, Any], type]] = [
    (b"x\ny\n", "read", {"path": "a"}, Whole),
    (b"x\ny", "read", {"path": "a"}, Whole),
    (b"x\r\ny\r\n", "read", {"path": "a"}, Whole),
    (b"", "read", {"path": "a"}, Whole),
    (b"\xef\xbb\xbfx\n", "read", {"path": "a"}, Whole),
    (b"x" * 2_500 + b"\ny\n", "read", {"path": "a"}, Whole),
    (TEXT.encode(), "read", {"path": "a", "offset": 3, "limit": 4}, Lines),
    (TEXT.encode(), "read", {"path": "a", "offset": 38}, Lines),
    (TEXT.encode(), "write", {"path": "b", "content": "new\n"}, Whole),
    (TEXT.encode(), "edit", {"path": "a", "old": "line 7\n", "new": "LINE\n"}, Lines),
    (TEXT.encode(), "search", {"pattern": "line 3$"}, Matches),
    (TEXT.encode(), "search", {"pattern": "line 3$", "around": 1}, Lines),
    (b"y" * 900 + b"\n", "search", {"pattern": "y$"}, Matches),
    (TEXT.encode(), "list", {"path": "."}, Listing),
    (TEXT.encode(), "list", {"path": ".", "ignored": True}, Listing),
    (TEXT.encode(), "shell", {"command": "sed -n 2,3p a"}, Lines),
    (TEXT.encode(), "shell", {"command": "cat > c <<'E'\nx\nE"}, Whole),
]


@pytest.mark.parametrize(("before", "name", "arguments", "kind"), OWN, ids=lambda value: str(value)[:40])
def test_what_our_own_tools_did_is_derived_exactly_and_holds(
    before: bytes, name: str, arguments: dict[str, Any], kind: type, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(before)
    (seen,) = derived(tmp_path, *ran(tmp_path, 0, name, **arguments))
    assert isinstance(seen.then, kind)
    assert [found.status for found in holds(tmp_path, seen)] == ["fresh"]
    if isinstance(seen.then, Whole) and name != "shell":
        data = (tmp_path / seen.subject.address).read_bytes()
        assert seen.then.size == len(data)
        if seen.then.text is not None:
            assert seen.then.text.encode() == data.removeprefix(b"\xef\xbb\xbf" if before[:1] == b"\xef" else b"")
    (tmp_path / "a").write_bytes(before.replace(b"x", b"z").replace(b"line", b"LINE").replace(b"y", b"z") + b"more")
    (tmp_path / "b").write_bytes(b"other\n")
    (tmp_path / "c").write_bytes(b"other\n")
    (tmp_path / "d").write_bytes(b"")
    incomplete = isinstance(seen.then, Listing) and not seen.then.complete
    assert [found.status for found in holds(tmp_path, seen)] == ["fresh" if incomplete else "stale"]


def test_a_whole_round_of_our_own_tools_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(TEXT)
    events = [
        *ran(tmp_path, 0, "read", path="a"),
        *ran(tmp_path, 2, "edit", path="a", old="line 7\n", new="LINE\n"),
        *ran(tmp_path, 4, "read", path="gone"),
        *ran(tmp_path, 6, "shell", command="rm a"),
    ]
    found = derived(tmp_path, *events)
    assert [(one.action, type(one.then).__name__) for one in found] == [
        ("looked", "Whole"),
        ("changed", "Lines"),
        ("looked", "Absent"),
        ("deleted", "Absent"),
    ]
    assert [one.status for one in holds(tmp_path, *found)] == ["superseded", "superseded", "fresh", "fresh"]


# --- scripted changes -------------------------------------------------------------------------------------------

HOW = ("Pi, all", "Pi, lines 10 to 19", "Codex, lines 10 to 19", "Claude Code, all")


def recorded(how: str) -> Observation:
    lines = TEXT.splitlines(keepends=True)
    part = "".join(lines[9:19])
    match how:
        case "Pi, all":
            events = [asked(0, "read", {"path": "a"}), answered(1, TEXT)]
        case "Pi, lines 10 to 19":
            note = "\n[21 more lines in file. Use offset=20 to continue.]"
            events = [asked(0, "read", {"path": "a", "offset": 10, "limit": 10}), answered(1, part + note)]
        case "Codex, lines 10 to 19":
            events = [asked(0, "shell", {"command": ["sed", "-n", "10,19p", "a"]}), answered(1, part)]
        case _:
            rows = "\n".join(f"{number:6}→{line}" for number, line in enumerate(TEXT.split("\n"), 1))
            events = [asked(0, "Read", {"file_path": "a"}), answered(1, rows)]
    (seen,) = derive(events, "/w")
    assert not isinstance(seen.then, Unverifiable)
    return seen


def rewritten(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(change(file.read_bytes()))


def linked(file: Path) -> None:
    file.rename(file.with_name("real"))
    file.symlink_to("real")


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


CHANGES: list[tuple[str, Callable[[Path], object], str, str]] = [
    ("nothing", lambda file: None, "fresh", "fresh"),
    ("touched", lambda file: os.utime(file, ns=(1, 1)), "fresh", "fresh"),
    ("edited inside", rewritten(lambda data: data.replace(b"line 12\n", b"other\n")), "stale", "stale"),
    ("edited outside", rewritten(lambda data: data.replace(b"line 30\n", b"other\n")), "stale", "fresh"),
    ("a line more before", rewritten(lambda data: b"new\n" + data), "stale", "fresh"),
    ("a line more at the end", rewritten(lambda data: data + b"new\n"), "stale", "fresh"),
    ("a blank line more at the end", rewritten(lambda data: data + b"\n"), "stale", "fresh"),
    ("CRLF", rewritten(lambda data: data.replace(b"\n", b"\r\n")), "fresh", "fresh"),
    ("a byte order mark", rewritten(lambda data: b"\xef\xbb\xbf" + data), "fresh", "fresh"),
    ("another encoding", rewritten(lambda data: b"\xff\xfe" + data.decode().encode("utf-16-le")), "fresh", "fresh"),
    ("renamed", lambda file: file.rename(file.with_name("b")), "moved", "missing"),
    ("deleted", lambda file: file.unlink(), "missing", "missing"),
    ("a link to it", linked, "fresh", "fresh"),
    ("a directory", folder, "stale", "stale"),
]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("happened", "change", "all_", "part"), CHANGES, ids=[case[0] for case in CHANGES])
def test_a_scripted_change_after_a_recorded_reading_is_told_for_what_it_is(
    happened: str, change: Callable[[Path], object], all_: str, part: str, how: str, tmp_path: Path
) -> None:
    file = tmp_path / "a"
    file.write_text(TEXT)
    change(file)
    seen = recorded(how)
    (found,) = check([seen], Scope(str(tmp_path), "/w", "/w")).findings
    expected = all_ if how.endswith("all") else part
    if expected == "moved" and not isinstance(seen.then, Whole):
        expected = "missing"  # what Claude Code shows leaves open how the file ends: no other one is surely it
    assert found.status == expected, found.now


def test_a_patch_changes_the_first_of_several_places(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch"
    seen = derive([asked(0, "apply_patch", patch), answered(1, "Success. Updated the following files:\nM a")], "/w")
    for text, status in (("y\nb\nx\n", "fresh"), ("z\nb\nx\n", "stale")):
        (tmp_path / "a").write_text(text)
        assert [found.status for found in check(seen, Scope(str(tmp_path), "/w", "/w")).findings] == [status]
    gone = derive([asked(0, "apply_patch", patch.replace("+y\n", "")), answered(1, "Success.")], "/w")
    assert [found.status for found in check(gone, Scope(str(tmp_path), "/w", "/w")).findings] == ["unverifiable"]


SHOWN_AT_END = ("cat a", "tail -n 2 a", "sed -n '$p' a", "cat a | tail -n +2", "cat -n a", "sed -n 2,9p a")


@pytest.mark.parametrize("command", SHOWN_AT_END)
@pytest.mark.parametrize("trimmed", [False, True])
def test_what_was_shown_to_the_end_of_a_file_has_changed_when_the_file_goes_on(
    command: str, trimmed: bool, tmp_path: Path
) -> None:
    file = tmp_path / "a"
    for before, after in ((b"y\nx\ny\nx\n", b"y\nx\ny\nx\nnew\n"), (b"a\nx\ny\n", b"a\nx\ny\nb\nx\ny\nnew\n")):
        file.write_bytes(before)
        out = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        meta = {"toolUseResult": {"stdout": out.strip("\n"), "stderr": ""}} if trimmed else {}
        (seen,) = derive([asked(0, "bash", {"command": command}), answered(1, out, meta=meta)], "/w")
        for data, status in ((before, "fresh"), (after, "stale")):
            file.write_bytes(data)
            assert [found.status for found in check([seen], Scope(str(tmp_path), "/w", "/w")).findings] == [status]
        if trimmed and "-n a" not in command:
            # Blank lines at the end were taken off, if there were any.
            file.write_bytes(before + b"\n\n")
            assert [found.status for found in check([seen], Scope(str(tmp_path), "/w", "/w")).findings] == ["fresh"]


def test_a_file_that_may_not_be_read_any_more_is_unverifiable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text(TEXT)
    real = os.open

    def denied(path: str, flags: int, *args: object, **kwargs: object) -> int:
        if path == "a":  # as for everybody but root after a chmod
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *args, **kwargs)  # type: ignore[arg-type]

    assert [one.status for one in check([recorded("Pi, all")], Scope(str(tmp_path), "/w", "/w")).findings] == ["fresh"]
    monkeypatch.setattr(os, "open", denied)
    (found,) = check([recorded("Pi, all")], Scope(str(tmp_path), "/w", "/w")).findings
    assert (found.status, found.note) == ("unverifiable", "permission denied")


# --- the real programs ------------------------------------------------------------------------------------------

FILES: dict[str, bytes] = {
    "plain": TEXT.encode(),
    "open": b"x = 1\nno line end",
    "blank": b"\n\nx = 1\n\n\n",
    "one blank": b"\n",
    "empty": b"",
    "crlf": b"x = 1\r\ny\r\n",
    "sub/a-1-b.py": b"import x\nx = 1\n1: x\na:2:x\n",
    "sub/deep/c.py": b"--\nx = 1\n--\n",
    "sections": b"a\n\\:\\:\nx\n",
    ".hidden": b"x = 1\n",
}
READING = [
    *(
        f"{how} '{name}'"
        for name in FILES
        for how in ("cat", "cat -n", "nl -ba", "sed -n 2,4p", "head -2", "tail -n 2")
    ),
    *("tail -n +3 plain", "sed -n '38,99p' plain", "sed -n '$p' plain", "cat plain | head -3", "cat plain | tail -3"),
    *("cat blank | sed -n 1,2p", "nl -ba plain | head -4", "head -2 plain open", "tail -n 1 plain sub/deep/c.py"),
    *("cat plain && echo == && cat open", "echo a; cat blank; echo b; cat open", "cd sub && cat a-1-b.py"),
    *("cat gone 2>/dev/null || echo none", "cat plain 2>/dev/null || echo none", "cat gone | head -1", "cat gone"),
    *("grep -n x plain", "grep x sub/a-1-b.py", "grep -rn x .", "grep -rn -C1 x sub", "grep -A1 x blank"),
    *("grep -n -B2 'x' sub/deep/c.py", "grep -rl x sub", "grep -rn x sub | head -2", "cat open | grep -n x"),
    *("grep -n line plain | grep -v 3 | tail -2", "grep nothing plain", "grep -h x sub/deep/c.py", "grep -Hn x open"),
    *("grep -n x plain open", "grep -n -A1 1 sub/a-1-b.py", "ls", "ls -a", "ls -la", "ls -lh sub", "ls sub/*.py"),
    *("ls | head -2", "find . -type f", "find sub -name '*.py' -type f", "find . -name '*.py' | sort | head -1"),
    *("find sub/", "find . -maxdepth 1 -type f | grep -v plain", "ls plain", "ls gone", "find gone"),
    *("cat > new <<'E'\n$x\n\nE", "echo x y > new", "printf 'a\\n\\tb' > new", "cat >> open <<E\nmore\nE", "rm plain"),
    *("echo z >> open", "mv plain other && cat other", "mkdir -p one/two", "tee new <<'E'\nx\nE", "rm -f gone plain"),
    *("cp plain new", "sed -i 's/line/LINE/' plain", "mv plain sub/", "echo x | tee new > /dev/null"),
]
FAILING = [
    # What did not come to pass, or somewhere else, and says nothing of it, or says it among other things.
    *("cat gone; echo x", "cat gone 2>/dev/null; echo x", "cat sub 2>/dev/null | cat", "ls gone 2>/dev/null; echo x"),
    *("ls gone 2>/dev/null | head -3", "find gone -name '*.py' -type f 2>/dev/null | head", "find plain -type f"),
    *("cd gone; cat plain", "cd gone 2>/dev/null; cat plain", "cd gone && cat plain; echo x", "cd ~ && cat plain"),
    *("pushd sub >/dev/null; rm plain", "exit 0; rm plain", "sub() { rm plain; }; true", "false && rm plain; echo x"),
    *("test -f gone && echo y > plain; true", "mkdir sub && rm plain; echo x", "mkdir sub && cat plain; echo x"),
    *("rm sub; echo x", "rm sub >/dev/null 2>&1; echo x", "rm sub 2>log; echo x", "rm -i plain; echo x"),
    *("mv plain gone/x; echo x", "mv -n plain open", "echo y > gone/x; echo x", "rmdir sub; echo x", "echo ~ > new"),
    *("echo -nE y > new", "echo y > plain; perl -pi -e s/y/z/ plain", "rm plain && touch plain", "cat gone/../plain"),
    # Names and lines that look like something else.
    *("chmod +x open; ls -F", "ls -laF", "ls su*", "grep -rn x sub/a-1-b.py", "grep -r x sub/a-1-b.py", "ls --color"),
    *("grep -rh x sub", "grep -n -e x -e a sub/a-1-b.py", "nl -ba sections | head -2", "grep -rn x ./sub"),
]


@pytest.mark.parametrize("tool", ["Bash", "exec_command"])
def test_what_real_programs_printed_holds_in_the_files_that_they_printed(tool: str, tmp_path: Path) -> None:
    known = 0
    for number, command in enumerate([*READING, *FAILING]):
        root = tmp_path / str(number)
        for name, data in FILES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        env = {**os.environ, "HOME": str(root)}
        run = subprocess.run(["bash", "-c", command], cwd=root, env=env, stdin=subprocess.DEVNULL, capture_output=True)
        out, errors, failed = run.stdout.decode(), run.stderr.decode(), run.returncode != 0
        if tool == "Bash":  # as Claude Code: blank lines taken off, errors apart
            told: Any = {"stdout": out.strip("\n"), "stderr": errors}
            text = f"Exit code {run.returncode}\n{out}{errors}".strip() if failed else out.strip("\n")
            result = answered(1, text, is_error=failed, meta={"toolUseResult": f"Error: {text}" if failed else told})
            call_ = asked(0, "Bash", {"command": command})
        else:  # as Codex: everything as it came
            result = answered(1, f"Exit code: {run.returncode}\nWall time: 0.1 seconds\nOutput:\n{out}{errors}")
            call_ = asked(0, "exec_command", {"cmd": command})
        seen = derive([call_, result], "/w")
        assert seen, command
        for found in check(seen, Scope(str(root), "/w", "/w")).findings:
            assert found.status in ("fresh", "superseded", "unverifiable"), (command, found.now, found.observation.then)
            known += found.status == "fresh"
    assert known >= len(READING) // 2
