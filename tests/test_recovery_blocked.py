"""A run that cannot go on as it was: every reason is found, one line is written, and each way out is explicit."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders import assistant, result, user
from command_line import snapshot
from onward import Draft, Session, Store
from onward.errors import AlreadyExists, Blocked, NotFound, Refused
from onward.model.checkpoint import Bindings
from onward.model.data import Digest
from onward.model.digests import Graph, ToolShape, model_digest, permissions_digest, tools_digest
from onward.model.event import decode_event, seal
from onward.running.recovery import ensure_ready
from paths import bracket as B
from paths import called

GRAPH = Graph(1, ("reason", "act", "done"), (("reason", "act"), ("act", "reason"), ("reason", "done")))
TOOLS = [
    ToolShape("read", "1", "read", {"type": "object", "properties": {"path": {"type": "string"}}}, "Read a file."),
    ToolShape("write", "1", "verifiable", {"type": "object"}, "Write a file."),
]
RULES = [{"tool": "write", "may": "ask"}, {"tool": "read", "may": "always"}]
MODEL = {"provider": "openai", "name": "gpt-5", "settings": {"temperature": 0}}
BIG = "a long prompt " * 2_000


def world(directory: Path, **changes: Any) -> Bindings:
    plain: dict[str, Any] = {
        "tenant": "local",
        "user": "me",
        "agent": "coder",
        "graph": GRAPH,
        "tools": tools_digest(TOOLS),
        "permissions": permissions_digest(RULES),
        "model": model_digest(MODEL),
        "workspace": str(directory),
    }
    return Bindings(**{**plain, **changes})


@dataclass
class Case:
    """A run that crashed behind its checkpoint, and what the program that resumes it has."""

    home: Path
    workspace: Path
    bindings: dict[str, Any] = field(default_factory=dict)
    known: tuple[str, ...] = ("my/known",)

    @property
    def log(self) -> Path:
        with Store(self.home) as store:
            path = store.backend.locate("s").path
        assert path is not None
        return path

    def resume(self, **options: Any) -> Any:
        with Store(self.home, user="me") as store, store.open("s") as session:
            return session.resume(world(self.workspace, **self.bindings), known=self.known, **options)

    def write(self, *drafts: Draft) -> None:
        """A process comes by, without a run, and leaves something."""
        with Store(self.home, user="me") as store, store.open("s") as session:
            session.append(*drafts)

    def edit(self, type_: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Change the data of the last event of a type in the file, and seal what follows anew."""
        lines = self.log.read_bytes().splitlines()
        at = max(n for n, line in enumerate(lines) if n and decode_event(line).type == type_)
        for number in range(at, len(lines)):
            value = msgspec.json.decode(lines[number])
            del value["hash"]
            if number == at:
                change(value["data"])
            lines[number], _ = seal(msgspec.json.encode(value), lines[number - 1][-18:-2])
        self.log.write_bytes(b"\n".join(lines) + b"\n")
        (self.home / "local" / "onward.db").unlink(missing_ok=True)


def crashed(folder: Path) -> Case:
    """A run on `main` after an earlier turn: a checkpoint with a call under way, then one more line of its own."""
    case = Case(folder / "home", folder / "work")
    case.workspace.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "--template=", str(case.workspace)], check=True)
    with Store(case.home, user="me") as store, store.create(id="s", agent="coder", cwd=case.workspace) as session:
        session.append(B("T", turn=1, run="r0"), user("earlier"), assistant("done"), B("t", turn=1))
        session.append(
            B("T", turn=2, run="r1"), user(BIG), B("S", step=1), assistant("", ("a", "read"), ("b", "write"))
        )
        session.append(called("a", (8, 0), "read"), result("a"))
        session.append(Draft(type="my/known"))
        session.create_branch("elsewhere", node=4)
        session.checkpoint("reason", "act", state={"loops": 1}, bindings=world(case.workspace))
        session.append(called("b", (8, 1), "write"))
    return case


def test_restored_the_run_is_repaired_and_goes_on_from_its_checkpoint(tmp_path: Path):
    case = crashed(tmp_path)
    answer = case.resume()
    assert (answer.state, answer.reasons, answer.run) == ("repaired", (), "r1")
    assert answer.checkpoint is not None and answer.checkpoint.document.next_node == "act"
    assert answer.checkpoint.document.state == {"loops": 1} and "'act'" in answer.next
    assert case.resume().state == "ready"


