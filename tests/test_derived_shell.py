"""What shell commands say of files: only plain readers and writers, and only where it is sure what they did."""

from __future__ import annotations

import json
from typing import Any

import pytest

from derived import seen
from test_derived_emulated import of_claude


def ran(command: Any, output: str, **fields: Any) -> list[str]:
    return seen("bash", {"command": command}, output, **fields)


A = "looked file:a"


@pytest.mark.parametrize(
    ("command", "output", "said"),
    [
        ("cat a", "x\ny\n", [rf"{A} lines 1:'x\ny' end"]),
        ("cat -n a", "     1\tx\n     2\ty\n", [rf"{A} lines 1:'x\ny' end"]),
        ("nl -ba a", "     1\tx\n     2\t\n", [rf"{A} lines 1:'x\n' end"]),
        ("sed -n '1,2p' a", "x\ny\n", [rf"{A} lines 1:'x\ny'"]),
        ("sed -n 3,9p a", "x\ny\n", [rf"{A} lines 3:'x\ny' end"]),
        ("sed -n '7p' a", "x\n", [f"{A} lines 7:'x'"]),
        ("sed -n '5,$p' a", "x\n\n", [rf"{A} lines 5:'x\n' end"]),
        ("head -2 a", "x\ny\n", [rf"{A} lines 1:'x\ny'"]),
        ("head -n 5 a", "x\ny\n", [rf"{A} lines 1:'x\ny' end"]),
        ("head a", "x\n", [f"{A} lines 1:'x' end"]),
        ("tail -n 2 a", "x\ny\n", [rf"{A} lines ?:'x\ny' end"]),
        ("tail -n +4 a", "x\n", [f"{A} lines 4:'x' end"]),
        ("cat a | head -1", "x\n", [f"{A} lines 1:'x'"]),
        ("cat a | tail -1", "x\n", [f"{A} lines ?:'x' end"]),
        ("find a | tail -n +2", "", ["looked directory:a ?"]),
        ("cat a | sed -n 2,3p", "x\n", [f"{A} lines 2:'x' end"]),
        ("nl -ba a | head -1", "     1\tx\n", [f"{A} lines 1:'x'"]),
        ("head -1 a b", "==> a <==\nx\n\n==> b <==\ny\n", [f"{A} lines 1:'x'", "looked file:b lines 1:'y'"]),
        ("cat a b", "x\ny\n", [f"{A} ?", "looked file:b ?"]),
        ("cat a && echo --- && cat b", "x\n---\ny\n", [f"{A} lines 1:'x'", "looked file:b lines 1:'y' end"]),
        ("echo ==a; cat a", "==a\nx\n", [f"{A} lines 1:'x' end"]),
        ("cat a && cat b", "x\ny\n", [f"{A} ?", "looked file:b ?"]),
        ("cat a && echo x && cat b", "x\nx\ny\n", [f"{A} ?", "looked file:b ?"]),
        ("cd /w && cat a", "x\n", [f"{A} lines 1:'x' end"]),
        ("cd /else && cat a", "x\n", [f"{A}@/else lines 1:'x' end"]),
        ("cd sub && cat a", "x\n", [f"{A}@/w/sub lines 1:'x' end"]),
        ("cd $D && cat a", "x\n", ["looked command:cd $D && cat a ?"]),
        ("cat ~/a", "x\n", ["looked file:~/a lines 1:'x' end"]),
        ("cat 'b c'", "x\n", ["looked file:b c lines 1:'x' end"]),
        ("cat a 2>/dev/null || echo none", "x\n", [f"{A} lines 1:'x' end"]),
        ("cat a 2>/dev/null || echo none", "none\n", ["looked command:cat a 2>/dev/null || echo none ?"]),
        ("cat a | head -5", "cat: a: No such file or directory\n", [f"{A} absent"]),
        ("cat a | head -5", "cat: a: Permission denied\n", []),
        ("bash -lc 'cat a'", "x\n", [f"{A} lines 1:'x' end"]),
        ("bash -lc 'cat a' | head -3", "x\n", ["looked command:bash -lc 'cat a' | head -3 ?"]),
        ("bash x.sh", "x\n", ["looked command:bash x.sh ?"]),
        ("cat *.py", "x\n", ["looked command:cat *.py ?"]),
        ("cat a | python3 x.py", "x\n", ["looked command:cat a | python3 x.py ?"]),
        ("cat a; make", "x\n", [f"{A} ?", "looked command:cat a; make ?"]),
        ("wc -l a", "3 a\n", ["looked command:wc -l a ?"]),
        ("git show abc:a", "x\n", ["looked command:git show abc:a ?"]),
        ("for f in a; do cat $f; done", "x\n", ["looked command:for f in a; do cat $f; done ?"]),
        ("cat a &", "x\n", ["looked command:cat a & ?"]),
        ("nl a", "     1\tx\n", ["looked command:nl a ?"]),
        ("cat 'a", "x\n", ["looked command:cat 'a ?"]),
    ],
)
def test_a_plain_reader_covers_what_it_printed(command: str, output: str, said: list[str]) -> None:
    expected = said or [f"looked command:{command} ?"]
    assert ran(command, output) == expected


