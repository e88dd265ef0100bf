"""What reaches a person: no traceback, no escape sequence of somebody else's, no colour where there is no terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

import builders
from command_line import PROGRAM, document, imported, onward, pi_file, program
from onward import Store
from onward.cli import output
from onward.cli.branching import Node, twigs
from onward.cli.demo_data import harness_session
from onward.model.event import Draft
from onward.model.text import escaped_json, one_line, visible

NASTY = "red \x1b[31mtext\x1b]0;title\x07 \x9b2J over\rwrite \u202egnp.exe\x7f\x00"


def on_terminal(home: Path, *words: object, code: int = 0, **env: str) -> str:
    """What the program writes to a terminal of 100 columns."""
    master, slave = pty.openpty()
    environment = {**os.environ, "ONWARD_HOME": str(home), "COLUMNS": "100", "TERM": "xterm-256color", **env}
    environment.pop("PYTHONUNBUFFERED", None)
    with subprocess.Popen([PROGRAM, *map(str, words)], env=environment, stdout=slave, stderr=slave) as process:
        os.close(slave)
        got = b""
        while True:
            ready, _, _ = select.select([master], [], [], 30)
            try:
                piece = os.read(master, 65536) if ready else b""
            except OSError:  # Linux says so when the other side is closed.
                piece = b""
            if not piece:
                break
            got += piece
    os.close(master)
    assert process.returncode == code, got
    return got.decode()


@pytest.fixture
def nasty(tmp_path: Path) -> tuple[Path, str]:
    home = tmp_path / "home"
    with Store(home) as store, store.create(cwd="/w") as session:
        session.set_title(NASTY)
        node = session.user(NASTY)
        session.assistant(NASTY)
        session.label(node.seq, NASTY)
        call = {"type": "tool_call", "call_id": NASTY, "name": NASTY, "arguments": {}}
        said = {"message": {"role": "assistant", "blocks": [call]}}
        session.append(Draft(type="assistant/message", data=said, surface="append"))
        session.append(Draft(type="tool/approval", data={"call_id": NASTY, "outcome": "rejected", "reason": NASTY}))
        session.tool_result(NASTY, NASTY, is_error=True)
        session.create_branch("b")
    return home, session.id


COMMANDS = [
    ["sessions", "--all"],
    ["show"],
    ["show", "--info"],
    ["tree", "--full"],
    ["context"],
    ["export", "--to", "markdown"],
    ["export", "--to", "html"],
    ["export", "--to", "onward"],
    ["show", "--json"],
    ["context", "--json"],
    ["calls"],
    ["calls", "--json"],
    ["tool-result", "5"],
    ["tool-result", "5", "--search", "red"],
]
CONTROLS = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), 0x202E)} - {"\n", "\t"}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_control_characters_of_a_transcript_never_come_out_raw(
    nasty: tuple[Path, str], words: list[str], monkeypatch: pytest.MonkeyPatch
):
    home, session = nasty
    named = words if words[0] == "sessions" else [words[0], session, *words[1:]]
    if words != ["export", "--to", "onward"]:  # To a file, an export is what it is.
        assert not CONTROLS & set(onward(home, *named).out)
    for name, value in (("COLUMNS", "100"), ("TERM", "xterm-256color"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    shown = onward(home, *named, terminal=True).out
    for known in ("\x1b[1m", "\x1b[2m", "\x1b[0m"):
        shown = shown.replace(known, "\n")
    assert not CONTROLS & set(shown), shown


def test_a_terminal_gets_colours_unless_it_says_no(nasty: tuple[Path, str]):
    home, session = nasty
    assert "\x1b[1;32m" in on_terminal(home, "show", session)
    assert "32m" not in on_terminal(home, "show", session, NO_COLOR="1")
    assert "\x1b" not in program(home, "show", session).out


def test_a_terminal_gets_short_ids_that_work(nasty: tuple[Path, str]):
    home, session = nasty
    short = on_terminal(home, "sessions", "--all", NO_COLOR="1").splitlines()[1].replace("\x1b[1m", "").split()[0]
    assert session.startswith(short) and len(short) < len(session)
    assert document(home, "show", short)["session"] == session


def test_a_compressed_export_is_not_written_to_a_terminal(tmp_path: Path):
    home, path = tmp_path / "home", tmp_path / "session.jsonl.zstd"
    path.write_bytes(zstandard.compress(harness_session()))
    session = imported(home, path)
    assert "binary" in on_terminal(home, "export", session, "--to", "dsh", code=2)
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([PROGRAM, "--home", str(home), "export", session, "--to", "dsh"], stdout=out, check=True)
    assert (tmp_path / "out").read_bytes() == path.read_bytes()


def test_a_long_import_shows_a_bar_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "big.jsonl"
    head = b'{"type":"session","version":3,"id":"x","timestamp":"2026-01-01T00:00:00Z","cwd":"/w"}\n'
    line = (
        b'{"type":"message","id":"%08x","parentId":null,"timestamp":"2026-01-01T00:00:00Z",'
        b'"message":{"role":"user","content":"%s"}}\n'
    )
    path.write_bytes(head + b"".join(line % (n, b"x" * 90_000) for n in range(output.LONG // 90_000 + 2)))
    assert "big.jsonl" in on_terminal(tmp_path / "home", "import", path)
    quiet = program(tmp_path / "other", "import", path)
    assert quiet.code == 0 and quiet.err.count("\n") <= 12


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path):
    home = tmp_path / "home"
    with Store(home) as store, store.create(cwd="/w") as session:
        for number in range(300):
            session.user(f"{number} " + "x" * 1_000)
    command = f"{PROGRAM} --home {home} show {session.id} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert done.stderr == b""
    assert done.stdout.splitlines()[-1] == b"141"


def test_an_interrupt_is_quiet(tmp_path: Path):
    script = (
        "import sys, onward.cli.commands.listing as listing, os, signal\n"
        "from onward.cli.app import run\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin without it\n"
        "listing._here = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
        f"sys.exit(run(['--home', {str(tmp_path)!r}, 'sessions']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"\nonward: stopped\n")


@pytest.mark.parametrize("debug", [False, True])
def test_a_bug_says_that_it_is_one(tmp_path: Path, debug: bool):
    script = (
        "import sys, onward.cli.commands.listing as listing\n"
        "from onward.cli import main\n"
        "listing._here = lambda: 1 / 0\n"
        f"sys.argv = ['onward', '--home', {str(tmp_path)!r}, 'sessions']\n"
        "sys.exit(main())"
    )
    env = {**os.environ, **({"ONWARD_DEBUG": "1"} if debug else {})}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=env, check=False)
    assert done.returncode == 1 and done.stdout == b""
    assert b"onward: this is a bug in Onward: ZeroDivisionError: division by zero" in done.stderr
    assert (b"Traceback" in done.stderr) is debug


def test_an_error_of_the_operating_system_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import onward.cli.commands.listing as listing

    def refuse() -> str:
        raise PermissionError(13, "Permission denied", "/somewhere")

    monkeypatch.setattr(listing, "_here", refuse)
    answer = onward(tmp_path, "sessions")
    assert answer.code == 1
    assert answer.err == "onward: the operating system refuses: Permission denied (/somewhere)\n"


def test_json_keeps_stdout_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    imported(home, pi_file(tmp_path))
    answer = onward(home, "sessions", "--json")
    assert answer.document == {"sessions": []}
    assert "--all" in answer.err


# --- words to text ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb", "a\nb"),
        ("a\rb", "a␍b"),
        ("\x1b[31m", "␛[31m"),
        ("\x9b", "\\u009b"),
        ("\u202e", "\\u202e"),
        ("\x7f", "␡"),
        ("日本 é 🎈", "日本 é 🎈"),
    ],
)
def test_visible_text(text: str, shown: str):
    assert visible(text) == shown


def test_one_line_is_short_and_has_no_breaks():
    assert one_line("a\n\n  b\tc") == "a b c"
    assert one_line("x" * 100, 10) == "x" * 9 + "…"
    assert one_line("\x1b" + "y" * 5_000_000, 5) == "␛yyy…"


def test_json_says_the_same_with_escapes():
    import json

    text = json.dumps(NASTY, ensure_ascii=False)
    assert json.loads(escaped_json(text)) == NASTY
    assert not CONTROLS & set(escaped_json(text))


def test_wide_characters_take_two_cells():
    assert [output.cells_of(text) for text in ("abc", "日本", "é", "e\u0301")] == [3, 4, 1, 1]


def test_times_that_no_calendar_has_are_shown_as_unknown():
    assert output.when(10**17) == "?"


def node(seq: int, parent: int | None, telling: bool = False) -> Node:
    return Node(seq, parent, "assistant/message", "assistant", None, "", telling)


def test_what_leaves_the_path_hangs_below_the_node_that_it_leaves():
    nodes = [node(0, None, True), node(1, 0), node(2, 1, True), node(3, 1, True), node(4, 3)]
    names = {2: ["old"], 4: ["main *"]}
    lines = twigs(nodes, names, {0, 1, 3, 4}, full=False)
    assert [line.text.split()[0] for line in lines] == ["#0", "#1", "#3", "#4"]
    assert [[below.text.split()[0] for below in line.twigs] for line in lines] == [[], ["#2"], [], []]


def test_a_tree_of_a_hundred_thousand_branches_is_walked_without_recursion():
    nodes = [node(0, None)]
    nodes += [node(seq, seq - 1 if seq % 2 else max(seq - 3, 0)) for seq in range(1, 100_001)]
    assert twigs(nodes, {}, set(), full=False)


# --- how fast it starts -----------------------------------------------------------------------------------------


def test_rich_is_not_imported_without_a_terminal(tmp_path: Path):
    script = (
        "import sys\nfrom onward.cli.app import run\n"
        f"code = run(['--home', {str(tmp_path)!r}, 'sessions', '--all'])\n"
        "print(sorted({'rich', 'onward.formats', 'onward.context.openai', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"[]\n"


@pytest.mark.slow
def test_a_thousand_sessions_are_listed_fast(tmp_path: Path):
    with Store(tmp_path, sync="never") as store:
        for number in range(1_000):
            with store.create(cwd="/w", id=f"s{number:04}") as session:
                session.append(builders.user(f"question {number}"))
    assert len(document(tmp_path, "sessions", "--all")["sessions"]) == 1_000
    environment = {**os.environ, "ONWARD_HOME": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    # 200 ms is the promise on a quiet machine. Where others are at work everything is slower, Python's own start too:
    # 10 ms of CPU time when it is quiet.
    bare = min(_cpu([sys.executable, "-c", "pass"], environment) for _ in range(5))
    best = min(_cpu([PROGRAM, "sessions", "--all"], environment) for _ in range(5))
    assert best < 0.2 * max(1, bare / 0.01)


def _cpu(command: list[str], env: dict[str, str]) -> float:
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_narrow_terminal_leaves_out_what_is_spare_so_that_titles_can_be_read(tmp_path: Path):
    title = "Why is the total wrong in"
    with Store(tmp_path) as store, store.create(cwd="/w", title=title):
        pass
    wide, narrow = (on_terminal(tmp_path, "sessions", "--all", COLUMNS=columns) for columns in ("120", "80"))
    assert "TOKENS" in wide and "ORIGIN" in wide and title in wide
    assert title[:20] in narrow
    for columns in ("80", "120"):
        lines = on_terminal(tmp_path, "sessions", "--all", COLUMNS=columns).splitlines()
        assert all(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= int(columns) for line in lines)
