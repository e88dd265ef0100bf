"""Which files tools looked at and changed, in the words of each agent's tools."""

from __future__ import annotations

from typing import Any

import pytest

from builders import assistant, event_of, result
from onward.context.summaries.calls import Asked, asked
from onward.context.summaries.files import files_of, touched
from onward.context.summaries.shell import patched, used
from onward.model.script import script_of

PATCH = """*** Begin Patch
*** Add File: src/new.py
+x = 1
*** Update File: src/old.py
*** Move to: src/moved.py
@@
-a
+b
*** Delete File: docs/gone.md
*** End Patch
"""
PATCHED = [("modified", path) for path in ("src/new.py", "src/old.py", "src/moved.py", "docs/gone.md")]


@pytest.mark.parametrize(
    ("script", "files"),
    [
        ("cat a.py", [("read", "a.py")]),
        ("sed -n '1,200p' src/a.py", [("read", "src/a.py")]),
        ("sed -i 's/a/b/' x.py y.py", [("modified", "x.py"), ("modified", "y.py")]),
        ("sed -i '' -e 's/a/b/' x.py", [("modified", "x.py")]),
        ("head -n 20 a.py | grep x > out.txt 2>/dev/null", [("read", "a.py"), ("modified", "out.txt")]),
        ("echo hi >> log.txt 2>&1", [("modified", "log.txt")]),
        ("cd pkg && cat src/a.ts && rm b.ts", [("read", "pkg/src/a.ts"), ("modified", "pkg/b.ts")]),
        ("cd /repo && nl -ba 'app/(x)/a.ts'", [("read", "app/(x)/a.ts")]),
        ("cd /else && cat a.ts", [("read", "/else/a.ts")]),
        ("cp a.py b.py; mv c d", [("read", "a.py"), *(("modified", path) for path in ("b.py", "c", "d"))]),
        ("git mv a.py b.py", [("modified", "a.py"), ("modified", "b.py")]),
        ("git commit -m 'cat > x'", []),
        ("cat > conf/a.toml <<'EOF'\n[x]\ncat > no.txt\nEOF\ncat b", [("modified", "conf/a.toml"), ("read", "b")]),
        ("tee -a one.txt <<-END\n\tbody\n\tEND", [("modified", "one.txt")]),
        ("git apply <<'P'\n--- a/x.py\n+++ b/x.py\n@@\nP", [("modified", "x.py")]),
        (f"cd /repo && apply_patch <<'EOF'\n{PATCH}EOF", PATCHED),
        ("# cat a > b\nX=1 cat c", [("read", "c")]),
        ("grep -n 'x y' src/a.ts src | wc -l", [("read", "src/a.ts")]),
        ("rm -rf $TMP/x", []),
        ("cat *.py", []),
        ("echo 'no end", []),
        ("", []),
        ("python3 -m pytest -q", []),
    ],
)
def test_a_command_names_the_files_that_it_uses(script: str, files: list[tuple[str, str]]) -> None:
    assert [tuple(one) for one in used(script, "/repo/")] == files


def test_a_command_that_goes_to_another_folder_twice_is_followed() -> None:
    found = used("cd a\ncat x\ncd ../b\ncat y\ncd\ncat ~/z")
    assert [one.path for one in found] == ["a/x", "b/y", "~/z"]


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("ls", "ls"),
        (["bash", "-lc", "ls | wc"], "ls | wc"),
        (["apply_patch", "a b"], "apply_patch 'a b'"),
        ([], ""),
        (None, ""),
        ([1], ""),
    ],
)
def test_a_command_as_a_list_is_the_script_that_it_runs(command: Any, script: str) -> None:
    assert script_of(command) == script


def call(name: str, arguments: Any, **fields: Any) -> Asked:
    return Asked(5, "c", name, arguments, **fields)


@pytest.mark.parametrize(
    ("tool", "arguments", "files"),
    [
        ("read", {"path": "a"}, [("read", "a")]),
        ("Read", {"file_path": "a", "offset": 3}, [("read", "a")]),
        ("edit", {"path": "a", "oldText": "x"}, [("modified", "a")]),
        ("Write", {"file_path": "a", "content": "b"}, [("modified", "a")]),
        ("MultiEdit", {"file_path": "a", "edits": []}, [("modified", "a")]),
        ("NotebookEdit", {"notebook_path": "a.ipynb"}, [("modified", "a.ipynb")]),
        ("mcp__files__write_file", {"path": "a"}, [("modified", "a")]),
        ("str_replace_based_edit_tool", {"command": "view", "path": "a"}, [("read", "a")]),
        ("str_replace_based_edit_tool", {"command": "insert", "path": "a"}, [("modified", "a")]),
        ("Grep", {"pattern": "x", "path": "src"}, []),
        ("Grep", {"pattern": "x", "path": "src/a.ts"}, [("read", "src/a.ts")]),
        ("shell", {"command": ["bash", "-lc", "cat a"], "workdir": "/r"}, [("read", "a")]),
        ("Bash", {"command": "echo > a"}, [("modified", "a")]),
        ("exec_command", {"cmd": "cat a"}, [("read", "a")]),
        ("apply_patch", PATCH, PATCHED),
        ("apply_patch", {"input": PATCH}, PATCHED),
        ("shell", {"command": ["apply_patch", PATCH]}, PATCHED),
        ("read", "not an object", []),
        ("Bash", {"command": 7}, []),
        ("mcp__", {"path": "a"}, []),
    ],
)
def test_each_agents_tools_name_their_files(tool: str, arguments: Any, files: list[tuple[str, str]]) -> None:
    assert [tuple(one) for one in files_of(call(tool, arguments))] == files


def test_an_edit_that_failed_changed_nothing_and_a_command_that_failed_may_have() -> None:
    assert files_of(call("edit", {"path": "a"}, failed=True)) == []
    assert [one.path for one in files_of(call("bash", {"command": "echo > a"}, failed=True))] == ["a"]


def test_what_our_own_tools_say_of_their_files_counts_before_the_arguments() -> None:
    meta = {"changed": [{"path": "src/a.py", "bytes": 3}], "looked": [{"path": "src", "entries": 3}]}
    assert [tuple(one) for one in files_of(call("edit", {"path": "./src/a.py"}, meta=meta))] == [
        ("modified", "src/a.py")
    ]


def test_a_file_that_was_changed_is_not_among_those_that_were_only_read() -> None:
    calls = [call("read", {"path": "a"}), call("read", {"path": "b"}), call("edit", {"path": "a"})]
    assert [(one.path, one.mode) for one in touched(calls)] == [("a", "modified"), ("b", "read")]


def test_an_id_that_is_used_again_is_another_call() -> None:
    drafts = [assistant("", ("c", "bash")), result("c", "one"), assistant("", ("c", "bash")), assistant("", ("d", "x"))]
    found = asked([event_of(draft, seq) for seq, draft in enumerate(drafts)])
    assert [(one.seq, one.result, one.said) for one in found] == [(0, 1, "one"), (2, None, ""), (3, None, "")]


def test_a_patch_names_its_files_once() -> None:
    assert patched(PATCH + PATCH) == [path for _, path in PATCHED]
    assert patched("no patch") == []
