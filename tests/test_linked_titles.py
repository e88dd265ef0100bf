"""Titles that a Claude Code file gives to a line of another file: found in either order, the same wherever shown."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders import shared
from claude_sessions import Json, encoded, reply, user
from command_line import document, onward
from onward import Store
from onward.formats.exporting import export
from onward.formats.importing import import_file
from onward.formats.known import FORMATS, format_named
from onward.formats.places import Place, files_in
from onward.formats.watching import Watch
from onward.log.links import DIGEST

LEAF = "a1"


def summary(text: str, leaf: str = LEAF) -> Json:
    return {"type": "summary", "summary": text, "leafUuid": leaf}


def far(*records: Json, session: str = "far") -> list[Json]:
    """Records of another session's file."""
    return [record | ({"sessionId": session} if "sessionId" in record else {}) for record in records]


HOLDER = [user("u1", None), reply(LEAF, "u1")]
TELLER = far(summary("Port the\n parser"), user("x1", None))
TOGETHER = {"holder": HOLDER, "teller": TELLER}
ORDERS = list(itertools.permutations(TOGETHER))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "home", user="me", sync="never") as made:
        yield made


def take(store: Store, folder: Path, name: str, records: list[Json]) -> str:
    path = folder / f"{name}.jsonl"
    path.write_bytes(encoded(records))
    return import_file(store, path, FORMATS).session


def title_of(store: Store, session: str) -> str | None:
    """A session's title; the list, the row and an open session agree on it."""
    (row,) = [row for row in store.sessions() if row.session == session]
    with store.open(session, write=False) as opened:
        assert row.title == opened.title == opened.view().title == store.row(opened).title
    return row.title


@pytest.mark.parametrize("order", ORDERS)
def test_a_summary_titles_the_session_that_holds_its_leaf_whichever_file_comes_first(
    store: Store, tmp_path: Path, order: tuple[str, ...]
):
    ids = {name: take(store, tmp_path, name, TOGETHER[name]) for name in order}
    assert title_of(store, ids["holder"]) == "Port the parser"
    assert title_of(store, ids["teller"]) is None
    with store.open(ids["holder"], write=False) as session:
        assert [event.type for event in session.events()] == ["user/message", "assistant/message"]
        data = export(session, session.view(), format_named("claude-code"))
        assert (data.data, data.loss) == (encoded(HOLDER), [])
    with store.open(ids["teller"], write=False) as session:
        assert [event.type for event in session.events()] == ["claude-code.summary", "user/message"]


@pytest.mark.parametrize("order", ORDERS)
def test_also_when_it_is_looked_for_between_the_two_imports(store: Store, tmp_path: Path, order: tuple[str, ...]):
    ids = {}
    for name in order:
        ids[name] = take(store, tmp_path, name, TOGETHER[name])
        assert {row.title for row in store.sessions()} == ({None} if len(ids) == 1 else {"Port the parser", None})
    assert title_of(store, ids["holder"]) == "Port the parser"


@pytest.mark.parametrize("order", ORDERS)
def test_files_that_grow_by_the_leaf_or_the_summary_give_the_title_then(
    store: Store, tmp_path: Path, order: tuple[str, ...]
):
    early = {"holder": HOLDER[:1], "teller": TELLER[1:]}
    late = {"holder": HOLDER, "teller": [*TELLER[1:], TELLER[0]]}
    ids = {name: take(store, tmp_path, name, early[name]) for name in order}
    assert title_of(store, ids["holder"]) is None
    for name in order:
        assert title_of(store, ids["holder"]) is None
        assert take(store, tmp_path, name, late[name]) == ids[name]
    assert title_of(store, ids["holder"]) == "Port the parser"


def test_a_watch_gives_the_title_when_the_second_of_the_two_comes(store: Store, tmp_path: Path):
    folder = tmp_path / "sessions"
    folder.mkdir()
    watch = Watch(store, lambda: files_in(Place(folder)))
    holder, teller = folder / "holder.jsonl", folder / "teller.jsonl"
    holder.write_bytes(encoded(HOLDER[:1]))
    teller.write_bytes(encoded(TELLER[1:]))
    watch.round(0)
    for path, record in ((teller, TELLER[0]), (holder, HOLDER[1])):
        assert {row.title for row in store.sessions()} == {None}
        with path.open("ab") as file:
            file.write(encoded([record]))
        watch.round(1)
    assert title_of(store, watch.imported[holder].session) == "Port the parser"
    watch.close()
    assert title_of(store, watch.imported[holder].session) == "Port the parser"


def test_a_leaf_that_comes_later_in_the_same_file_counts_too(store: Store, tmp_path: Path):
    assert title_of(store, take(store, tmp_path, "one", [summary("of its own"), *HOLDER])) == "of its own"