@pytest.mark.parametrize(
    ("command", "output", "said"),
    [
        ("grep -n x a", "3:x = 1\n", ["searched query:x matches ['a:3:x = 1'] all in a"]),
        ("grep x a", "x = 1\n", ["searched query:x matches ['a::x = 1'] all in a"]),
        ("grep -rn x src", "src/a.py:3:x = 1\n", ["searched query:x matches ['src/a.py:3:x = 1'] all in src"]),
        ("grep -rn x .", "./a-1-b.py:3:x\n", ["searched query:x matches ['a-1-b.py:3:x'] all in ."]),
        ("grep -n x a b", "a:1:x\nb:2:x\n", ["searched query:x matches ['a:1:x', 'b:2:x']"]),
        ("grep -rl x src", "src/a\nsrc/b\n", ["searched query:x matches ['src/a::', 'src/b::'] all in src"]),
        ("rg x -n", "a.py:3:x\n", ["searched query:x matches ['a.py:3:x'] all"]),
        ("rg -n x src", "src/a.py:3:x\n", ["searched query:x matches ['src/a.py:3:x'] all in src"]),
        ("rg -n x a.py", "3:x\n", ["searched query:x matches ['a.py:3:x'] all in a.py"]),
        ("rg x -g '*.ts'", "a.ts:x\n", ["searched query:x matches ['a.ts::x'] all"]),
        ("grep -n x a | head -2", "1:x\n2:x\n", ["searched query:x matches ['a:1:x', 'a:2:x'] in a"]),
        ("grep -n x a | head -2", "1:x\n", ["searched query:x matches ['a:1:x'] all in a"]),
        ("grep -n x a | tail -1", "2:x\n", ["searched query:x matches ['a:2:x'] in a"]),
        ("grep -n x a | grep -v y", "2:x\n", ["searched query:x matches ['a:2:x'] in a"]),
        ("cat a | grep -n x", "2:x\n", ["searched query:x matches ['a:2:x'] all in a"]),
        ("grep -A 2 x a", "x\ny\nz\n--\nx\n", [rf"{A} lines ?:'x\ny\nz' ?:'x'"]),
        ("grep -n -C1 x a", "4-w\n5:x\n6-y\n--\n9:x\n", [rf"{A} lines 4:'w\nx\ny' 9:'x'"]),
        ("grep -rn -A1 x s", "s/a-2-:1:x\ns/a-2--2-y\n", ["looked command:grep -rn -A1 x s ?"]),
        ("grep -rn -A1 x s", "s/a-2-b.py:1:x\ns/a-2-b.py-2-y\n", [r"looked file:s/a-2-b.py lines 1:'x\ny'"]),
        ("grep -rn -B1 x s", "s/a.py-1-y\ns/a.py:2:x\n", [r"looked file:s/a.py lines 1:'y\nx'"]),
        ("cat a | grep -A 1 x", "x\ny\n", [rf"{A} lines ?:'x\ny'"]),
        ("grep -c x a", "3\n", ["looked command:grep -c x a ?"]),
        ("grep -n x a | wc -l", "3\n", ["looked command:grep -n x a | wc -l ?"]),
        ("grep -o x a", "x\n", ["looked command:grep -o x a ?"]),
        ("grep -n x a | head", "grep: a: No such file or directory\n", [f"{A} absent"]),
    ],
)
def test_a_search_covers_the_lines_that_it_printed(command: str, output: str, said: list[str]) -> None:
    assert ran(command, output) == said


LONG = """total 8
drwxr-xr-x  3 me  staff   96 Oct 20 20:35 .
drwxr-xr-x@ 29 me  staff  928 Oct 20 14:55 ..
-rw-r--r--  1 me  staff  421 Oct 20 21:06 a b.txt
lrwxrwxrwx  1 me  me       3 2024-01-02 10:11 link -> sub
drwxr-xr-x  2 me  me    4.0K Jan  2  2023 sub
"""


