"""Reading, writing and editing files: inside the session's directory, exactly, whole, and verifiably."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import onward
from onward.errors import ToolFailed
from onward.log.memory import MemoryBackend
from onward.model.event import APPEND, Draft, Event
from onward.runtime.tools import calling, changing, paths, reading
from onward.runtime.tools.calling import FAILED, Outcome, Prepared
from onward.runtime.tools.changing import edit_tool, write_tool
from onward.runtime.tools.reading import read_tool
from onward.runtime.tools.seen import Seen, seen_in
from onward.runtime.tools.tool import ToolContext
from onward.session import Session
from onward.store import Store
from tools import at, call, ready

READ, WRITE, EDIT = read_tool(), write_tool(), edit_tool()


def digest(text: str | bytes) -> str:
    return sha256(text.encode() if isinstance(text, str) else text).hexdigest()


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A session's directory, with a secret beside it."""
    (tmp_path / "secret").write_text("do not read")
    cwd = tmp_path / "work"
    cwd.mkdir()
    return cwd


# --- where a tool may reach --------------------------------------------------------------------------------------

OUTSIDE = [
    "../secret",
    "a/../../secret",
    "/etc/hostname",
    "link",
    "dir-link/secret",
    "a/../link",
    "deep/../dir-link/../secret",
]


def with_links(here: Path) -> None:
    (here / "a").mkdir()
    (here / "link").symlink_to(here.parent / "secret")
    (here / "dir-link").symlink_to(here.parent)


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_tool_reaches_outside_of_the_sessions_directory(path: str, here: Path):
    with_links(here)
    secret = here.parent / "secret"
    for outcome in (
        call(READ, at(here), path=path),
        call(WRITE, at(here), path=path, content="x"),
        call(EDIT, at(here), path=path, old="do", new="x"),
    ):
        assert (outcome.is_error, outcome.code) == (True, FAILED)
        assert "outside" in outcome.text
        assert "do not read" not in outcome.text
    assert secret.read_text() == "do not read"


def test_a_tool_that_was_made_for_it_reaches_outside(here: Path):
    with_links(here)
    outcome = call(read_tool(allow_outside=True), at(here), path="link")
    assert "do not read" in outcome.text
    assert outcome.data is not None
    assert outcome.data["looked"][0]["path"] == str((here.parent / "secret").resolve())
    assert not call(write_tool(allow_outside=True), at(here), path="../new", content="x").is_error
    assert (here.parent / "new").read_text() == "x"


def test_links_inside_are_followed_and_absolute_paths_inside_are_fine(here: Path):
    (here / "real").write_text("text")
    (here / "link").symlink_to("real")
    assert call(READ, at(here), path="link").text == "1\ttext"
    assert call(READ, at(here), path=str(here / "real")).text == "1\ttext"
    assert not call(WRITE, at(here), path="link", content="new").is_error
    assert (here / "link").is_symlink()
    assert (here / "real").read_text() == "new"


def test_a_directory_that_becomes_a_link_after_it_was_resolved_leads_nowhere(here: Path):
    (here / "sub").mkdir()
    where = paths.place(here, "sub/secret")
    (here / "sub").rmdir()
    (here / "sub").symlink_to(here.parent)
    with pytest.raises(ToolFailed, match=r"symbolic link|no directory"):
        paths.read_bytes(where)
    with pytest.raises(ToolFailed, match=r"symbolic link|no directory"):
        changing.put(where, b"x")
    assert (here.parent / "secret").read_text() == "do not read"


def test_a_directory_beside_whose_name_begins_alike_is_outside(here: Path):
    (here.parent / "workshop").mkdir()
    (here.parent / "workshop" / "f").write_text("x")
    assert "outside" in call(READ, at(here), path="../workshop/f").text


@pytest.mark.parametrize(
    ("path", "says"),
    [("", "empty"), ("a\0b", "NUL"), ("none", "no such file"), (".", "is a directory"), ("x" * 300, "")],
)
def test_what_is_no_file_is_said_in_a_sentence(path: str, says: str, here: Path):
    outcome = call(READ, at(here), path=path)
    assert outcome.code == FAILED
    assert says in outcome.text


def test_a_session_whose_directory_is_gone_says_so(here: Path):
    assert "is not there" in call(READ, at(here / "gone"), path="x").text


def test_pipes_and_devices_are_not_opened(here: Path):
    os.mkfifo(here / "pipe")
    assert "a named pipe" in call(READ, at(here), path="pipe").text
    assert "named pipe" in call(WRITE, at(here), path="pipe", content="x").text
    assert "a device" in call(read_tool(allow_outside=True), at(here), path="/dev/zero").text


# --- read -------------------------------------------------------------------------------------------------------