@pytest.mark.parametrize("own", ["custom-title", "ai-title", "summary"])
@pytest.mark.parametrize("order", ORDERS)
def test_a_title_in_its_own_file_is_better(store: Store, tmp_path: Path, order: tuple[str, ...], own: str):
    titles = {
        "custom-title": {"type": "custom-title", "customTitle": "mine", "sessionId": HOLDER[0]["sessionId"]},
        "ai-title": {"type": "ai-title", "aiTitle": "mine", "sessionId": HOLDER[0]["sessionId"]},
        "summary": summary("mine"),
    }
    records = TOGETHER | {"holder": [*HOLDER, titles[own]]}
    ids = {name: take(store, tmp_path, name, records[name]) for name in order}
    assert title_of(store, ids["holder"]) == "mine"


def test_a_title_that_somebody_gives_here_is_better_and_one_taken_away_stays_away(store: Store, tmp_path: Path):
    ids = {name: take(store, tmp_path, name, records) for name, records in TOGETHER.items()}
    for text, shown in (("mine", "mine"), ("", None)):
        with store.open(ids["holder"]) as session:
            session.set_title(text)
        assert title_of(store, ids["holder"]) == shown


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_of_several_summaries_that_of_the_latest_line_counts_in_any_order(
    store: Store, tmp_path: Path, order: tuple[int, ...]
):
    files = [
        [*HOLDER, user("u2", LEAF)],
        far(summary("early"), user("x1", None), session="f1"),
        far(user("y1", None), summary("late", "u2"), session="f2"),
        far(user("z1", None, timestamp="2026-02-01T00:00:00Z"), summary("later", "u2"), session="f3"),
    ]
    ids = {number: take(store, tmp_path, str(number), files[number]) for number in order}
    assert title_of(store, ids[0]) == "later"


def test_every_session_that_holds_the_leaf_gets_the_title(store: Store, tmp_path: Path):
    ids = [take(store, tmp_path, name, HOLDER) for name in ("one", "copy")]
    take(store, tmp_path, "teller", TELLER)
    assert [title_of(store, id_) for id_ in ids] == ["Port the parser"] * 2


def test_a_fork_has_the_title_when_it_has_the_leaf(store: Store, tmp_path: Path):
    ids = {name: take(store, tmp_path, name, TOGETHER[name]) for name in ("teller", "holder")}
    with store.open(ids["holder"]) as session:
        with session.fork(at=0) as before, session.fork(at=1) as after, after.fork(at=1) as again:
            forks = [before.id, after.id, again.id]
        with session.fork(at=1, detach=True) as copy:
            forks.append(copy.id)
        assert (session.at(0).title, session.at(1).title) == (None, "Port the parser")
    assert [title_of(store, id_) for id_ in forks] == [None, *["Port the parser"] * 3]


def test_without_the_session_that_tells_it_the_title_is_gone(store: Store, tmp_path: Path):
    ids = {name: take(store, tmp_path, name, TOGETHER[name]) for name in ("teller", "holder")}
    assert title_of(store, ids["holder"]) == "Port the parser"
    store.delete(ids["teller"])
    assert title_of(store, ids["holder"]) is None
    take(store, tmp_path, "again", TELLER)
    assert title_of(store, ids["holder"]) == "Port the parser"


def test_of_two_that_tell_a_title_for_a_line_the_other_counts_when_one_is_gone(store: Store, tmp_path: Path):
    holder = take(store, tmp_path, "holder", HOLDER)
    told = {"old": "2026-01-02T00:00:00Z", "new": "2026-01-03T00:00:00Z"}
    ids = {
        name: take(store, tmp_path, name, far(user("x1", None, timestamp=time), summary(name), session=name))
        for name, time in reversed(told.items())
    }
    assert title_of(store, holder) == "new"
    store.delete(ids["new"])
    assert title_of(store, holder) == "old"
    store.delete(ids["old"])
    assert title_of(store, holder) is None


def test_reindex_and_a_lost_catalogue_find_it_again(store: Store, tmp_path: Path):
    ids = {name: take(store, tmp_path, name, TOGETHER[name]) for name in ("holder", "teller")}
    store.reindex()
    assert title_of(store, ids["holder"]) == "Port the parser"
    store.close()
    (tmp_path / "home/local/onward.db").unlink()
    assert title_of(store, ids["holder"]) == "Port the parser"


def test_a_session_with_thousands_of_lines_holds_each_of_them(store: Store, tmp_path: Path):
    many = [user(f"u{n}", f"u{n - 1}" if n else None, "x") for n in range(1500)]
    holder = take(store, tmp_path, "holder", many[:700])
    assert take(store, tmp_path, "holder", many) == holder
    wanted = (0, 279, 280, 699, 700, 1499)
    for n in wanted:
        take(store, tmp_path, f"t{n}", far(user("x1", None), summary(f"line {n}", f"u{n}"), session=f"t{n}"))
        assert title_of(store, holder) == f"line {n}"


