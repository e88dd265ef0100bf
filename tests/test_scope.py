"""Scope: another's session is as if it were not there, whichever verb one tries."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import claude_sessions as claude
from command_line import onward, program
from onward import MemoryBackend, Session, Store, import_file
from onward.errors import NotFound, OnwardError, Refused, Usage
from onward.log.jsonl_backend import JsonlBackend

FOREIGN, ABSENT = "0-theirs", "0-absent"


class Answer(NamedTuple):
    """What a verb said: an error's class, message, hint and place, or what it gave."""

    kind: str
    message: str
    hint: str | None
    where: dict[str, Any]


def answer(verb: Callable[[str], Any], session: str) -> Answer:
    """What a verb says of an id, with the id itself taken out."""

    def bare(text: str) -> str:
        return text.replace(session, "ID").replace(session[:-1], "ID")

    try:
        return Answer("gave", bare(repr(verb(session))), None, {})
    except OnwardError as error:
        where = {name: bare(str(value)) for name, value in error.where.items()}
        return Answer(
            type(error).__name__, bare(error.message), None if error.hint is None else bare(error.hint), where
        )


WHO: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "tenant": ({"tenant": "one"}, {"tenant": "two"}),
    "user": ({"user": "ann", "scope": "user"}, {"user": "bob", "scope": "user"}),
    "agent": (
        {"user": "ann", "agent": "coder", "scope": "agent"},
        {"user": "ann", "agent": "writer", "scope": "agent"},
    ),
    "agent, of another user": (
        {"user": "ann", "agent": "coder", "scope": "agent"},
        {"user": "bob", "agent": "coder", "scope": "agent"},
    ),
}


class Both(NamedTuple):
    """Two stores on the same sessions; the foreign session is `theirs`."""

    mine: Store
    theirs: Store
    foreign: Session


@pytest.fixture(params=WHO)
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["files", "memory"])
def both(request: pytest.FixtureRequest, level: str, tmp_path: Path) -> Iterator[Both]:
    backends: dict[str, MemoryBackend] = {}

    def store(fields: dict[str, Any]) -> Store:
        tenant = fields.get("tenant", "local")
        if request.param == "files":
            return Store(tmp_path, **fields)
        return Store(backend=backends.setdefault(tenant, MemoryBackend(tenant)), **fields)

    mine, theirs = map(store, WHO[level])
    with mine, theirs, theirs.create(id=FOREIGN, cwd="/w", title="Secret plan") as foreign:
        foreign.user("nobody else may read this")
        yield Both(mine, theirs, foreign)


def source(tmp_path: Path) -> Path:
    path = tmp_path / f"{claude.SESSION}.jsonl"
    path.write_bytes(claude.encoded([claude.user("u1", None), claude.reply("a1", "u1")]))
    return path


BY_ID: dict[str, Callable[[Store, str], Any]] = {
    "open": lambda store, id_: store.open(id_),
    "find": lambda store, id_: store.find(id_),
    "drop": lambda store, id_: store.drop(id_, "title", {"title": "Mine now"}),
    "queue": lambda store, id_: store.queue(id_, "do this"),
    "cancel_input": lambda store, id_: store.cancel_input(id_, "x"),
    "delete": lambda store, id_: store.delete(id_),
    "discard": lambda store, id_: store.discard(id_),
}
"""Public verbs of `Store` that are given a session's id."""

MORE_WAYS: dict[str, Callable[[Store, str], Any]] = {
    "open to read": lambda store, id_: store.open(id_, write=False),
    "open, taking over": lambda store, id_: store.open(id_, take_over=True),
    "find by a prefix": lambda store, id_: store.find(id_[:-1]),
    **{
        f"backend.{name}": lambda store, id_, name=name: getattr(store.backend, name)(id_)
        for name in ("reader", "blobs", "inbox", "locate", "held", "trash")
    },
    "backend.writer": lambda store, id_: store.backend.writer(id_, floor=0),
    "backend.erase": lambda store, id_: store.backend.erase(id_),
}

ELSEWHERE = {
    "fork": "test_a_handle_of_anothers_session_cannot_be_forked_into_ones_own",
    "sessions": "test_no_listing_and_no_search_shows_anothers_session",
    "search": "test_no_listing_and_no_search_shows_anothers_session",
    "imported_from": "test_what_another_imported_is_not_imported_for_oneself",
    "imported_as": "test_what_another_imported_is_not_imported_for_oneself",
    "purge": "test_purging_erases_ones_own_trash_and_nothing_that_anothers_fork_needs",
    "reindex": "test_no_listing_and_no_search_shows_anothers_session",
}
"""Public verbs that reach sessions in another way, each with its test."""

