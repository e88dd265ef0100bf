"""What tools that edit, search, list and fetch say of files; which calls and results belong together, and where."""

from __future__ import annotations

from typing import Any

import pytest

import onward
from builders import user
from derived import HOME, answered, asked, line_of, seen
from onward import MemoryBackend, Store
from onward.evidence.derived.deriving import Deriver, derive
from onward.evidence.observation import Absent
from onward.model.event import APPEND, Draft, Event

PAIR = {"old_string": "b", "new_string": "B"}


def told(**fields: Any) -> dict[str, Any]:
    return {"meta": {"toolUseResult": fields}}


@pytest.mark.parametrize(
    ("name", "arguments", "text", "fields", "said"),
    [
        ("Edit", PAIR, "ok", {}, "changed file:a lines snip:'B' -'b'"),
        ("Edit", {**PAIR, "new_string": ""}, "ok", {}, "changed file:a lines -'b'"),
        ("Edit", PAIR, "ok", told(originalFile="a\nb\nb"), r"changed file:a whole 'a\nB\nb'"),
        ("Edit", PAIR, "ok", told(originalFile="a\nb\nb", replaceAll=True), r"changed file:a whole 'a\nB\nB'"),
        ("Edit", {"old_string": "", "new_string": "x"}, "ok", told(originalFile=""), "changed file:a whole 'x'"),
        ("Edit", PAIR, "ok", told(originalFile="nothing of it"), "changed file:a lines snip:'B' -'b'"),
        (
            "Edit",
            PAIR,
            "ok",
            told(
                originalFile="a\nb\nc",
                userModified=True,
                structuredPatch=[{"oldStart": 2, "newStart": 2, "lines": ["-b", "+X", " c"]}],
            ),
            r"changed file:a whole 'a\nX\nc'",
        ),
        (
            "Edit",
            PAIR,
            "ok",
            told(structuredPatch=[{"oldStart": 4, "newStart": 5, "lines": [" a", "-b", "+B", "\\ No newline"]}]),
            r"changed file:a lines 5:'a\nB' -'b'",
        ),
        (
            "Edit",
            PAIR,
            "The file a has been updated. The result of `cat -n` on a snippet:\n     7→a\n     8→B\n     9→",
            {},
            r"changed file:a lines 7:'a\nB' -'b'",
        ),
        (
            "MultiEdit",
            {"edits": [PAIR, {"old_string": "c", "new_string": "C"}]},
            "ok",
            {},
            "snip:'B' snip:'C' -'b' -'c'",
        ),
        (
            "MultiEdit",
            {"edits": [PAIR, {"old_string": "B", "new_string": "C", "replace_all": True}]},
            "ok",
            told(originalFileContents="b B"),
            "changed file:a whole 'C C'",
        ),
        (
            "Edit",
            {"old_string": "b", "new_string": ""},
            "ok",
            told(originalFile="a\nb\nc\n", structuredPatch=[{"oldStart": 1, "lines": [" a", "-b", " c"]}]),
            r"changed file:a whole 'a\nc\n'",
        ),
        ("Edit", {"old_string": "b", "new_string": ""}, "ok", told(originalFile="a\nb\n"), "-'b'"),
        (
            "Edit",
            PAIR,
            "ok",
            told(structuredPatch=[{"oldStart": 1, "newStart": 1, "lines": ["   x", "-  b", "+  B"]}]),
            "snip:'B' -'b'",
        ),
        ("NotebookEdit", {"notebook_path": "a", "new_source": "x"}, "ok", {}, "changed file:a ?"),
        ("edit", {"oldText": "b", "newText": "B"}, "ok", {}, "changed file:a lines snip:'B' -'b'"),
        ("edit", {"edits": [{"oldText": "b", "newText": "B"}]}, "ok", {}, "changed file:a lines snip:'B' -'b'"),
        (
            "edit",
            PAIR,
            "ok",
            {"meta": {"dsh": {"meta": {"diffs": [{"path": "a", "oldText": "x b", "newText": "x B"}]}}}},
            "changed file:a lines snip:'x B' -'x b'",
        ),
        ("Write", {"content": "x\n"}, "File created successfully at: a", {}, r"created file:a whole 'x\n'"),
        ("Write", {"content": "x"}, "The file a has been updated.", told(type="update"), "changed file:a whole 'x'"),
        ("write", {"content": "x"}, "Successfully wrote 1 bytes to a", {}, "changed file:a whole 'x'"),
        ("write", {"content": "x"}, "<content>\nCreated file\n</content>", {}, "created file:a whole 'x'"),
        ("write", {}, "ok", {}, "changed file:a ?"),
        ("str_replace_editor", {"command": "create", "file_text": "x"}, "ok", {}, "changed file:a whole 'x'"),
        ("str_replace_editor", {"command": "str_replace", "old_str": "b", "new_str": "B"}, "ok", {}, "snip:'B' -'b'"),
        ("str_replace_editor", {"command": "insert", "insert_line": 1}, "ok", {}, "changed file:a ?"),
        ("Edit", PAIR, "String to replace not found in file.", {"is_error": True}, ""),
        ("Edit", PAIR, "File does not exist.", {"is_error": True}, "looked file:a absent"),
    ],
)
def test_an_edit_says_what_it_put_there_and_what_it_took_out(
    name: str, arguments: dict[str, Any], text: str, fields: dict[str, Any], said: str
) -> None:
    arguments = arguments if "notebook_path" in arguments else {"file_path": "a", **arguments}
    found = seen(name, arguments, text, **fields)
    assert found == ([said if " file:" in said else f"changed file:a lines {said}"] if said else [])