def test_a_reading_has_line_numbers_and_reports_what_it_looked_at(here: Path):
    (here / "f").write_text("one\ntwo\nthree\n")
    outcome = call(READ, at(here), path="f", offset=2, limit=1)
    assert outcome.text == "2\ttwo\n[lines 2 to 2 of 3; go on with offset 3]"
    assert outcome.data == {
        "looked": [{"path": "f", "sha256": digest("one\ntwo\nthree\n"), "bytes": 14, "lines": [2, 2], "of": 3}]
    }


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "(f is empty)"),
        (b"\n", "1\t"),
        (b"a", "1\ta"),
        (b"a\r\nb\r\n", "1\ta\n2\tb\n[lines end in CRLF]"),
        (b"\xef\xbb\xbfa\n", "1\ta"),
        ("ä\n".encode("utf-16"), "1\tä\n[the encoding is utf-16-le]"),
        (b"caf\xe9\n", "1\tcaf\ufffd\n[1 places are no utf-8 and shown as \ufffd; do not edit those lines]"),
        ("a \ufffd b".encode(), "1\ta \ufffd b"),
        ("a\u2028b\x0cc".encode(), "1\ta\u2028b\x0cc"),
    ],
)
def test_a_reading_shows_the_text_whatever_its_encoding_and_ends(data: bytes, text: str, here: Path):
    (here / "f").write_bytes(data)
    assert call(READ, at(here), path="f").text == text


def test_a_reading_is_bounded_in_lines_characters_and_bytes(here: Path, monkeypatch: pytest.MonkeyPatch):
    (here / "long").write_text("x" * 5_000 + "\n" + "y\n" * 5_000)
    outcome = call(READ, at(here), path="long")
    assert "[3,000 more characters]" in outcome.text.splitlines()[0]
    assert "lines 1 to 2000 of 5001; go on with offset 2001" in outcome.text
    (here / "wide").write_text(("z" * 1_000 + "\n") * 1_000)
    assert len(call(READ, at(here), path="wide").text) < reading.SHOWN + 200
    monkeypatch.setattr(paths.read_at, "__kwdefaults__", {"limit": 10})
    monkeypatch.setattr(paths.read_bytes, "__kwdefaults__", {"limit": 10})
    assert "at most 10" in call(READ, at(here), path="long").text


def test_reading_page_by_page_shows_every_line_once(here: Path):
    lines = [f"{n} " + "w" * (n * 37 % 900) for n in range(1, 700)]
    (here / "f").write_text("\n".join(lines))
    shown: list[str] = []
    while len(shown) < len(lines):
        outcome = call(READ, at(here), path="f", offset=len(shown) + 1)
        rows = [row.partition("\t") for row in outcome.text.splitlines() if "\t" in row]
        assert [int(number) for number, _, _ in rows] == list(range(len(shown) + 1, len(shown) + 1 + len(rows)))
        shown += [text for _, _, text in rows]
    assert shown == lines


def test_a_line_that_is_not_there_and_a_binary_file_are_errors(here: Path):
    (here / "f").write_text("a\n")
    (here / "b").write_bytes(b"\x7fELF\0\0")
    assert "has 1 lines; there is no line 2" in call(READ, at(here), path="f", offset=2).text
    assert "binary file of 6 bytes" in call(READ, at(here), path="b").text


def test_an_image_is_an_image_block_whose_bytes_are_in_a_blob(here: Path):
    picture = b"\x89PNG\r\n\x1a\n" + b"\0" * 100
    (here / "p.png").write_bytes(picture)
    with onward.Store(backend=MemoryBackend()) as store, store.create(cwd=here) as session:
        outcome = call(READ, at(here, session=session), path="p.png")
        block = outcome.content[1]
        assert isinstance(block, onward.Image)
        assert (block.media_type, block.size) == ("image/png", len(picture))
        assert isinstance(block.sha256, str)
        assert session.blob(block.sha256) == picture


def test_an_image_that_no_model_takes_is_an_error(here: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "IMAGE", 50)
    (here / "p").write_bytes(b"\xff\xd8\xff" + b"x" * 100)
    assert "image of 103 bytes" in call(READ, at(here), path="p").text


# --- write and edit ---------------------------------------------------------------------------------------------


def test_a_file_is_written_whole_with_its_directories_and_says_what_changed(here: Path):
    outcome = call(WRITE, at(here), path="a/b/c.txt", content="häh\n")
    assert (here / "a/b/c.txt").read_bytes() == "häh\n".encode()
    assert outcome.text == "a/b/c.txt created: 5 bytes."
    assert outcome.data == {"changed": [{"path": "a/b/c.txt", "before": None, "after": digest("häh\n"), "bytes": 5}]}
    again = call(WRITE, at(here), path="a/b/c.txt", content="")
    assert "rewritten" in again.text
    assert again.data is not None
    assert again.data["changed"][0]["before"] == digest("häh\n")