NO_REACH = {
    "create": "begins a session; an id that is taken is refused whoever has it, for two cannot lie in one place",
    "close": "reaches none",
    "leave_catalogue_alone": "reaches none; what it lists from then on is hidden as before",
    "steady": "is the time",
    "row": "is of a handle",
    "note_turn_end": "is of a handle",
    "closing": "is of a handle",
    "title_elsewhere": "is of a handle; see test_what_others_say_of_ones_session_stays_theirs",
}


def test_every_public_verb_of_the_store_is_looked_at_here():
    verbs = {name for name, value in inspect.getmembers(Store, inspect.isfunction) if not name.startswith("_")}
    assert verbs == {*BY_ID, *ELSEWHERE, *NO_REACH}, "a new verb: say here how it keeps to the scope"
    assert all(test in globals() for test in ELSEWHERE.values())


@pytest.mark.parametrize("verb", [*BY_ID, *MORE_WAYS])
def test_anothers_id_is_answered_as_one_that_does_not_exist(both: Both, verb: str):
    act = (BY_ID | MORE_WAYS)[verb]
    before = both.foreign.next_seq
    absent = answer(lambda id_: act(both.mine, id_), ABSENT)
    assert absent.kind == "NotFound"
    assert answer(lambda id_: act(both.mine, id_), FOREIGN) == absent
    both.foreign.refresh()
    both.foreign.user("still mine")
    assert both.foreign.next_seq == before + 1 and both.theirs.find(FOREIGN) == FOREIGN
    assert both.foreign.queued() == [] and both.foreign.title == "Secret plan"


def test_opening_with_auto_create_does_not_open_it(both: Both, level: str):
    if level == "tenant":
        with both.mine.open(FOREIGN, auto_create=True) as own:
            assert own.title is None and own.next_seq == 0, "ids are each tenant's own"
    else:
        with pytest.raises(Refused):
            both.mine.open(FOREIGN, auto_create=True)


def test_no_listing_and_no_search_shows_anothers_session(both: Both):
    both.foreign.close()
    assert [row.session for row in both.theirs.sessions()] == [FOREIGN]
    for _ in range(2):
        assert both.mine.sessions() == [] and both.mine.sessions(search="nobody") == []
        assert both.mine.search("nobody") == both.mine.search("Secret") == both.mine.search(FOREIGN) == []
        assert both.mine.reindex() == (0, 0)
    assert both.theirs.reindex()[0] == 1
    mine = both.mine.backend
    assert list(mine.sessions()) == list(mine.ids()) == list(mine.trashed()) == []
    with pytest.raises(NotFound):
        both.mine.find("@", cwd="/w")
    both.mine.create(id="0-mine", cwd="/w").close()
    assert [row.session for row in both.mine.sessions()] == ["0-mine"]
    assert both.mine.find("0-") == both.mine.find("@", cwd="/w") == "0-mine", "a prefix is one's own alone"


def test_a_handle_of_anothers_session_cannot_be_forked_into_ones_own(both: Both):
    for detach in (False, True):
        with pytest.raises(NotFound) as caught:
            both.mine.fork(both.foreign, detach=detach)
        assert caught.value.message == answer(both.mine.backend.locate, ABSENT).message
    assert both.mine.sessions() == []


def test_what_another_imported_is_not_imported_for_oneself(both: Both, level: str, tmp_path: Path):
    path = source(tmp_path)
    if level.startswith("agent"):
        with pytest.raises(Refused, match="claude-code"):
            import_file(both.mine, path)  # it would be a session of that agent
        return
    theirs = import_file(both.theirs, path)
    assert both.mine.imported_from("claude-code", str(path)) == []
    assert both.mine.imported_as("claude-code", claude.SESSION) is None
    mine = import_file(both.mine, path)
    assert mine.session != theirs.session and mine.new == mine.events
    assert both.mine.imported_from("claude-code", str(path)) == [mine.session]
    assert both.mine.imported_as("claude-code", claude.SESSION) == mine.session
    assert both.theirs.imported_as("claude-code", claude.SESSION) == theirs.session


def test_purging_erases_ones_own_trash_and_nothing_that_anothers_fork_needs(both: Both, level: str):
    own = both.mine.create(id="0-own")
    own.user("shared by whoever runs all of this")
    if level != "tenant":
        everybody = Store(backend=both.mine.upkeep.backend, user="admin")
        with everybody.open("0-own", write=False) as seen, everybody.fork(seen, id="0-fork"):
            pass
    own.close()
    both.foreign.close()
    both.mine.delete("0-own")
    both.theirs.delete(FOREIGN)
    assert both.mine.purge() == ([] if level != "tenant" else ["0-own"])
    assert [found.id for found in both.theirs.backend.trashed()] == [FOREIGN]
    assert both.theirs.purge() == [FOREIGN]