PATCH = """*** Begin Patch
*** Add File: n/new.py
+x
+
*** Update File: old.py
@@ def f():
 a
-b
+B
@@
-c
*** Update File: one.py
*** Move to: two.py
@@
 a
+z
*** End of File
*** Delete File: gone.md
*** End Patch
"""
PATCHED = [
    r"created file:n/new.py whole 'x\n\n'",
    r"changed file:old.py lines ?:'a\nB' -'a\nb' -'c'",
    "moved file:one.py -> two.py absent",
    r"changed file:two.py lines ?:'a\nz' end -'a'",
    "deleted file:gone.md absent",
]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("apply_patch", PATCH),
        ("apply_patch", {"input": PATCH}),
        ("apply_patch", {"patch": "\n" + PATCH.replace("\n", "\r\n").replace("+\r", "+\r")}),
        ("shell", {"command": ["apply_patch", PATCH]}),
        ("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}EOF"]}),
        ("exec_command", {"cmd": f"cd /w && apply_patch <<'EOF'\n{PATCH}EOF"}),
    ],
)
def test_a_patch_says_what_it_did_to_each_file_however_it_is_called(name: str, arguments: Any) -> None:
    assert seen(name, arguments, "Success. Updated the following files:\nA n/new.py") == PATCHED
    assert not any("whole" in one for one in seen(name, arguments, "Failed", is_error=True))
    for said in (
        "apply_patch verification failed: Failed to find expected lines in old.py",
        "Exit code: 1\nOutput:\nno",
    ):
        assert not any("whole" in one or "absent" in one for one in seen(name, arguments, said))


@pytest.mark.parametrize(
    ("arguments", "text", "fields", "said"),
    [
        ({}, "Found 2 files\nsrc/a\nsrc/b", {}, "matches ['src/a::', 'src/b::'] all"),
        ({"path": "src"}, "Found 1 file\nsrc/a", {}, "matches ['src/a::'] all in src"),
        ({}, "No files found", {}, "matches [] all"),
        ({"head_limit": 1}, "Found 1 file limit: 1\nsrc/a", {}, "matches ['src/a::']"),
        ({}, "ignored", told(mode="files_with_matches", filenames=["a"], numFiles=1), "matches ['a::'] all"),
        ({"output_mode": "content", "-n": True}, "src/a.py:3:x = 1", {}, "matches ['src/a.py:3:x = 1'] all"),
        ({"output_mode": "content", "-n": True, "path": "a.py"}, "3:x", {}, "matches ['a.py:3:x'] all in a.py"),
        ({"output_mode": "content"}, "src/a.py:x = 1", {}, "matches ['src/a.py::x = 1'] all"),
        ({"output_mode": "content", "-n": True}, "No matches found", {}, "matches [] all"),
        (
            {"output_mode": "content", "-n": True, "head_limit": 1},
            "a.py:3:x\n\n[Showing results with pagination = limit: 1]",
            {},
            "matches ['a.py:3:x']",
        ),
        ({"output_mode": "count"}, "a.py:3\n\nFound 3 total occurrences across 1 file.", {}, "?"),
        (
            {"output_mode": "content", "-n": True},
            "a.py:3:x\na.py:4:[Omitted long matching line]",
            {},
            "matches ['a.py:3:x']",
        ),
        (
            {"output_mode": "content", "-n": True},
            "b",
            told(mode="content", content="a.py:3:x"),
            "matches ['a.py:3:x'] all",
        ),
    ],
)
def test_a_search_of_claude_code_says_what_it_found(
    arguments: dict[str, Any], text: str, fields: dict[str, Any], said: str
) -> None:
    arguments = {"pattern": "x", "output_mode": "files_with_matches", **arguments}
    assert seen("Grep", arguments, text, **fields) == [f"searched query:x {said}"]