def test_a_file_keeps_its_mode_and_a_new_one_gets_the_usual(here: Path):
    (here / "run").write_text("x")
    (here / "run").chmod(0o750)
    call(WRITE, at(here), path="run", content="y")
    assert stat.S_IMODE((here / "run").stat().st_mode) == 0o750
    call(WRITE, at(here), path="new", content="y")
    (here / "usual").write_text("")
    assert (here / "new").stat().st_mode == (here / "usual").stat().st_mode


@pytest.mark.parametrize("step", ["write_all", "fsync", "rename"])
def test_a_write_that_fails_at_any_step_leaves_the_old_file_and_nothing_else(
    step: str, here: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    (here / "f").write_text("old")
    monkeypatch.setattr(os if step == "rename" else changing, step, fail)
    outcome = call(WRITE, at(here), path="f", content="new")
    monkeypatch.undo()
    assert outcome.is_error
    assert "No space left" in outcome.text
    assert [path.name for path in here.iterdir()] == ["f"]
    assert (here / "f").read_text() == "old"


@pytest.mark.parametrize(
    ("old", "new", "everywhere", "before", "after"),
    [
        ("b", "B", False, b"abc", b"aBc"),
        ("b\n", "", False, b"a\nb\nc\n", b"a\nc\n"),
        ("a", "aa", True, b"a.a", b"aa.aa"),
        ("x\ny", "1\n2\n3", False, b"x\r\ny\r\n", b"1\r\n2\r\n3\r\n"),
        ("x", "1\r\n2", False, b"x\r\n", b"1\r\n2\r\n"),
        ("a", "b", False, b"\xef\xbb\xbfa", b"\xef\xbb\xbfb"),
        ("ä", "ö", False, "ä".encode("utf-16"), "ö".encode("utf-16")),
        ("$1\\n", "\\g<0>", False, b"$1\\n", b"\\g<0>"),
    ],
)
def test_an_edit_replaces_exactly_that(old: str, new: str, everywhere: bool, before: bytes, after: bytes, here: Path):
    (here / "f").write_bytes(before)
    outcome = call(EDIT, at(here), path="f", old=old, new=new, all=everywhere)
    assert not outcome.is_error, outcome.text
    assert (here / "f").read_bytes() == after
    assert outcome.data == {
        "changed": [{"path": "f", "before": digest(before), "after": digest(after), "bytes": len(after)}]
    }


@pytest.mark.parametrize(
    ("old", "new", "before", "says"),
    [
        ("z", "x", b"abc", "does not occur"),
        ("a", "x", b"a\nb\na\n", "occurs 2 times in f (lines 1, 3)"),
        ("a", "a", b"a", "are the same"),
        ("a", "x", b"a\0b", "binary"),
        ("a", "x", b"a\xff", "no valid utf-8"),
        ("aa", "x", b"aaaa", "occurs 3 times"),
        ("aa", "x", b"aaa", "occurs 2 times"),
    ],
)
def test_an_edit_that_is_not_exact_changes_nothing_and_does_not_start(
    old: str, new: str, before: bytes, says: str, here: Path
):
    (here / "f").write_bytes(before)
    outcome = call(EDIT, at(here), path="f", old=old, new=new)
    assert (outcome.code, outcome.started) == (FAILED, False)
    assert says in outcome.text
    assert (here / "f").read_bytes() == before


def test_a_file_that_changed_since_it_was_read_is_not_touched(here: Path):
    (here / "f").write_text("one")
    context = at(here)
    call(READ, context, path="f")
    assert not call(EDIT, context, path="f", old="one", new="two").is_error, "what a tool wrote itself is known"
    (here / "f").write_text("two, and somebody else's")
    for outcome in (
        call(EDIT, context, path="f", old="two", new="x"),
        call(WRITE, context, path="f", content="x"),
    ):
        assert "has changed since it was last read" in outcome.text
    assert (here / "f").read_text() == "two, and somebody else's"
    call(READ, context, path="f")
    assert not call(EDIT, context, path="f", old="two", new="x").is_error


def test_what_was_seen_is_rebuilt_from_the_results_in_the_log(here: Path):
    (here / "f").write_text("one")
    outcome = call(READ, at(here), path="f")
    result = Event(seq=3, type="tool/result", time=0, data={"call_id": "c", "meta": outcome.data})
    (here / "f").write_text("two")
    refused = call(WRITE, at(here, seen=Seen.of([result])), path="f", content="x")
    assert "has changed since" in refused.text
    listing = Event(seq=4, type="tool/result", time=0, data={"call_id": "d", "meta": {"looked": [{"path": "f"}]}})
    assert Seen.of([result, listing]).get("f") == digest("one")


def test_a_run_reads_of_a_path_only_what_came_after_the_run_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def looked(session: Session, sha256: str) -> int:
        meta = {"looked": [{"path": "f", "lines": [1, 1], "sha256": sha256}]}
        data = {"call_id": "c", "content": [], "is_error": False, "meta": meta}
        return session.append(Draft(type="tool/result", data=data, surface=APPEND, branch=session.branch))[0].seq

    with Store(tmp_path / "home") as store, store.create(cwd=tmp_path) as session:
        first = looked(session, "one")
        assert seen_in(session).get("f") == "one"
        second = looked(session, "two")
        read: list[int] = []
        real = session.read
        monkeypatch.setattr(session, "read", lambda seqs: read.extend(seqs) or real(seqs))
        seen = seen_in(session)
        assert (seen.get("f"), read) == ("two", [second])
        seen.note("f", "of a run that nobody logged")
        assert seen_in(session).get("f") == "two"
        session.create_branch("side", node=first)
        looked(session, "three")
        session.move("side", first)
        assert seen_in(session).get("f") == "one"


def started(made: Any, context: ToolContext, **arguments: Any) -> Prepared:
    found = ready(made, context, arguments)
    assert isinstance(found, Prepared), found
    return found


def run(prepared: Prepared) -> Outcome:
    return asyncio.run(calling.perform(prepared))


@pytest.mark.parametrize("made", [WRITE, EDIT])
def test_a_probe_tells_from_the_file_whether_a_call_happened(made: Any, here: Path):
    (here / "f").write_text("before")
    arguments = {"path": "f", "content": "after"} if made is WRITE else {"path": "f", "old": "before", "new": "after"}
    call_ = started(made, at(here), **arguments)
    assert call_.evidence == {"path": "f", "before": digest("before"), "after": digest("after")}

    def outcome() -> str:
        return calling.probe(made, arguments, call_.evidence, at(here)).outcome

    assert outcome() == "not-applied"
    assert not run(call_).is_error
    assert outcome() == "applied"
    (here / "f").write_text("somebody else's")
    assert outcome() == "unknown"
    (here / "f").unlink()
    assert outcome() == "unknown"
    assert calling.probe(made, arguments, {}, at(here)).outcome == "unknown"
    assert calling.probe(made, {"path": "../x"}, call_.evidence, at(here)).outcome == "unknown"


def test_a_file_that_was_not_there_is_told_from_one_that_was_written(here: Path):
    call_ = started(WRITE, at(here), path="new/f", content="x")
    assert calling.probe(WRITE, call_.arguments, call_.evidence, at(here)).outcome == "not-applied"
    run(call_)
    assert calling.probe(WRITE, call_.arguments, call_.evidence, at(here)).outcome == "applied"


@pytest.mark.parametrize("made", [WRITE, EDIT])
def test_a_file_that_changed_between_the_logging_and_the_body_is_not_touched(made: Any, here: Path):
    (here / "f").write_text("before")
    arguments = {"path": "f", "content": "after"} if made is WRITE else {"path": "f", "old": "before", "new": "after"}
    call_ = started(made, at(here), **arguments)
    (here / "f").write_text("before, and more")
    outcome = run(call_)
    assert outcome.code == FAILED
    assert "changed while this call was being started" in outcome.text
    assert (here / "f").read_text() == "before, and more"


def test_a_file_that_may_not_be_written_is_left_alone(here: Path, monkeypatch: pytest.MonkeyPatch):
    (here / "f").write_text("x")
    monkeypatch.setattr(os, "access", lambda *args, **kwargs: False)  # root may write anything
    assert "permission denied" in call(WRITE, at(here), path="f", content="y").text
    assert (here / "f").read_text() == "x"


def test_kill_9_at_any_moment_leaves_the_old_content_or_the_new_and_the_probe_tells_which(here: Path):
    contents = ["a" * 200_000, "b" * 300_000]
    (here / "f").write_text(contents[0])
    program = (
        "import sys; from pathlib import Path; from onward.runtime.tools import changing, paths\n"
        "where = paths.place(Path(sys.argv[1]), 'f'); print('ready', flush=True)\n"
        "while True:\n"
        "    changing.put(where, b'b' * 300_000); changing.put(where, b'a' * 200_000)\n"
    )
    for round_ in range(12):
        process = subprocess.Popen([sys.executable, "-c", program, str(here)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(round_ * 0.003)
        process.kill()
        process.communicate()
        now = (here / "f").read_text()
        assert now in contents
        evidence = {"path": "f", "before": digest(contents[0]), "after": digest(contents[1])}
        found = calling.probe(WRITE, {"path": "f", "content": contents[1]}, evidence, at(here))
        assert found.outcome == ("not-applied" if now == contents[0] else "applied")
