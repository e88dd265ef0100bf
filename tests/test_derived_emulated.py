"""A made file, shown as each tool shows files, is derived back as exactly the lines shown; and nothing ever raises."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from derived import HOME, answered, asked
from onward.evidence.derived.deriving import derive
from onward.evidence.observation import Fingerprint, Lines, Whole
from onward.model.script import lexed
from test_format_retyped import retyped

lines = st.lists(
    st.text(st.characters(blacklist_characters="\n\r", blacklist_categories=("Cs",)), max_size=12)
    | st.sampled_from(["", " ", "\t1→x", "2: y", "</content>", "--", "…", "x" * 30, "[3 more lines in file]"]),
    min_size=1,
    max_size=8,
)


def known(then: Fingerprint) -> tuple[dict[int, str], bool]:
    """The lines of a file that are known, by number; whether it is known that there are no more."""
    if isinstance(then, Whole):
        assert then.text is not None
        body = then.text.removesuffix("\n")
        return dict(enumerate(body.split("\n"), 1)) if then.text else {}, True
    assert isinstance(then, Lines) and not then.replaced
    out = {}
    for part in then.excerpts:
        assert part.first is not None and not part.cut
        out |= dict(enumerate(part.text.split("\n"), part.first))
    return out, then.ends


def claude_rows(file: list[str], first: int, last: int) -> Any:
    rows = [*file, ""][first - 1 : last]
    text = "\n".join(f"{number:6}→{line}" for number, line in enumerate(rows, first))
    return {"file_path": "a", "offset": first, "limit": last - first + 1}, text, {}


def claude_told(file: list[str], first: int, last: int) -> Any:
    rows = [*file, ""][first - 1 : last] if last < len(file) else [*file, ""][first - 1 :]
    kept = {"content": "\n".join(rows), "startLine": first, "numLines": len(rows), "totalLines": len(file) + 1}
    return {"file_path": "a"}, "", {"meta": {"toolUseResult": {"type": "text", "file": kept}}}


def pi(file: list[str], first: int, last: int) -> Any:
    rows = [*file, ""]
    text = "\n".join(rows[first - 1 : last])
    if last < len(file):
        text += f"\n\n[{len(rows) - last} more lines in file. Use offset={last + 1} to continue.]"
    else:
        text = "\n".join(rows[first - 1 :])
    return {"path": "a", "offset": first, "limit": last - first + 1}, text, {}


def dsh(file: list[str], first: int, last: int) -> Any:
    rows = [f"{number}: {line}" for number, line in enumerate(file[first - 1 : last], first)]
    end = f"(End of file - total {len(file)} lines)" if last >= len(file) else "(Showing part of it.)"
    text = "\n".join(["<path>/w/a</path>", "<type>file</type>", "<content>", *rows, "", end, "</content>"])
    return {"file_path": "a"}, text, {"meta": {"dsh": {}}}


def own(file: list[str], first: int, last: int) -> Any:
    rows = [f"{number}\t{line}" for number, line in enumerate(file[first - 1 : last], first)]
    data = "".join(f"{line}\n" for line in file).encode()
    looked = {"path": "a", "sha256": "0" * 64, "bytes": len(data), "lines": [first, min(last, len(file))]}
    notes = [f"[lines {first} to {last} of {len(file)}; go on]"] if last < len(file) else []
    return {"path": "a"}, "\n".join([*rows, *notes]), {"meta": {"looked": [{**looked, "of": len(file)}]}}


def sed(file: list[str], first: int, last: int) -> Any:
    text = "".join(f"{line}\n" for line in file[first - 1 : last])
    output = json.dumps({"output": text, "metadata": {"exit_code": 0}})
    return {"command": ["bash", "-lc", f"sed -n '{first},{last}p' a"]}, output, {}


def nl(file: list[str], first: int, last: int) -> Any:
    rows = [f"{number:6}\t{line}" for number, line in enumerate(file, 1)]
    return {"command": ["bash", "-lc", "nl -ba a"]}, "\n".join(rows) + "\n", {}


EMULATED: dict[str, tuple[str, Callable[[list[str], int, int], Any]]] = {
    "Claude Code, as shown": ("Read", claude_rows),
    "Claude Code, as kept": ("Read", claude_told),
    "Pi": ("read", pi),
    "DeepSeek Harness": ("read", dsh),
    "our own": ("read", own),
    "Codex, sed": ("shell", sed),
    "Codex, nl": ("shell", nl),
}


@pytest.mark.parametrize("tool", EMULATED)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(file=lines, data=st.data())
def test_a_file_that_a_tool_showed_is_derived_back_as_the_lines_shown(
    tool: str, file: list[str], data: st.DataObject
) -> None:
    first = data.draw(st.integers(1, len(file)))
    last = data.draw(st.integers(first, len(file) + 1))
    name, show = EMULATED[tool]
    arguments, text, fields = show(file, first, last)
    if text == "" and "meta" not in fields:
        return  # nothing was recorded
    (seen,) = derive([asked(0, name, arguments), answered(1, text, **fields)], HOME)
    if tool == "our own" and first == 1 and last >= len(file):
        return  # the digest has to fit for the text to count: see the test with real tools
    if isinstance(seen.then, (Whole, Lines)):
        shown, ends = known(seen.then)
        low, high = (1, len(file)) if tool == "Codex, nl" else (first, min(last, len(file)))
        expected = {number: file[number - 1] for number in range(low, high + 1)}
        # A tool may leave it open whether an empty last line is one: then it is not claimed.
        assert shown.items() <= expected.items()
        assert {number for number in expected if number not in shown} <= ({high} if file[high - 1] == "" else set())
        assert not ends or high == len(file)


def of_claude(**told: Any) -> dict[str, Any]:
    return {"meta": {"toolUseResult": told}}


def of_dsh(**told: Any) -> dict[str, Any]:
    return {"meta": {"dsh": {"meta": told}}}


# --- nothing raises ---------------------------------------------------------------------------------------------

CORPUS: list[tuple[str, Any, str, dict[str, Any]]] = [
    ("Read", {"file_path": "a", "offset": 1}, "     1→x", {"meta": claude_told(["x"], 1, 1)[2]["meta"], "code": "x"}),
    ("read", {"path": "a", "limit": 2}, "x\n\n[5 more lines in file. Use offset=3 to continue.]", {}),
    ("read", {"file_path": "a"}, "x", of_dsh(lines=[{"number": 1, "text": "x"}], totalLines=1)),
    ("read", {"path": "a"}, "1\tx", {"meta": {"looked": [{"path": "a", "lines": [1, 1], "of": 1, "bytes": 2}]}}),
    ("list", {"path": "a"}, "x  1", {"meta": {"looked": [{"path": "a", "entries": 1}]}}),
    ("search", {}, "a:1: x", {"meta": {"looked": [{"path": "a", "matches": [1]}], "search": {"pattern": "x"}}}),
    ("edit", {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}, "ok", {"meta": {"changed": [{"path": "a"}]}}),
    (
        "Edit",
        {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": True},
        "snippet\n     1→x",
        of_claude(
            originalFile="z",
            edits=[{"old_string": "x", "new_string": "y"}],
            structuredPatch=[{"oldStart": 1, "newStart": 1, "lines": ["-x", "+y"]}],
        ),
    ),
    ("edit", {"path": "a", "old_string": "x", "new_string": "y"}, "x", of_dsh(diffs=[{"oldText": "x"}])),
    ("Write", {"file_path": "a", "content": "x"}, "x", of_claude(type="create", content="x")),
    (
        "Grep",
        {"pattern": "x", "path": "a", "output_mode": "content", "-A": 1},
        "a:1:x",
        of_claude(mode="content", filenames=["a"]),
    ),
    ("grep", {"pattern": "x", "context": 1}, "a:1: x", {"meta": {"details": {"truncation": {}}}}),
    ("Glob", {"pattern": "x", "path": "a"}, "a", of_claude(filenames=["a"])),
    ("glob", {"pattern": "x"}, "a", of_dsh(paths=["a"])),
    ("ls", {"path": "a"}, "- /a/\n  - b", {}),
    ("shell", {"command": ["bash", "-lc", "cat a"]}, '{"output": "x", "metadata": {"exit_code": 0}}', {}),
    ("local_shell", {"action": {"command": ["cat", "a"]}}, "x", {"meta": {"exit": 0}}),
    ("Bash", {"command": "ls -la | head; rm b"}, "x", of_claude(stdout="x", stderr="y")),
    ("apply_patch", {"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}, "x", {}),
    ("WebFetch", {"url": "https://x.invalid"}, "x", {}),
    ("str_replace_editor", {"command": "str_replace", "path": "a", "old_str": "x"}, "x", {}),
    ("view_image", {"path": "a"}, "x", {"content": [{"type": "image", "sha256": "0", "size": 1}]}),
]


@pytest.mark.parametrize("number", range(len(CORPUS)), ids=[entry[0] for entry in CORPUS])
def test_a_value_of_another_type_anywhere_raises_nothing(number: int) -> None:
    name, arguments, text, fields = CORPUS[number]
    call, result = asked(0, name, arguments, cwd="/w"), answered(1, text, **fields)
    assert derive([call, result], HOME), "each of these says something as it is"
    for raw in retyped(copy.deepcopy([call.data, result.data])):
        first, second = json.loads(raw)
        for home in (HOME, None):
            changed = [_with(call, first), _with(result, second)]
            assert isinstance(derive(changed, home), tuple)


def _with(event: Any, data: Any) -> Any:
    from msgspec.structs import replace

    return replace(event, data=data)


WORDS = [
    "cat",
    "a",
    "sed",
    "-n",
    "1,2p",
    "|",
    "head",
    "-1",
    "&&",
    "cd",
    "/x",
    "grep",
    "-A1",
    ";",
    ">",
    "b",
    "ls",
    "-la",
]
WORDS += ["find", ".", "-name", "'*'", "tee", "echo", "||", "rm", "nl", "-ba", "tail", "rg", "<<E\nx\nE\n"]
SHELL = st.text(alphabet="ab c\n'\"\\$`(){}<>|&;#*?=-/~\t0", max_size=40) | st.builds(
    " ".join, st.lists(st.sampled_from(WORDS), max_size=9)
)


@settings(max_examples=70, deadline=None)
@given(SHELL, st.text(alphabet="ab:-\n1 =>./", max_size=30), st.booleans())
def test_no_script_and_no_output_raises_anything(script: str, output: str, failed: bool) -> None:
    for event in (
        answered(1, output, is_error=failed),
        answered(1, output, meta={"toolUseResult": {"stdout": output}}),
    ):
        derive([asked(0, "bash", {"command": script}), event], HOME)


@pytest.mark.parametrize(
    "text", ["\n" * 30_000, "{," * 30_000, "... 1" * 9_000, "(Omitted " * 9_000, " " * 60_000, "a:1:" * 9_000]
)
def test_an_output_or_a_script_that_is_long_and_odd_takes_no_longer_than_others(text: str) -> None:
    # Were any of it quadratic, this would take minutes.
    for script in ("cat a", "grep -n -A1 x a", "ls -l", text):
        for said in (text, f"x{text}y", "ok"):
            derive([asked(0, "bash", {"command": script}), answered(1, said)], HOME)
    head = f"*** Begin Patch\n*** Update File: {text}x\n"
    derive([asked(0, "apply_patch", {"input": head}), answered(1, text)], HOME)
    for name in ("Read", "read", "Grep", "Glob", "LS", "Edit"):
        arguments = {"file_path": "a", "path": "a", "pattern": "x", "old_string": "a", "new_string": text}
        derive([asked(0, name, arguments), answered(1, text)], HOME)


def test_a_call_with_very_many_files_or_edits_takes_no_longer_than_others() -> None:
    # Were any of it quadratic, this would take minutes.
    files = [f"f{number}" for number in range(5_000)]
    heads = "".join(f"==> {name} <==\nx\n\n" for name in files)
    assert len(derive([asked(0, "bash", {"command": f"head -1 {' '.join(files)}"}), answered(1, heads)], HOME)) == 5_000
    edits = [{"oldText": f"a{number}" * 1_000, "newText": f"b{number}" * 1_000} for number in range(1_000)]
    (seen,) = derive([asked(0, "edit", {"path": "a", "edits": edits}), answered(1, "ok")], HOME)
    assert isinstance(seen.then, Lines) and len(seen.then.replaced) == 1_000


@settings(max_examples=60, deadline=None)
@given(SHELL)
def test_a_script_has_tokens_or_none_and_no_word_is_made_up(script: str) -> None:
    tokens = lexed(script)
    for token in tokens or ():
        text = token.text if hasattr(token, "text") else token.target.text
        assert all(character in script for character in text)


def words(script: str) -> Iterator[str]:
    for token in lexed(script) or ():
        yield getattr(token, "text", "")


def test_words_are_what_sh_makes_of_them() -> None:
    import subprocess

    for script in (
        'a \'b c\' "d\\"e" f\\ g',
        "a\\\nb c#d #e",
        "'a'\"b\"c",
        "\"a\\b\\\\c\" '$x' \\$x",
        '"a\\\nb"',
        "a '' \"\"",
    ):
        run = subprocess.run(["sh", "-c", f"printf '%s\\n' {script}"], capture_output=True, text=True, check=True)
        assert list(words(script)) == run.stdout.removesuffix("\n").split("\n")