@pytest.mark.parametrize(
    ("arguments", "text", "said"),
    [
        ({"path": "src"}, "a.py:3: x", "searched query:x matches ['src/a.py:3:x'] all in src"),
        ({"path": "src/a.py"}, "a.py:3: x", "searched query:x matches ['src/a.py:3:x'] all in src/a.py"),
        ({}, "a.py:3: x\n\n[100 matches limit reached. Refine pattern]", "searched query:x matches ['a.py:3:x']"),
        ({}, "No matches found", "searched query:x matches [] all"),
        ({"path": "src", "context": 1}, "a.py-2- w\na.py:3: x", r"looked file:src/a.py lines 2:'w\nx'"),
    ],
)
def test_a_search_of_pi_says_what_it_found(arguments: dict[str, Any], text: str, said: str) -> None:
    assert seen("grep", {"pattern": "x", **arguments}, text) == [said]


@pytest.mark.parametrize(
    ("name", "arguments", "text", "fields", "said"),
    [
        ("Glob", {"pattern": "**/*.py"}, "/w/a.py\n/w/s/b.py", {}, ". names ['a.py', 's/b.py'] **/*.py deep"),
        ("Glob", {"pattern": "*.py", "path": "/w/s"}, "/w/s/b.py", {}, "/w/s names ['b.py'] *.py"),
        ("Glob", {"pattern": "*.py", "path": "./s"}, "s/b.py", {}, "./s names ['b.py'] *.py"),
        ("Glob", {"pattern": "*.py"}, "No files found", {}, ". names [] *.py"),
        ("Glob", {"pattern": "*.py"}, "a.py\n(Results are truncated. Consider a path.)", {}, ". names ['a.py'] *.py"),
        ("Glob", {"pattern": "*.py"}, "x", told(filenames=["/w/a.py"]), ". names ['a.py'] *.py"),
        (
            "glob",
            {"pattern": "*", "path": "t"},
            "x",
            {"meta": {"dsh": {"meta": {"paths": ["t/a"]}}}},
            "t names ['a'] *",
        ),
        ("find", {"pattern": "*.py", "path": "s"}, "b.py\nd/c.py", {}, "s names ['b.py', 'd/c.py'] *.py"),
        ("ls", {"path": "s"}, "a\nd/", {}, "s names ['a', 'd/'] all hidden"),
        ("ls", {}, "a\n\n[500 entries limit reached. Use limit=1000 for more]", {}, ". names ['a'] hidden"),
        ("ls", {}, "(empty directory)", {}, ". names [] all hidden"),
        ("LS", {"path": "/w"}, "- /w/\n  - a\n  - s/\n    - b\n\nNOTE: x", {}, "/w names ['a', 's/', 's/b'] deep"),
    ],
)
def test_a_list_says_which_names_there_were(
    name: str, arguments: dict[str, Any], text: str, fields: dict[str, Any], said: str
) -> None:
    assert seen(name, arguments, text, **fields) == [f"listed directory:{said}"]


def test_names_of_files_elsewhere_are_no_list_of_a_directory() -> None:
    assert seen("Glob", {"pattern": "*"}, "/else/a") == ["listed directory:. ?"]
    assert seen("bash", {"command": "find src -type f"}, "/else/a\n") == ["looked directory:src ?"]


def test_what_a_page_or_a_search_engine_said_cannot_be_checked() -> None:
    assert seen("WebFetch", {"url": "https://x.invalid/a", "prompt": "p"}, "t") == ["looked url:https://x.invalid/a ?"]
    assert seen("web_fetch", {"url": "https://x.invalid/a"}, "no", is_error=True) == []
    assert seen("WebSearch", {"query": "q"}, "t") == ["searched query:q ?"]


def test_tools_that_look_at_nothing_say_nothing() -> None:
    for name in ("TodoWrite", "Task", "todo_write", "mcp__x__y", "update_plan", "BashOutput"):
        assert seen(name, {"path": "a", "todos": []}, "x") == []


# --- the path ---------------------------------------------------------------------------------------------------


def test_a_result_belongs_to_the_call_of_its_id_that_has_none_yet() -> None:
    events = [
        asked(0, "read", {"path": "a"}, "c"),
        asked(1, "read", {"path": "b"}, "c"),
        answered(2, "x", "c"),
        answered(3, "y", "c"),
        answered(4, "z", "c"),
        answered(5, "z", "d"),
    ]
    assert [line_of(one) for one in derive(events, HOME)] == ["looked file:a whole 'x'", "looked file:b whole 'y'"]


PATHS = ("n/new.py", "old.py", "one.py", "two.py", "gone.md")


def said(text: str, seq: int) -> Event:
    message = {"role": "user", "blocks": [{"type": "text", "text": text}]}
    return Event(seq=seq, type="user/message", time=0, data={"message": message, "source": "user"})