def test_what_cannot_be_read_is_nobodys_where_the_user_counts(tmp_path: Path):
    with Store(tmp_path, user="ann") as every:
        every.create(id="0-bad").close()
        log = every.backend.locate("0-bad").path
        assert log is not None
        log.write_bytes(b"{}\n" + log.read_bytes())
        assert every.sessions() == [] and every.unreadable == ["0-bad"]
    with Store(tmp_path, user="ann", scope="user") as narrow:
        assert narrow.sessions() == [] and narrow.unreadable == []
        assert answer(narrow.open, "0-bad") == answer(narrow.open, ABSENT)
        narrow.create(id="0-x").close()
        narrow.delete("0-x")
        with pytest.raises(Refused) as caught:
            narrow.purge()
        assert "0-bad" not in str(caught.value) + str(caught.value.hint) and caught.value.__cause__ is None


def test_a_fork_of_what_was_shared_reads_its_past_whoever_had_it(tmp_path: Path):
    with Store(tmp_path, user="ann") as ann, ann.create(id="0-ann") as session:
        session.user("x" * 20_000)
        with Store(tmp_path, user="bob") as admin, admin.fork(session, id="0-bob"):
            pass
    with Store(tmp_path, user="bob", scope="user") as bob:
        for write in (False, True):
            with bob.open("0-bob", write=write) as fork:
                assert fork.context().messages[0].blocks[0].text == "x" * 20_000
        assert [row.session for row in bob.sessions()] == ["0-bob"]
        with pytest.raises(NotFound):
            bob.open("0-ann")


def test_what_others_say_of_ones_session_stays_theirs(tmp_path: Path):
    summary = claude.encoded([{"type": "summary", "summary": "Their words", "leafUuid": "a1"}])
    (tmp_path / "titles.jsonl").write_bytes(summary + claude.encoded([claude.user("z1", None)]))
    home = tmp_path / "home"
    with Store(home, user="ann", scope="user") as ann:
        mine = import_file(ann, source(tmp_path)).session
    with Store(home, user="bob", scope="user") as bob:
        import_file(bob, tmp_path / "titles.jsonl")
    with Store(home) as every, every.open(mine, write=False) as session:
        assert session.title == "Their words" and every.row(session).title == "Their words"
    with Store(home, user="ann", scope="user") as ann, ann.open(mine, write=False) as session:
        assert session.title is None and ann.row(session).title is None
        assert [row.title for row in ann.sessions()] == [None]


def test_a_session_in_the_scope_of_an_agent_is_that_agents(tmp_path: Path):
    with Store(tmp_path, user="ann", agent="coder", scope="agent") as store:
        with store.create() as session, session.fork() as child:
            assert session.header.agent == child.header.agent == "coder"
        with pytest.raises(Refused, match="writer"):
            store.create(agent="writer")
    with Store(tmp_path, user="ann", scope="agent") as nobodys:
        assert nobodys.sessions() == []
        nobodys.create(id="0-plain").close()
        assert [row.session for row in nobodys.sessions()] == ["0-plain"]
    with Store(tmp_path, user="ann", scope="user") as anns:
        assert len(anns.sessions()) == 3


def test_a_scope_that_there_is_not_is_refused(tmp_path: Path):
    with pytest.raises(Usage, match="team"):
        Store(tmp_path, scope="team")  # type: ignore[arg-type]


def test_a_log_that_lies_in_another_tenants_folder_is_not_theirs(tmp_path: Path):
    with Store(tmp_path, tenant="one") as store:
        store.create(id="0-one").close()
        folder = store.backend.locate("0-one").path
    assert folder is not None
    target = Path(str(folder).replace("/one/", "/two/"))
    target.parent.mkdir(parents=True)
    target.write_bytes(folder.read_bytes())
    with Store(tmp_path, tenant="two") as store:
        assert answer(store.open, "0-one") == answer(store.open, ABSENT)
        assert store.sessions() == []
    assert JsonlBackend(tmp_path, "one").locate("0-one")


def test_the_command_line_works_for_the_tenant_and_user_of_its_environment(tmp_path: Path):
    with Store(tmp_path, tenant="two") as store:
        store.create(id="0-two", cwd="/w").close()
    assert program(tmp_path, "show", "0-two").code == 3
    env = {"ONWARD_TENANT": "two", "ONWARD_USER": "bob"}
    (row,) = program(tmp_path, "sessions", "--all", "--json", env=env).document["sessions"]
    assert row["session"] == "0-two"
    child = program(tmp_path, "fork", "0-two", "--json", env=env).document["session"]
    rows = program(tmp_path, "sessions", "--all", "--json", env=env).document["sessions"]
    assert {row["session"]: row["user"] for row in rows}[child] == "bob"
    bad = program(tmp_path, "sessions", env={"ONWARD_TENANT": "../local"})
    assert bad.code == 1 and "tenant" in bad.err
    assert onward(tmp_path, "show", "0-two").err.replace("0-two", "ID") == onward(
        tmp_path, "show", "0-none"
    ).err.replace("0-none", "ID")