# --- the reasons ------------------------------------------------------------------------------------------------------


def _schema(case: Case) -> None:
    case.bindings["schema"] = 2


def _graph(case: Case) -> None:
    case.bindings["graph"] = replace(case.bindings.get("graph", GRAPH), edges=GRAPH.edges[:1])


def _next_node(case: Case) -> None:
    nodes = tuple(node for node in GRAPH.nodes if node != "act")
    case.bindings["graph"] = replace(case.bindings.get("graph", GRAPH), nodes=nodes)


def _branch_missing(case: Case) -> None:
    with Store(case.home) as store, store.open("s") as session:
        if "elsewhere" in session.branches():
            session.delete_branch("elsewhere")
    case.edit("checkpoint", lambda data: data.update(branch="elsewhere"))


def _moved_by_words(case: Case) -> None:
    case.write(user("never mind"))


def _surface(case: Case) -> None:
    case.edit("checkpoint", lambda data: data["digests"].update(surface={"algorithm": "surface-1", "value": "0"}))


def _algorithm(case: Case) -> None:
    case.edit("checkpoint", lambda data: data["digests"].update(surface={"algorithm": "surface-9", "value": "0"}))


def _tools(case: Case) -> None:
    case.bindings["tools"] = tools_digest([TOOLS[0], replace(TOOLS[1], version="2")])


def _permissions(case: Case) -> None:
    case.bindings["permissions"] = permissions_digest(RULES[:1])


def _model(case: Case) -> None:
    case.bindings["model"] = model_digest({**MODEL, "name": "gpt-6"})


def _pairing(case: Case) -> None:
    case.edit("tool/result", lambda data: data.update(call_id="z"))
    case.edit("checkpoint", lambda data: data["digests"].pop("surface"))  # its line is another one now


def _blob(case: Case) -> None:
    (blob,) = (case.log.parent / "blobs").iterdir()
    blob.unlink()


def _directory_gone(case: Case) -> None:
    shutil.rmtree(case.workspace)


def _other_repository(case: Case) -> None:
    shutil.rmtree(case.workspace / ".git")


def _moved_directory(case: Case) -> None:
    inner = case.workspace / "inner"
    inner.mkdir()
    case.bindings["workspace"] = str(inner)


def _conflict(case: Case) -> None:
    case.edit("tool/call", lambda data: data.update(name="remove"))


def _unasked(case: Case) -> None:
    case.write(called("q", None, "write"))


def _unknown(case: Case) -> None:
    case.known = ()


REASONS: dict[str, tuple[Callable[[Case], None], str]] = {
    "schema": (_schema, "SCHEMA"),
    "graph": (_graph, "GRAPH"),
    "branch missing": (_branch_missing, "BRANCH_MISSING"),
    "branch moved": (_moved_by_words, "BRANCH_MOVED"),
    "pairing": (_pairing, "MESSAGE_PAIRING"),
    "surface": (_surface, "SURFACE_DIGEST"),
    "algorithm": (_algorithm, "DIGEST_ALGORITHM"),
    "tools": (_tools, "TOOLSET"),
    "permissions": (_permissions, "PERMISSION"),
    "model": (_model, "MODEL_SETTINGS"),
    "blob": (_blob, "BLOB_MISSING"),
    "directory gone": (_directory_gone, "WORKSPACE_BINDING"),
    "other repository": (_other_repository, "WORKSPACE_BINDING"),
    "moved directory": (_moved_directory, "WORKSPACE_BINDING"),
    "journal conflict": (_conflict, "JOURNAL_CONFLICT"),
    "journal unknown": (_unasked, "JOURNAL_UNKNOWN"),
    "unknown type": (_unknown, "UNKNOWN_TYPE"),
}

CLASH = [
    {"branch missing", "branch moved"},  # a branch that is gone has not moved
    {"surface", "algorithm"},  # one digest: it cannot be compared, or it is another
    {"directory gone", "other repository"},
    {"directory gone", "moved directory"},
    {"other repository", "moved directory"},
]