@pytest.mark.parametrize(
    ("command", "output", "said"),
    [
        ("ls", "a\nb\n", ["listed directory:. names ['a', 'b'] all"]),
        ("ls -a src", ".\n..\n.x\na\n", ["listed directory:src names ['.x', 'a'] all hidden"]),
        ("ls -la", LONG, ["listed directory:. names ['a b.txt', 'link', 'sub/'] all hidden"]),
        ("ls src/*.py", "src/a.py\nsrc/b.py\n", ["listed directory:src/ names ['a.py', 'b.py'] *.py all"]),
        ("ls | head -1", "a\n", ["listed directory:. names ['a']"]),
        ("ls -R", "a:\nb\n", ["looked command:ls -R ?"]),
        ("ls a b", "a:\nx\n\nb:\ny\n", ["looked command:ls a b ?"]),
        ("ls a.py", "a.py\n", ["listed file:a.py ?"]),
        ("ls gone", "ls: gone: No such file or directory\n", ["looked directory:gone absent"]),
        ("find . -name '*.py' -type f", "./a.py\n./s/b.py\n", ["names ['a.py', 's/b.py'] *.py all deep hidden"]),
        ("find src -type f | head -1", "src/a.py\n", ["names ['a.py'] deep hidden"]),
        ("find src -name x -o -name y", "src/x\n", ["names ['x'] deep hidden"]),
        ("find . -type f | grep -v node | sort", "./a\n", ["names ['a'] deep hidden"]),
        ("find . -delete", "", ["looked command:find . -delete ?"]),
        ("find . -exec cat {} +", "x\n", ["looked command:find . -exec cat {} + ?"]),
    ],
)
def test_a_list_covers_the_names_that_it_printed(command: str, output: str, said: list[str]) -> None:
    told = ran(command, output)
    assert [
        one.partition("names ")[2] and "names " + one.partition("names ")[2] for one in told
    ] == said or told == said


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("cat > a <<'EOF'\nx $y\nEOF", [r"changed file:a whole 'x $y\n'"]),
        ("cat <<EOF > a\nx\nEOF", [r"changed file:a whole 'x\n'"]),
        ("cat <<EOF > a\n$x\nEOF", ["changed file:a ?", "looked command:cat <<EOF > a\n$x\nEOF ?"]),
        ("cat >> a <<'EOF'\nx\ny\nEOF", [r"changed file:a lines snip:'x\ny' end"]),
        ("tee a > /dev/null <<'EOF'\nx\nEOF", [r"changed file:a whole 'x\n'"]),
        ("echo x y > a", [r"changed file:a whole 'x y\n'"]),
        ("echo x >> a", ["changed file:a lines snip:'x' end"]),
        (r"printf 'x\n\ty' > a", [r"changed file:a whole 'x\n\ty'"]),
        ("echo x | tee a", [r"changed file:a whole 'x\n'"]),
        ("make > a", ["changed file:a ?", "looked command:make > a ?"]),
        ("sed -i 's/x/y/' a b", ["changed file:a ?", "changed file:b ?"]),
        ("sed -i '' -e 's/x/y/' a", ["changed file:a ?"]),
        ("rm -f a b", ["deleted file:a absent", "deleted file:b absent"]),
        ("rm *.o", ["looked command:rm *.o ?"]),
        ("mv a b", ["moved file:a absent", "changed file:b ?"]),  # perhaps into a directory
        ("mv a.py b.py", ["moved file:a.py -> b.py absent"]),
        ("mv a b sub/", ["moved file:a -> sub/a absent", "moved file:b -> sub/b absent"]),
        ("cp a b", ["changed file:b ?"]),
        ("mkdir -p sub", ["created directory:sub names []"]),
        ("git mv a s/", ["moved file:a -> s/a absent", "looked command:git mv a s/ ?"]),
        ("git rm a", ["deleted file:a absent", "looked command:git rm a ?"]),
        ("git checkout -- a", ["changed file:a ?", "looked command:git checkout -- a ?"]),
        ("git commit -am x", ["looked command:git commit -am x ?"]),
        ("cd /else && rm a", ["deleted file:a@/else absent"]),
        ("touch a", ["looked command:touch a ?"]),
    ],
)
def test_a_writer_changes_what_its_words_say(command: str, said: list[str]) -> None:
    assert ran(command, "")[: len(said)] == said


