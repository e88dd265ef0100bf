"""The documentation is true: its code runs, its commands exist, its links lead somewhere, its tests are there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from command_line import document, imported, pi_file
from onward.cli.app import COMMANDS, onward
from onward.cli.demo_data import pi_session

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/decisions/*.md")])
CLI_PAGE = (ROOT / "docs" / "cli.md").read_text("utf-8")


def run_shell(example: Example) -> None:
    """Run the lines of a block one by one with the installed `onward`; each must succeed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for line in example.parsed.splitlines():
        if line.startswith("onward "):
            script = ["bash", "-o", "pipefail", "-c", line]
            done = subprocess.run(script, env={**os.environ, "PATH": path}, capture_output=True, check=False)
            assert done.returncode in (0, 141), f"{line}\n{done.stderr.decode()}"
        else:
            pytest.fail(f"a shell block has a line that is no `onward` command: {line}")


def run_console(example: Example) -> None:
    """Run the lines of a block that begin with `$ `; what stands below each is what it prints.

    `…` stands for anything, in a line of its own for any number of lines.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command, _, expected in (part.partition("\n") for part in example.parsed.removeprefix("$ ").split("\n$ ")):
        environment = {**os.environ, "PATH": path, "COLUMNS": "100"}
        done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, check=False)
        said = done.stdout.decode() + done.stderr.decode()
        assert done.returncode == 0, f"{command}\n{said}"
        lines = expected.strip("\n").split("\n")
        pattern = "".join(r"(?:.*\n)*" if line == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in lines)
        assert re.fullmatch(pattern, said.strip("\n") + "\n"), f"{command}\n{said}"


CONSOLE = CodeBlockParser("console", run_console)
EXAMPLES = Sybil(parsers=[PythonCodeBlockParser(), CodeBlockParser("shell", run_shell), CONSOLE], encoding="utf-8")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_the_code_on_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    project, user = tmp_path / "project", tmp_path / "user"
    sessions = user / ".pi" / "agent" / "sessions" / "--project--"
    sessions.mkdir(parents=True)
    project.mkdir()
    (sessions / "session.jsonl").write_bytes(pi_session(str(project)))
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("ONWARD_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PI_CODING_AGENT_DIR", raising=False)
    for example in EXAMPLES.parse(page):
        example.evaluate()


def test_the_readme_has_code_that_runs():
    found = [example.parsed for example in EXAMPLES.parse(ROOT / "README.md")]
    assert sum("import onward" in text for text in found) == 4
    assert sum("onward import" in text for text in found) == 1
    assert sum("onward compact" in text and "onward why" in text for text in found) == 1


def test_the_format_page_has_a_reader_of_its_own():
    reader, check = (example.parsed for example in EXAMPLES.parse(ROOT / "docs" / "format.md"))
    assert "onward" not in reader and "read_log(" in check
    assert len(reader.strip().splitlines()) <= 24


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path):
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), f"{named(page)}: {target}"
        if anchor:
            titles = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}, target


def test_every_promise_names_a_test_that_exists():
    text = (ROOT / "docs" / "promises.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert len(rows) > 20
    for row in rows:
        named_tests = re.findall(r"`((?:test_\w+|\w+_contract)\.py)::(test_\w+)`", row)
        assert named_tests, f"no test: {row}"
        for file, test in named_tests:
            path = ROOT / "tests" / file
            assert path.exists() and re.search(rf"^ *(async )?def {test}\(", path.read_text("utf-8"), re.MULTILINE), row


def test_decisions_say_context_choice_and_consequence():
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [page.name[:4] for page in pages]
    assert all(number.isdigit() for number in numbers) and len(set(numbers)) == len(numbers), "each has its own number"
    for page in pages:
        text = page.read_text("utf-8")
        assert all(f"**{word}.**" in text for word in ("Context", "Choice", "Consequence")), page.name


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_the_command_line_has_every_command_and_option(name: str):
    command = onward.get_command(click.Context(onward), name)
    assert command is not None
    _, _, section = CLI_PAGE.partition(f"\n## {name}\n")
    section = section.partition("\n## ")[0]
    for param in command.params:
        for word in param.opts if isinstance(param, click.Option) else []:
            assert f"`{word}" in section, f"{name}: {word}"
    assert "JSON: `{" in section
    examples = [line.strip() for line in (command.epilog or "").splitlines() if line.startswith("  ")]
    assert examples and all(line.startswith(f"onward {name}") and line in section for line in examples)


def test_the_documents_on_the_page_have_the_keys_that_commands_print(tmp_path: Path):
    home = tmp_path / "home"
    session = imported(home, pi_file(tmp_path))
    script = tmp_path / "script.json"
    script.write_text('["Done."]')
    words: dict[str, list[str]] = {
        "import": ["import", str(tmp_path / "pi-session.jsonl")],
        "sessions": ["sessions", "--all"],
        **{name: [name, session] for name in ("show", "tree", "context", "calls", "usage", "fsck", "fork", "migrate")},
        "tool-result": ["tool-result", session, "4"],
        "why": ["why", session, "anything"],
        "status": ["status", session],
        "run": ["run", "x", "--model", f"scripted:{script}"],
        "branch": ["branch", session, "b"],
        "move": ["move", session, "b", "7"],
        "label": ["label", session, "7", "x"],
        "title": ["title", session, "x"],
        "resume": ["resume", session],
        "queue": ["queue", session, "x"],
        "export": ["export", session, "--to", "markdown", "--output", str(tmp_path / "out.md")],
        "compact": ["compact", session],
        "reindex": ["reindex"],
        "delete": ["delete", session],
        "purge": ["purge", "--yes"],
    }
    assert set(words) == set(COMMANDS)
    for name, command in words.items():
        shape = re.search(rf"\n## {name}\n.*?\nJSON: `(.*?)`\n", CLI_PAGE, re.DOTALL)
        assert shape is not None
        assert list(document(home, *command)) == outer_keys(shape[1]), name


def outer_keys(shape: str) -> list[str]:
    """The keys of the outermost object of a shape like `{"a":[{"b"}],"c"}`."""
    depth, keys = 0, []
    for token in re.findall(r'"\w+"|[\[\]{}]', shape):
        if token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
        elif depth == 1:
            keys.append(token.strip('"'))
    return keys


def test_the_commands_of_the_readme_exist():
    text = (ROOT / "README.md").read_text("utf-8") + (ROOT / "docs" / "concepts.md").read_text("utf-8")
    for name in re.findall(r"`?onward ([a-z-]+)\b", re.sub(r"import onward|python -m \S+", "", text)):
        assert name in COMMANDS, name


def test_pages_name_no_machine_and_no_work_in_progress():
    for page in PAGES:
        text = page.read_text("utf-8")
        assert not re.search(r"\bTODO\b|\bFIXME\b", text) and str(ROOT) not in text, named(page)


@pytest.mark.slow
def test_the_demonstration_works(tmp_path: Path):
    environment = {**os.environ, "ONWARD_SHARED": str(tmp_path / "nothing")}
    command = [sys.executable, "-m", "onward.cli.demo", str(tmp_path / "demo")]
    for _ in range(2):  # The second run finds what the first one left.
        done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=120)
        said = done.stdout.decode()
        assert done.returncode == 0, done.stderr.decode()
    assert len(re.findall(r"^the same [\d,]+ bytes", said, re.MULTILINE)) == 2 and "DIFFERENT" not in said
    for part in (
        "leaf-12",
        "replaced by compaction/summary",
        "goes on from",
        "no damage",
        "repaired",
        "stale because of",
    ):
        assert part in said