LEFT = {"branch missing", "algorithm", "other repository", "moved directory"}
"""Each clashes with one of the others; these can be together, and then none of them hides another."""
ALONE = [{name} for name in REASONS]
PAIRS = [set(pair) for pair in combinations(REASONS, 2) if set(pair) not in CLASH and LEFT & set(pair)]


@pytest.mark.parametrize("names", [*ALONE, *PAIRS, {*REASONS} - LEFT], ids=lambda names: " + ".join(sorted(names)))
def test_every_reason_and_every_pair_is_one_line_and_nothing_else(
    tmp_path: Path, names: set[str], monkeypatch: pytest.MonkeyPatch
):
    case = crashed(tmp_path)
    for name in REASONS:  # in the order in which they are looked at; what rewrites the file comes with the others
        if name in names:
            REASONS[name][0](case)
    inbox = case.log.parent / "inbox"
    with Store(case.home) as store:
        store.drop("s", "title", {"title": "from outside"})
    before, left = case.log.read_bytes(), snapshot(inbox)
    answer = case.resume()
    after = case.log.read_bytes()
    expected = [code for name, (_, code) in REASONS.items() if name in names]
    assert answer.state == "blocked" and sorted({reason.code for reason in answer.reasons}) == sorted(set(expected))
    assert after.startswith(before)
    (line,) = after[len(before) :].splitlines()
    event = decode_event(line)
    assert event.type == "run/blocked"
    assert [reason["code"] for reason in event.data["reasons"]] == [reason.code for reason in answer.reasons]
    assert snapshot(inbox) == left, "the inbox is left alone"
    assert case.resume().reasons == answer.reasons
    assert case.log.read_bytes() == after, "asked again, nothing is added"
    with Store(case.home) as store, store.open("s"):
        pass  # the lock is free


def test_a_next_node_that_is_gone_is_told_beside_the_graph(tmp_path: Path):
    case = crashed(tmp_path)
    _next_node(case)
    assert [reason.code for reason in case.resume().reasons] == ["GRAPH", "NEXT_NODE_MISSING"]


def test_all_reasons_at_once_come_in_the_order_in_which_they_are_looked_at(tmp_path: Path):
    case = crashed(tmp_path)
    for name, (change, _) in REASONS.items():
        if name not in LEFT:
            change(case)
    assert [reason.code for reason in case.resume().reasons] == [
        "SCHEMA", "GRAPH", "BRANCH_MOVED", "SURFACE_DIGEST", "TOOLSET", "PERMISSION", "MODEL_SETTINGS",
        "MESSAGE_PAIRING", "BLOB_MISSING", "WORKSPACE_BINDING", "JOURNAL_CONFLICT", "JOURNAL_UNKNOWN", "UNKNOWN_TYPE",
    ]  # fmt: skip


@pytest.mark.parametrize("field_", ["tenant", "user", "agent"])
def test_anothers_session_is_not_found_before_anything_of_it_is_read(tmp_path: Path, field_: str):
    case = crashed(tmp_path)
    case.edit("checkpoint", lambda data: data.update(schema=99))
    before = case.log.read_bytes()
    case.bindings[field_] = "somebody"
    with pytest.raises(NotFound, match="no such session") as caught:
        case.resume()
    assert "somebody" not in str(caught.value) and case.log.read_bytes() == before