@pytest.mark.parametrize(
    ("name", "arguments", "lost"),
    [
        ("edit", {"path": "a", "oldText": "x", "newText": "y"}, ["changed file:a ?"]),
        ("Write", {"file_path": "a", "content": "x"}, ["changed file:a ?"]),
        ("bash", {"command": "rm a; cat b"}, ["changed file:a ?"]),
        (
            "apply_patch",
            {"input": PATCH},
            [f"changed file:{at} ?" for at in ("n/new.py", "old.py", "one.py", "two.py", "gone.md")],
        ),
        ("str_replace_editor", {"command": "view", "path": "a"}, []),
        ("read", {"path": "a"}, []),
        ("bash", {"command": "cat a"}, []),
    ],
)
def test_a_call_that_never_got_a_result_may_have_changed_what_it_was_to_change(
    name: str, arguments: dict[str, Any], lost: list[str]
) -> None:
    call = asked(0, name, arguments)
    for events in ([call], [call, said("go on", 1)], [call, said("go on", 1), said("go on", 2)]):
        assert [line_of(one) for one in derive(events, HOME)] == lost
    late = derive([call, said("hurry", 1), answered(2, "x")], HOME)
    assert [line_of(one) for one in late][: len(lost)] == lost and {one.seq for one in late[len(lost) :]} <= {2}
    for code, expected in (("TOOL_OUTCOME_UNKNOWN", lost), ("TOOL_NOT_STARTED", [])):
        assert seen(name, arguments, "Nobody knows.", how="synthetic", code=code) == expected


def test_a_path_that_grew_is_gone_on_with() -> None:
    events = [
        asked(0, "read", {"path": "a"}, "c"),
        Event(seq=1, type="tool/call", time=0, data={"call_id": "c", "name": "read"}),
        answered(2, "x", "c"),
        asked(3, "bash", {"command": "cat b"}, "d"),
        answered(4, "y\n", "d"),
    ]
    whole = derive(events, HOME)
    assert [(one.seq, one.call, one.call_id) for one in whole] == [(2, 1, "c"), (4, None, "d")]
    for cut in range(len(events) + 1):
        deriver = Deriver(HOME)
        assert (*deriver.take(events[:cut]), *deriver.take(events[cut:]), *deriver.pending()) == whole
        assert deriver.seq == 4


def test_a_call_is_meant_from_the_directory_of_its_line_or_of_the_turns_settings() -> None:
    def context(seq: int, **data: Any) -> Event:
        return Event(seq=seq, type="model/selected", time=0, data=data)

    events = [
        asked(0, "Read", {"file_path": "a"}, "1", cwd="/w/sub"),
        answered(1, "     1→x", "1"),
        context(2, meta={"cwd": "/v"}),
        asked(3, "shell", {"command": ["cat", "a"]}, "2"),
        answered(4, "x\n", "2"),
        context(5, meta={"same_as": 2}),
        asked(6, "shell", {"command": ["cat", "a"], "workdir": "s"}, "3"),
        answered(7, "x\n", "3"),
        context(8, meta={"cwd": HOME}),
        asked(9, "shell", {"command": ["cat", "a"]}, "4"),
        answered(10, "x\n", "4"),
    ]
    assert [one.subject.cwd for one in derive(events, HOME)] == ["/w/sub", "/v", "/v/s", None]


def test_several_results_in_one_message_are_as_many_results() -> None:
    results = [
        {"type": "tool_result", "call_id": name, "content": [{"type": "text", "text": f"     1→{name}"}]}
        for name in ("1", "2")
    ]
    data = {"message": {"role": "tool", "blocks": results}, "kind": "tool-results"}
    events = [
        asked(0, "Read", {"file_path": "a"}, "1"),
        asked(1, "Read", {"file_path": "b"}, "2"),
        Event(seq=2, type="custom/message", time=0, data=data),
    ]
    found = derive(events, HOME)
    assert [line_of(one) for one in found] == ["looked file:a lines 1:'1' end", "looked file:b lines 1:'2' end"]


def test_a_fork_has_what_it_inherited_and_a_compaction_takes_nothing_away() -> None:
    with Store(user="me", backend=MemoryBackend(), sync="never") as store:
        with store.create(cwd=HOME) as session:
            session.append(user("Look at it."))
            drafts = [asked(0, "read", {"path": "a"}, "1"), answered(1, "x\n", "1")]
            call, result = session.append(*[Draft(type=one.type, data=one.data, surface=APPEND) for one in drafts])
            session.observe("file:noted", "by hand", Absent())
            session.summary("They read a file.", onward.replace(call.seq, result.seq), [call.seq, result.seq])
            told = [(one.seq, line_of(one)) for one in session.observations()]
            assert told == [(result.seq, r"looked file:a whole 'x\n'"), (result.seq + 1, "looked file:noted absent")]
            assert session.node(call.seq).observations() == ()
        with store.open(session.id, write=False) as parent, store.fork(parent) as fork:
            assert [(one.seq, line_of(one)) for one in fork.observations()] == told