def test_a_writer_and_a_reader_in_one_command_are_told_apart() -> None:
    command = "cat > a <<'EOF'\nx\nEOF\ncat b"
    assert ran(command, "y\n") == [r"changed file:a whole 'x\n'", "looked file:b lines 1:'y' end"]


@pytest.mark.parametrize(
    ("command", "output", "said"),
    [
        ("cat a", "cat: a: No such file or directory\n\nCommand exited with code 1", [f"{A} absent"]),
        ("cat a", "x\n\nCommand exited with code 1", ["looked command:cat a ?"]),
        ("grep x a", "Command exited with code 1", ["searched query:x matches [] all in a"]),
        ("grep x a", "grep: a: No such file or directory\n\nCommand exited with code 2", [f"{A} absent"]),
        ("cat a && make", "x\n\nCommand exited with code 2", ["looked command:cat a && make ?"]),
        ("cat > a <<'E'\nx\nE\nmake", "no\n\nCommand exited with code 2", ["changed file:a ?"]),
        ("rm a", "Error: the user rejected it", []),
        ("cat a", "The user doesn't want to proceed with this tool use.", []),
    ],
)
def test_a_command_that_failed_is_no_evidence_of_content(command: str, output: str, said: list[str]) -> None:
    assert ran(command, output, is_error=True)[: max(len(said), 1)] == said


CODEX = '{"output": %s, "metadata": {"exit_code": %d, "duration_seconds": 0.0}}'


@pytest.mark.parametrize(
    ("name", "arguments", "text", "said"),
    [
        ("shell", {"command": ["bash", "-lc", "cat a"]}, CODEX % ('"x\\n"', 0), f"{A} lines 1:'x' end"),
        ("shell", {"command": ["cat", "b c"]}, CODEX % ('"x\\n"', 0), "looked file:b c lines 1:'x' end"),
        ("shell", {"command": ["cat", "a"], "workdir": "/else"}, CODEX % ('"x\\n"', 0), f"{A}@/else lines 1:'x' end"),
        ("shell", {"command": ["cat", "a"], "workdir": "/w"}, CODEX % ('"x\\n"', 0), f"{A} lines 1:'x' end"),
        (
            "shell",
            {"command": ["cat", "a"]},
            CODEX % ('"x\\ny\\n[... omitted 5 of 9 lines ...]\\n\\nz\\n"', 0),
            f"{A} lines 1:'x'",
        ),
        (
            "shell_command",
            {"command": "cat a"},
            "Exit code: 0\nWall time: 0 seconds\nOutput:\nx\n",
            f"{A} lines 1:'x' end",
        ),
        ("local_shell", {"command": ["cat", "a"], "type": "exec"}, "x\n", f"{A} lines 1:'x' end"),
        ("exec_command", {"cmd": "cat a"}, "Exit code: 0\nWall time: 0 seconds\nOutput:\nx\n", f"{A} lines 1:'x' end"),
        (
            "exec_command",
            {"cmd": "cat a"},
            "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOriginal token count: 9\nOutput:\nx\n",
            f"{A} lines 1:'x' end",
        ),
        (
            "exec_command",
            {"cmd": "cat a"},
            "Exit code: 0\nWall time: 0 seconds\nTotal output lines: 9\nOutput:\nx\ny…9 tokens truncated…z\n",
            f"{A} lines 1:'x'",
        ),
        ("Bash", {"command": "cat a"}, "x\ny\n\n... [9 lines truncated] ...", f"{A} lines 1:'x'"),
        ("bash", {"command": "cat a"}, "x\n\n[Showing lines 1-1 of 1. Full output: /tmp/x]", f"{A} lines 1:'x' end"),
        ("bash", {"command": "cat a"}, "x\n\n[Showing lines 8-9 of 9. Full output: /tmp/x]", f"{A} ?"),
        ("bash", {"command": "cat a"}, "xx\nx\n\n(Omitted 1417 bytes. Full result stored at: /tmp/x)", "xx"),
        ("shell", {"command": "cat a"}, "x\ny\n[20 bytes left out; send it to a file]\ny", "x"),
    ],
)
def test_what_an_agent_makes_of_an_output_is_taken_off(
    name: str, arguments: dict[str, Any], text: str, said: str
) -> None:
    said = said if said.startswith("looked") else f"{A} lines 1:'{said}'"
    assert seen(name, arguments, text) == [said]