READ, WRITE = TOOLS
BACKWARDS = dict(reversed(READ.parameters.items()))
MUTATIONS: dict[str, tuple[dict[str, Any], str | None]] = {
    "order of tools": ({"tools": [WRITE, READ]}, None),
    "order of keys": ({"tools": [replace(READ, parameters=BACKWARDS), WRITE]}, None),
    "a description": ({"tools": [replace(READ, description="Reads."), WRITE]}, "TOOLSET"),
    "a schema": ({"tools": [replace(READ, parameters={"type": "object"}), WRITE]}, "TOOLSET"),
    "an effect": ({"tools": [replace(READ, effect="irreversible"), WRITE]}, "TOOLSET"),
    "a tool more": ({"tools": [READ, WRITE, replace(READ, name="list")]}, "TOOLSET"),
    "a tool less": ({"tools": [READ]}, "TOOLSET"),
    "order of permissions": ({"permissions": permissions_digest(RULES[::-1])}, None),
    "a model's setting": ({"model": model_digest({**MODEL, "settings": {"temperature": 1}})}, "MODEL_SETTINGS"),
    "order of edges": ({"graph": replace(GRAPH, edges=GRAPH.edges[::-1])}, None),
    "the graph's version": ({"graph": replace(GRAPH, version=2)}, "GRAPH"),
    "an older schema": ({"schema": 0}, "SCHEMA"),
    "another recipe": ({"tools": Digest("tools-0", "0")}, "DIGEST_ALGORITHM"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_what_counts_as_a_change(tmp_path: Path, name: str):
    case = crashed(tmp_path)
    change, code = MUTATIONS[name]
    case.bindings.update({key: tools_digest(value) if type(value) is list else value for key, value in change.items()})
    answer = case.resume()
    assert [reason.code for reason in answer.reasons] == ([] if code is None else [code])
    assert answer.state == ("repaired" if code is None else "blocked")


def test_one_word_in_two_unicode_forms_is_one_word():
    composed, apart = "caf\u00e9", "cafe\u0301"
    shapes = [[ToolShape(word, "1", "read", {word: [word]}, word)] for word in (composed, apart)]
    assert tools_digest(shapes[0]) == tools_digest(shapes[1])
    assert model_digest({composed: {composed}.pop()}) == model_digest({apart: apart})


# --- the branch -------------------------------------------------------------------------------------------------------


def test_what_does_not_touch_the_surface_may_come_after_a_checkpoint(tmp_path: Path):
    case = crashed(tmp_path)
    case.write(Draft(type="custom", data={"kind": "k"}), Draft(type="title", data={"title": "t"}))
    assert case.resume().state == "repaired"


def test_what_the_run_itself_logged_after_its_checkpoint_is_no_change(tmp_path: Path):
    case = crashed(tmp_path)
    assert case.resume().state == "repaired", "a tool/call"
    with Store(tmp_path / "two", user="me") as store, store.create(id="s", agent="coder") as session:
        session.append(B("T", turn=1, run="r1"), user("go"), B("S"))
        session.checkpoint("init", "reason")
        session.append(
            assistant("", ("a", "read")), called("a", (5, 0), "read"), result("a"), B("s"), B("S"), assistant("more")
        )
    with Store(tmp_path / "two", user="me") as store, store.open("s") as session:
        assert session.resume().state == "repaired"


def test_a_branch_that_was_moved_behind_the_checkpoint_blocks_and_moved_back_it_goes_on(tmp_path: Path):
    case = crashed(tmp_path)
    with Store(case.home) as store, store.open("s") as session:
        leaf = session.leaf
        session.move("main", 8)
    assert [reason.code for reason in case.resume().reasons] == ["BRANCH_MOVED"]
    with Store(case.home) as store, store.open("s") as session:
        session.move("main", leaf)
    assert case.resume().state == "repaired"


def test_another_branch_at_the_same_place_is_not_the_runs_branch(tmp_path: Path):
    case = crashed(tmp_path)
    with Store(case.home) as store, store.open("s") as session:
        session.create_branch("twin")
        session.move("twin", session.leaf)
    assert [reason.code for reason in case.resume().reasons] == ["BRANCH_MOVED"]


def test_a_log_that_lost_its_end_has_lost_the_checkpoint_too(tmp_path: Path):
    case = crashed(tmp_path)
    lines = case.log.read_bytes().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if b'"type":"checkpoint"' in line)
    case.log.write_bytes(b"".join(lines[:at]))
    answer = case.resume()
    assert (answer.state, answer.checkpoint) == ("repaired", None)


# --- restoring, and what a program without bindings may do -----------------------------------------------------------


@pytest.mark.parametrize("name", ["graph", "tools", "permissions", "model", "moved directory"])
def test_restoring_what_was_changed_unblocks(tmp_path: Path, name: str):
    case = crashed(tmp_path)
    REASONS[name][0](case)
    assert case.resume().state == "blocked"
    case.bindings.clear()
    assert case.resume().state == "repaired"


def test_a_program_that_cannot_compare_does_not_lift_a_block(tmp_path: Path):
    case = crashed(tmp_path)
    _tools(case)
    _graph(case)
    blocked = case.resume()
    before = case.log.read_bytes()
    with Store(case.home) as store, store.open("s") as session:
        bare = session.resume(known=case.known)
        assert bare.reasons == blocked.reasons
        with pytest.raises(Blocked, match="TOOLSET"):
            ensure_ready(session, Bindings(), known=case.known)
    assert case.log.read_bytes().startswith(before)
    case.bindings.clear()
    assert case.resume().state == "repaired"


# --- the ways out -----------------------------------------------------------------------------------------------------


def run_nodes(session: Session, branch: str) -> list[bytes]:
    return [session.log.chain.owner(seq).reader.line(seq) for seq in session.view(branch).path]


def test_accepted_the_session_goes_on_from_the_last_completed_turn_and_the_run_waits(tmp_path: Path):
    case = crashed(tmp_path)
    _tools(case)
    case.resume()
    with Store(case.home) as store, store.open("s", write=False) as session:
        old, leaf = run_nodes(session, "main"), session.leaf
    answer = case.resume(accept="second-try")
    assert (answer.state, answer.branch) == ("ready", "second-try")
    assert [reason.code for reason in answer.reasons] == ["TOOLSET"]
    with Store(case.home, user="me") as store, store.open("s") as session:
        assert session.branch == "second-try"
        assert [event.type for event in session.nodes()] == [
            "turn/start",
            "user/message",
            "assistant/message",
            "turn/end",
        ]
        assert run_nodes(session, "main") == old
        ensure_ready(session, known=case.known)
        assert session.view("main").leaf == leaf, "the run is left alone while it is blocked"
        session.append(
            *(
                msgspec.structs.replace(draft, branch="second-try")
                for draft in (B("T", run="r2"), user("again"), B("t"))
            )
        )
        (made,) = (
            event for event in session.events() if event.type == "branch/create" and event.data["name"] == "second-try"
        )
        assert made.data["meta"]["accepted"] == {"run": "r1", "branch": "main", "reasons": ["TOOLSET"]}
        session.move("main", leaf)
    case.bindings.clear()
    answer = case.resume()
    assert (answer.state, answer.run) == ("repaired", "r1"), "restored, it is resumed on its own branch"


def test_accepting_before_any_turn_was_completed_starts_behind_what_was_there(tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="s") as session:
        session.system("You are careful.")
        session.append(B("T", run="r1"), user("go"))
    with Store(tmp_path) as store, store.open("s") as session:
        session.resume(accept="anew")
        assert [event.type for event in session.nodes()] == ["system/message"]


def test_a_branch_that_exists_is_not_accepted_as_a_new_one(tmp_path: Path):
    case = crashed(tmp_path)
    before = case.log.read_bytes()
    with pytest.raises(AlreadyExists):
        case.resume(accept="elsewhere")
    with pytest.raises(Refused):
        case.resume(accept="")
    assert case.log.read_bytes() == before


def test_a_run_that_was_resumed_before_is_left_behind_as_a_whole(tmp_path: Path):
    case = crashed(tmp_path)
    case.resume()
    with Store(case.home, user="me") as store, store.open("s") as session:
        session.append(B("T", run="r1", turn=3, resumes=5), user("more"))
    case.resume(accept="anew")
    with Store(case.home, user="me") as store, store.open("s") as session:
        assert session.leaf == 4


@pytest.mark.parametrize("closed", [False, True], ids=["open", "interrupted"])
@pytest.mark.parametrize("blocked", [False, True], ids=["free", "blocked"])
def test_discarded_a_run_is_given_up_for_good(tmp_path: Path, closed: bool, blocked: bool):
    case = crashed(tmp_path)
    if closed:
        assert case.resume().state == "repaired"
    if blocked:
        _tools(case)
        assert case.resume().state == "blocked"
    answer = case.resume(discard=True)
    assert answer.closed and answer.run is None
    with Store(case.home, user="me") as store, store.open("s", write=False) as session:
        end = session.nodes()[-1]
        assert (end.type, end.data["reason"]) == ("turn/end", "aborted") and "discarded" in end.data["detail"]
        assert session.turns()[-1].complete
    before = case.log.read_bytes()
    again = case.resume()
    assert (again.state, again.run, again.resumes) == ("ready", None, None)
    assert case.log.read_bytes() == before
    with pytest.raises(Refused, match="nothing was interrupted"):
        case.resume(discard=True)


def test_another_branch_whose_run_is_blocked_is_left_alone_and_named(tmp_path: Path):
    case = crashed(tmp_path)
    with Store(case.home) as store, store.open("s") as session:
        leaf = session.leaf
        session.move("elsewhere", 4)
    _tools(case)
    answer = case.resume()
    assert answer.state == "ready" and [(name, [r.code for r in why]) for name, why in answer.left] == [
        ("main", ["TOOLSET"])
    ]
    with Store(case.home) as store, store.open("s", write=False) as session:
        assert session.view("main").leaf == leaf
    case.bindings.clear()
    assert case.resume().state == "repaired"


# --- older checkpoints ------------------------------------------------------------------------------------------------


def checkpointed(home: Path, count: int) -> list[int]:
    with Store(home, user="me") as store, store.create(id="s") as session:
        session.append(B("T", run="r1"), user("go"))
        return [session.checkpoint("reason", "act", state={"n": n}).seq for n in range(count)]


def test_the_last_five_checkpoints_of_a_run_can_be_resumed_from_and_older_ones_are_expired(tmp_path: Path):
    seqs = checkpointed(tmp_path, 7)
    with Store(tmp_path) as store, store.open("s", write=False) as session:
        assert [(each.seq, each.expired) for each in session.checkpoints("r1")] == [
            (s, n < 2) for n, s in enumerate(seqs)
        ]
    with Store(tmp_path) as store, store.open("s") as session:
        answer = session.resume(checkpoint=seqs[1], dry_run=True)
        assert [reason.code for reason in answer.reasons] == ["CHECKPOINT_EXPIRED"]
        with pytest.raises(NotFound):
            session.resume(checkpoint=1, dry_run=True)
        chosen = session.resume(checkpoint=seqs[2], dry_run=True)
        assert (
            chosen.state == "repaired"
            and chosen.checkpoint is not None
            and chosen.checkpoint.document.state == {"n": 2}
        )
        assert session.resume().checkpoint.document.state == {"n": 6}


def test_an_older_checkpoint_is_refused_when_a_tool_had_an_effect_after_it(tmp_path: Path):
    with Store(tmp_path, user="me") as store, store.create(id="s") as session:
        session.append(B("T", run="r1"), user("go"), B("S"), assistant("", ("a", "write")))
        older = session.checkpoint("reason", "act").seq
        session.append(called("a", (4, 0), "write"), result("a"))
        session.checkpoint("act", "reason")
    with Store(tmp_path) as store, store.open("s") as session:
        answer = session.resume(checkpoint=older, dry_run=True)
        assert [reason.code for reason in answer.reasons] == ["EFFECTS_SINCE"]


def test_a_checkpoint_belongs_to_a_run_that_is_running(tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="s") as session:
        with pytest.raises(Refused, match="a turn that is running"):
            session.checkpoint("a", "b")
        session.append(B("T"))
        with pytest.raises(Refused, match="the turn names none"):
            session.checkpoint("a", "b")
        session.append(B("t"), B("T", run="r1", turn=1), B("S", step=4), user("go"))
        document = session.checkpoint("a", None).data
        assert (document["run"], document["turn"], document["step"], document["next_node"]) == ("r1", 1, 4, None)
    with Store(tmp_path) as store, store.open("s") as session, pytest.raises(Refused, match="running"):
        session.checkpoint("a", "b")


def test_a_digest_that_grew_with_the_surface_is_the_one_computed_at_once(tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="s") as session:
        session.append(B("T", run="r1"))
        for number in range(6):
            session.user(f"{number}")
            if number == 3:
                session.edit(session.surface[0], None)
            session.checkpoint("a", "b")
    with Store(tmp_path) as store, store.open("s") as session:
        for saved in session.checkpoints():
            view = session.node(saved.about)
            hashes = "".join(view.log.chain.stored(seq).hash for seq in view.surface)
            value = hashlib.blake2b(hashes.encode(), digest_size=16, person=b"surface-1").hexdigest()
            assert saved.document.digests["surface"].value == value
        assert session.resume().state == "repaired"