def test_only_digests_of_names_are_kept_and_few_rows_hold_them(store: Store, tmp_path: Path):
    take(store, tmp_path, "holder", [user(f"u{n}", None, "x") for n in range(1000)])
    store.sessions()
    work = "SELECT count(*), sum(length(names)) FROM named"
    found = store.catalogue._database.run(lambda connection: connection.execute(work).fetchone(), write=False)
    assert found == (4, 1000 * (DIGEST + 6))


def test_everything_that_names_the_session_says_the_same(tmp_path: Path):
    home, folder = tmp_path / "home", tmp_path / "files"
    folder.mkdir()
    for name, records in TOGETHER.items():
        (folder / f"{name}.jsonl").write_bytes(encoded(records))
    done = document(home, "import", *sorted(folder.iterdir()))["imported"]
    holder, teller = (one["session"] for one in done)
    rows = {row["session"]: row for row in document(home, "sessions", "--all")["sessions"]}
    assert (rows[holder]["title"], rows[teller]["title"]) == ("Port the parser", None)
    assert document(home, "show", holder, "--info")["title"] == "Port the parser"
    found = document(home, "sessions", "--all", "--search", "parser")["sessions"]
    assert [row["session"] for row in found] == [holder]
    assert "Port the parser" in onward(home, "sessions", "--all").out
    for redact in ([], ["--redact"]):
        heading = onward(home, "export", holder, "--to", "markdown", *redact).out.splitlines()[0]
        assert heading == "# Port the parser"
        page = onward(home, "export", holder, "--to", "html", *redact).out
        assert '"title":"Port the parser"' in page
        for to in () if redact else ("pi", "dsh", "codex", "claude-code"):
            file = folder / f"out-{to}"
            onward(home, "export", holder, "--to", to, "--output", file, *redact)
            again = document(tmp_path / "again", "import", file)["imported"][0]
            title = document(tmp_path / "again", "show", again["session"], "--info")["title"]
            # In its own format it stays the file that it was, which says nothing of its title.
            assert title == (None if to == "claude-code" else "Port the parser"), to


def test_a_secret_in_such_a_title_is_taken_out_of_a_redacted_export(tmp_path: Path):
    home = tmp_path / "home"
    secret = "AKIA" + "IOSFODNN7" + "EXAMPLQ"
    for name, records in (("h", HOLDER), ("t", [summary(f"use {secret}"), TELLER[1]])):
        (tmp_path / f"{name}.jsonl").write_bytes(encoded(records))
    done = document(home, "import", tmp_path / "h.jsonl", tmp_path / "t.jsonl")["imported"]
    for to in ("markdown", "html", "pi", "dsh", "codex"):
        words: tuple[Any, ...] = ("export", done[0]["session"], "--to", to)
        assert secret in onward(home, *words).out
        assert secret not in onward(home, *words, "--redact").out


def test_a_real_files_sixteen_summaries_title_the_sessions_that_hold_their_leaves(store: Store, tmp_path: Path):
    path = shared("sessions", "claude-code", "full-session-five.jsonl")
    told = [json.loads(line) for line in path.read_bytes().splitlines() if b'"leafUuid"' in line]
    assert len(told) == 16
    last = {one["leafUuid"]: " ".join(one["summary"].split()) for one in told}
    first, *rest = last
    ids = {first: take(store, tmp_path, "first", far(user(first, None), session="first"))}
    teller = import_file(store, path, FORMATS).session
    for number, leaf in enumerate(rest):
        ids[leaf] = take(store, tmp_path, f"s{number}", far(user(leaf, None), session=f"s{number}"))
    assert {leaf: title_of(store, id_) for leaf, id_ in ids.items()} == last
    assert title_of(store, teller) is None
    with store.open(teller, write=False) as session:
        assert export(session, session.view(), format_named("claude-code")).data == path.read_bytes()


def test_a_fork_goes_out_with_the_title_and_comes_back_with_it(store: Store, tmp_path: Path):
    ids = {name: take(store, tmp_path, name, records) for name, records in TOGETHER.items()}
    with store.open(ids["holder"]) as session, session.fork(at=1) as fork:
        for format_ in FORMATS:
            (tmp_path / "out").mkdir(exist_ok=True)
            file = tmp_path / "out" / format_.name
            exported = export(fork, fork.view(), format_)
            assert not [lost for lost in exported.loss if lost.seq is not None and lost.seq >= fork.next_seq]
            file.write_bytes(exported.data)
            with Store(tmp_path / "other") as other:
                assert title_of(other, import_file(other, file).session) == "Port the parser"