@pytest.mark.parametrize(
    ("name", "text", "fields", "said"),
    [
        # What one agent's tool adds is a file's own text where another agent's tool shows it.
        ("bash", "Output:\nx\n", {}, r"lines 1:'Output:\nx' end"),
        ("bash", CODEX % ('"x"', 0), {}, "lines 1:" + repr(CODEX % ('"x"', 0)) + " end"),
        ("bash", "x\nCommand exited with code 0\n", {}, r"lines 1:'x\nCommand exited with code 0' end"),
        ("bash", "x\n\n[Showing lines 1-2 of 9. Full output: /tmp/x]", {}, "end"),
        ("bash", "x\n\n[exit code: 0]", {"meta": {"dsh": {}}}, r"lines 1:'x\n\n[exit code: 0]' end"),
        ("bash", "x\n[stderr]\ny\n", {"meta": {"dsh": {}}}, "lines 1:'x'"),
        ("bash", "(no output)\n", {}, "lines 1:'(no output)' end"),
        ("bash", "(no output)", {}, "?"),
        (
            "shell",
            "Warning: truncated output (original token count: 9)\nTotal output lines: 3\n\nx\ny…9 tokens truncated…z",
            {},
            "x",
        ),
        ("shell", "Total output lines: 300\n\nx\ny\n", {}, "?"),
        ("shell", CODEX % (r'"x\ny\n[... output truncated to fit 9 bytes ...]\n\nz\n"', 0), {}, "x"),
        ("Bash", "Command running in background with ID: b1. Output is being written to: /tmp/b1", {}, ""),
        ("Bash", "Command was manually backgrounded by user with ID: b1", of_claude(stdout="", stderr=""), ""),
        ("Bash", "x", of_claude(stdout="data:image/png;base64,AA", isImage=True), ""),
        (
            "Bash",
            "<persisted-output>\nOutput too large (50KB). Full output saved to: /t/a\n\n"
            "Preview (first 2KB):\nx\nyy\n...\n</persisted-output>",
            of_claude(stdout="x\nyyy\nzzz", persistedOutputPath="/t/a.txt"),
            "x",
        ),
        ("Bash", "Lots saved elsewhere.", of_claude(stdout="x\nyyy\nzz", persistedOutputPath="/t/a.txt"), "?"),
        ("Bash", "", of_claude(stdout="", returnCodeInterpretation="Some directories were inaccessible"), ""),
    ],
)
def test_what_an_agent_adds_is_not_mistaken_for_a_files_text_nor_the_other_way_round(
    name: str, text: str, fields: dict[str, Any], said: str
) -> None:
    said = f"lines 1:'{said}'" if len(said) == 1 and said != "?" else said
    (told,) = seen(name, {"command": "cat a"}, text, **fields)
    if said == "end":
        assert told.startswith(f"{A} lines 1:") and told.endswith(" end") and "Showing" in told
    else:
        assert told == (f"{A} {said}" if said else "looked command:cat a ?")


def test_what_a_terminal_shows_in_columns_is_no_list_of_names() -> None:
    assert seen("exec_command", {"cmd": "ls", "tty": True}, "Exit code: 0\nOutput:\na  b\r\n") == [
        "looked command:ls ?"
    ]
    assert ran("ls", "a  b\nc  d\n") == ["looked directory:. ?"]
    assert ran("grep x a", "\x1b[01;31m\x1b[Kx\x1b[m\x1b[K = 1\n") == ["searched query:x matches [] in a"]


def test_errors_among_an_output_are_no_content() -> None:
    for meta, text in (
        ({"toolUseResult": {"stdout": "x", "stderr": "warning: y"}}, "x\nwarning: y"),
        ({"dsh": {}}, "x\n[stderr]\nwarning: y"),
    ):
        assert seen("Bash", {"command": "head -1 a"}, text, meta=meta) == [f"{A} lines 1:'x'"]
    told = ran("grep -rn x s | head -5", "s/a:1:x\ngrep: s/b: Permission denied\n")
    assert told == ["searched query:x matches ['s/a:1:x'] in s"]
    assert ran("find . -type f | head -9", "./a\nfind: './b': Permission denied\n") == [
        "listed directory:. names ['a'] deep hidden"
    ]


def test_a_patch_in_a_shell_command_is_a_patch() -> None:
    patch = "*** Begin Patch\n*** Add File: n\n+x\n*** End Patch"
    expected = [r"created file:n whole 'x\n'"]
    assert ran(f"apply_patch <<'EOF'\n{patch}\nEOF", "Success") == expected
    assert seen("shell", {"command": ["apply_patch", patch]}, CODEX % (json.dumps("Success"), 0)) == expected
    assert seen("shell", {"command": ["apply_patch", patch]}, CODEX % (json.dumps("no"), 1), is_error=True) != expected
