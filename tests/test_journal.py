"""The tool journal: what became of each call, told from the nodes of one path alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import assistant, result, user
from onward.errors import Conflict, NotLossless
from onward.model.call import Call, Identity, arguments_digest, call_key, check_arguments
from onward.model.event import APPEND, Draft, Event, replace, view
from onward.model.journal import journal
from onward.model.repair import NOT_STARTED, OUTCOME_UNKNOWN, closers
from paths import bracket, events, said, wish

B = bracket


def calls(drafts: list[Draft], **point: Any) -> list[Call]:
    return read(events(drafts), **point)


def read(path: list[Event], **point: Any) -> list[Call]:
    return journal(path, owner=lambda seq: "s1", **point)


def call(call_id: str = "c", **data: Any) -> Draft:
    """A tool/call."""
    return Draft(type="tool/call", data={"call_id": call_id, "name": "bash", "arguments": {}, **data})


def answer(call_id: str = "c", text: str = "ok", surface: Any = APPEND, **data: Any) -> Draft:
    """A tool/result with any data."""
    content = [{"type": "text", "text": text}]
    sources = data.pop("sources", ())
    return Draft(
        type="tool/result", data={"call_id": call_id, "content": content, **data}, surface=surface, sources=sources
    )


def asked(outcome: str = "asked", call_id: str = "c", **data: Any) -> Draft:
    """A tool/approval, of a call without arguments."""
    bound = {"arguments_digest": arguments_digest({}), **data}
    return Draft(type="tool/approval", data={"call_id": call_id, "outcome": outcome, **bound})


def settled(call: int, outcome: str = "applied", **data: Any) -> Draft:
    """A tool/reconciled."""
    return Draft(type="tool/reconciled", data={"call": call, "outcome": outcome, "by": "me", **data})


def told(one: Call) -> str:
    """A call in a few words: `c succeeded @3 → 4`."""
    started = "".join(f" @{attempt.seq}" for attempt in one.attempts)
    answered = "" if one.result is None else f" → {one.result}"
    late = "".join(f" late {seq}" for seq in one.late)
    return f"{one.call_id} {one.state}{started}{answered}{late}"


ONE = [user(), assistant("", ("c", "bash"))]
TWO = [user(), assistant("", ("a", "bash"), ("b", "bash"))]
UNKNOWN = {"how": "synthetic", "code": OUTCOME_UNKNOWN, "is_error": True}
NEVER = {"how": "synthetic", "code": NOT_STARTED, "is_error": True}

TABLE: list[tuple[str, list[Draft], list[str]]] = [
    ("nothing was asked for", [user(), assistant()], []),
    ("asked for", ONE, ["c prepared"]),
    ("somebody is asked whether it may run", [*ONE, asked()], ["c prepared"]),
    ("allowed", [*ONE, asked(), asked("allowed")], ["c approved"]),
    ("allowed without a question", [*ONE, asked("allowed")], ["c approved"]),
    ("nobody there to answer", [*ONE, asked(), asked("unavailable")], ["c prepared"]),
    ("rejected", [*ONE, asked(), asked("rejected")], ["c cancelled"]),
    ("rejected, and the model told", [*ONE, asked("rejected"), answer(is_error=True)], ["c cancelled → 3"]),
    ("allowed after a no", [*ONE, asked("rejected"), asked("allowed")], ["c approved"]),
    ("asked again after the question was withdrawn", [*ONE, asked(), asked("cancelled"), asked(), asked("allowed")],
     ["c approved"]),
    ("allowed after the question was withdrawn", [*ONE, asked(), asked("cancelled"), asked("allowed")],
     ["c cancelled"]),
    ("allowed twice", [*ONE, asked("allowed"), asked("allowed")], ["c approved"]),
    ("allowed, and taken back", [*ONE, asked("allowed"), asked("rejected")], ["c cancelled"]),
    ("started", [*ONE, call()], ["c started @2"]),
    ("started after an approval", [*ONE, asked("allowed"), call()], ["c started @3"]),
    ("succeeded", [*ONE, call(), answer(call=2)], ["c succeeded @2 → 3"]),
    ("failed", [*ONE, call(), answer(is_error=True)], ["c failed @2 → 3"]),
    ("no tool/call, as in other programs' logs", [*ONE, answer()], ["c succeeded → 2"]),
    ("no tool/call, and an error", [*ONE, answer(is_error=True)], ["c failed → 2"]),
    ("never started", [*ONE, answer(**NEVER)], ["c cancelled → 2"]),
    ("kept from running", [*ONE, answer(how="synthetic", code="VETOED", is_error=True)], ["c cancelled → 2"]),
    ("outcome unknown", [*ONE, call(), answer(call=2, **UNKNOWN)], ["c unknown @2 → 3"]),
    ("called not started although it was", [*ONE, call(), answer(call=2, **NEVER)], ["c unknown @2 → 3"]),
    ("unknown, as another program says it", [*ONE, call(), answer(code=OUTCOME_UNKNOWN, is_error=True)],
     ["c unknown @2 → 3"]),
    ("a stored result was given again", [*ONE, call(), answer(call=2, how="replayed")], ["c succeeded @2 → 3"]),
    ("a stored error was given again", [*ONE, call(), answer(call=2, how="replayed", is_error=True)],
     ["c failed @2 → 3"]),
    ("the second attempt succeeded", [*ONE, call(), call(attempt=2), answer(call=3)], ["c succeeded @2 @3 → 4"]),
    ("the first attempt answers late", [*ONE, call(), call(attempt=2), answer(call=2, surface=None, late=True)],
     ["c started @2 @3 late 4"]),
    ("a real result after a synthetic one", [*ONE, call(), answer(call=2, **UNKNOWN), answer(call=2, surface=None,
     late=True)], ["c unknown @2 → 3 late 4"]),
    ("a late result without a tool/call", [user(), assistant("", ("c", "bash"), ("c", "bash")), answer(),
     answer(surface=None, late=True)], ["c succeeded → 2 late 3", "c prepared"]),
    ("a late result of what nothing is known of", [*ONE, answer(surface=None, late=True)], ["c prepared late 2"]),
    ("a second result that nobody marked", [*ONE, call(), answer(call=2), answer(call=2)],
     ["c succeeded @2 → 3 late 4"]),
    ("reconciled", [*ONE, call(), answer(call=2, **UNKNOWN), settled(2)], ["c reconciled @2 → 3"]),
    ("reconciled by the result's seq", [*ONE, answer(code=OUTCOME_UNKNOWN), settled(2)], ["c reconciled → 2"]),
    ("reconciled before it was answered", [*ONE, call(), settled(2), answer(call=2, how="synthetic")],
     ["c reconciled @2 → 4"]),
    ("not applied, so tried again", [*ONE, call(), settled(2, "not-applied"), call(attempt=2), answer(call=4)],
     ["c succeeded @2 @4 → 5"]),
    ("reconciling what is known settles nothing", [*ONE, call(), answer(call=2, is_error=True), settled(2)],
     ["c failed @2 → 3"]),
    ("parallel, answered the other way round", [*TWO, call("a"), call("b"), answer("b", call=3), answer("a", call=2)],
     ["a succeeded @2 → 5", "b succeeded @3 → 4"]),
    ("one of two parallel ones answered", [*TWO, call("a"), call("b"), answer("b")],
     ["a started @2", "b succeeded @3 → 4"]),
    ("an id used again in a later turn", [*ONE, answer(), *ONE, call(advertised=[4, 0])],
     ["c succeeded → 2", "c started @5"]),
    ("an id used again while the first dangles", [*ONE, *ONE, call(), answer()], ["c prepared", "c succeeded @4 → 5"]),
    ("an id used twice in one message", [user(), assistant("", ("c", "bash"), ("c", "bash")), call(), call(), answer(),
     answer()], ["c succeeded @2 → 4", "c succeeded @3 → 5"]),
    ("an id used twice, the second one started first", [user(), assistant("", ("c", "bash"), ("c", "bash")),
     call(advertised=[1, 1]), answer(call=2)], ["c prepared", "c succeeded @2 → 3"]),
    ("a result without a call", [user(), answer("z")], ["z succeeded → 1"]),
    ("two results without a call", [user(), answer("z"), answer("z", "other")], ["z succeeded → 1 late 2"]),
    ("a tool/call that no message asks for", [user(), call("z"), answer("z")], ["z succeeded @1 → 2"]),
    ("a start under the id of a call that is over", [*ONE, answer(), call()], ["c succeeded → 2", "c started @3"]),
    ("a result before its call", [user(), answer(), assistant("", ("c", "bash"))], ["c succeeded → 1"]),
    ("a stray result does not answer a later call of its id", [user(), answer(), *ONE, call(), answer(call=4)],
     ["c succeeded @4 → 5", "c succeeded → 1"]),
    ("new content for a result", [*ONE, answer(), answer(text="short", surface=replace(2, 2), sources=[2])],
     ["c succeeded → 2"]),
    ("new content by a view", [*ONE, answer(), answer(text="short", surface=view(0, 1, "self"), sources=[2])],
     ["c succeeded → 2"]),
    ("new content answers no other call of that id", [user(), assistant("", ("c", "bash"), ("c", "bash")), answer(),
     answer(surface=replace(2, 2), sources=[2])], ["c succeeded → 2", "c prepared"]),
    ("a first result that changes the surface", [*ONE, answer(), *ONE, answer(surface=view("self"), sources=[(0, 4)])],
     ["c succeeded → 2", "c succeeded → 5"]),
    ("arguments that broke off", [user(), said("", wish("c", '{"pa'), stop="length")], []),
    ("arguments that broke off, and a result all the same", [user(), said("", wish("c", '{"pa'), stop="length"),
     answer()], ["c succeeded → 2"]),
    ("arguments that broke off, and only a late result", [user(), said("", wish("c", '{"pa'), stop="length"),
     answer(surface=None, late=True)], ["c prepared late 2"]),
    ("arguments that are no JSON", [user(), said("", wish("c", "not json"))], ["c prepared"]),
    ("an approval of nothing", [user(), asked("allowed", "z")], []),
]  # fmt: skip


@pytest.mark.parametrize(("drafts", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_table_of_states(drafts: list[Draft], expected: list[str]) -> None:
    assert [told(one) for one in calls(drafts)] == expected


def test_what_was_said_again_is_the_same_call() -> None:
    again = Draft(type="assistant/message", data=ONE[1].data, surface=replace(1, 1), sources=[1])
    (one,) = calls([*ONE, again, call(), answer()])
    assert (one.advertised, one.state) == ((1, 0), "succeeded")


def test_what_took_the_place_of_an_answer_is_listed_and_is_no_other_answer() -> None:
    shorter = answer(text="s", surface=replace(2, 2), sources=[2])
    shortest = answer(text="", surface=replace(3, 3), sources=[3])
    (one,) = calls([*ONE, answer(), shorter, shortest])
    assert (one.result, one.edits, one.late, one.conflict) == (2, (3, 4), (), None)


def test_an_approval_is_of_the_arguments_that_it_was_asked_for() -> None:
    block = wish("c", {"path": "a"})
    for arguments, outcome, state in (({"path": "a"}, "allowed", "approved"), ({"path": "b"}, "unbound", "prepared")):
        allowed = asked("allowed", arguments_digest=arguments_digest(arguments), by="me", reason="fine")
        (one,) = calls([user(), said("", block), allowed])
        assert one.approval is not None
        assert (one.approval.outcome, one.state) == (outcome, state)
        assert (one.approval.by, one.approval.reason, one.approval.seq) == ("me", "fine", 2)


def test_an_approval_that_does_not_say_of_what_allows_nothing_here() -> None:
    allowed = Draft(type="tool/approval", data={"call_id": "c", "outcome": "allowed"})
    assert [told(one) for one in calls([*ONE, allowed])] == ["c prepared"]
    foreign = Draft(type="tool/approval", data=allowed.data, origin=4)
    assert [told(one) for one in calls([*ONE, foreign])] == ["c approved"]


@pytest.mark.parametrize(
    ("now", "outcome", "state"),
    [(None, "allowed", "approved"), (4_999, "allowed", "approved"), (5_000, "expired", "prepared")],
)
def test_an_approval_counts_until_it_expires(now: int | None, outcome: str, state: str) -> None:
    (one,) = calls([*ONE, asked("allowed", expires=5_000)], now=now)
    assert one.approval is not None and (one.approval.outcome, one.state) == (outcome, state)


def test_an_approval_that_expires_takes_back_nothing_that_was_started() -> None:
    (one,) = calls([*ONE, asked("allowed", expires=5_000), call(), answer()], now=9_000)
    assert one.state == "succeeded"


def test_the_first_reconciliation_counts() -> None:
    drafts = [*ONE, call(), answer(call=2, **UNKNOWN), settled(2, "not-applied"), settled(2, evidence="e")]
    (one,) = calls(drafts)
    assert one.reconciled is not None
    assert (one.reconciled.seq, one.reconciled.outcome, one.reconciled.by) == (4, "not-applied", "me")


def test_what_is_known_is_not_reconciled() -> None:
    (one,) = calls([*ONE, call(), answer(call=2, is_error=True), settled(2)])
    assert (one.state, one.reconciled) == ("failed", None)


def test_an_unknown_call_stays_open_until_it_is_reconciled() -> None:
    unknown = [*ONE, call(), answer(call=2, **UNKNOWN), user("go on"), assistant("done")]
    assert [one.open for one in calls(unknown)] == [True]
    assert [one.open for one in calls([*unknown, answer(call=2, surface=None, late=True)])] == [True]
    assert [one.open for one in calls([*unknown, settled(2)])] == [False]
    assert [one.open for one in calls([*ONE, call()])] == [True]
    assert [one.open for one in calls([*ONE, call(), answer()])] == [False]
    assert [one.open for one in calls(ONE)] == [False]


def test_an_attempt_has_what_its_line_says() -> None:
    tool = {"algorithm": "sha256:v1", "value": "ab"}
    meta = {"evidence": {"before": "x"}}
    first = call(effect="verifiable", key="k", tool=tool, meta=meta)
    (one,) = calls([*ONE, first, call(effect="verifiable", key="k", attempt=2), answer(call=2)], stale_before=3)
    attempt, second = one.attempts
    assert (attempt.seq, attempt.number, attempt.key, attempt.evidence) == (2, 1, "k", {"before": "x"})
    assert attempt.tool is not None and attempt.tool.value == "ab"
    assert (attempt.result, second.result, attempt.time) == (4, None, 3_000)
    assert (attempt.stale, second.stale, one.stale) == (True, False, False)
    assert (one.effect, one.key, one.started) == ("verifiable", "k", 3)


def test_what_a_fork_inherits_is_a_fact_and_nobodys_any_more() -> None:
    (one,) = calls([*ONE, call()], first_own=3)
    assert (one.attempts[0].inherited, one.stale, one.state) == (True, True, "started")
    (one,) = calls([*ONE, call()], first_own=2)
    assert (one.attempts[0].inherited, one.stale) == (False, False)


def test_a_call_is_irreversible_until_its_tool_says_otherwise() -> None:
    assert [one.effect for one in calls(ONE)] == ["irreversible"]


def test_an_identity_is_the_session_and_place_of_the_line_that_asks() -> None:
    path = events([user(), said("I look.", wish("c"), wish("d"))])
    made = journal(path, owner=lambda seq: "parent" if seq < 2 else "child", first_own=2)
    assert [one.identity for one in made] == [Identity("parent", 1, 1), Identity("parent", 1, 2)]
    assert made[0].key == call_key(Identity("parent", 1, 1), "bash", {})
    (stray,) = calls([user(), call("z")])
    assert stray.identity == Identity("s1", 1, -1) and stray.advertised is None


CONFLICTS = [
    ("two answers that differ", [*ONE, call(), answer(call=2), answer("c", "other", call=2)], "both of it"),
    ("an answer and an error", [*ONE, call(), answer(call=2), answer(call=2, is_error=True)], "both of it"),
    ("other arguments than asked for", [*ONE, call(arguments={"a": 1}, advertised=[1, 0])], "other arguments"),
    ("another tool than asked for", [*ONE, call(name="rm", advertised=[1, 0])], "another tool"),
    ("two keys", [*ONE, call(key="k"), call(key="l", attempt=2)], "different keys"),
]  # fmt: skip


@pytest.mark.parametrize(("drafts", "word"), [row[1:] for row in CONFLICTS], ids=[row[0] for row in CONFLICTS])
def test_what_does_not_fit_together_is_said(drafts: list[Draft], word: str) -> None:
    (one,) = calls(drafts)
    assert one.conflict is not None and word in one.conflict


@pytest.mark.parametrize(
    "drafts",
    [
        [*ONE, call(), answer(call=2), answer(call=2)],
        [*ONE, call(), answer(call=2), answer("c", "other", call=2, late=True, surface=None)],
        [*ONE, call(), answer(call=2, **UNKNOWN), answer("c", "real", call=2)],
        [*ONE, call(), answer(call=2), answer(call=2, **UNKNOWN)],
        [*ONE, answer(), answer(text="short", surface=replace(2, 2), sources=[2])],
        [*ONE, Draft(type="tool/call", data={"call_id": "c", "name": "other"}, origin=7)],
        [user(), said("", wish("c", '{"a": 1}')), call(arguments={"a": 1}, advertised=[1, 0])],
    ],
    ids=["the same twice", "late", "after unknown", "unknown after", "new content", "imported", "a raw string"],
)
def test_what_fits_together_is_no_conflict(drafts: list[Draft]) -> None:
    assert [one.conflict for one in calls(drafts)] == [None]


def test_lost_arguments_leave_the_call_without_a_key() -> None:
    block = {**wish("c"), "arguments": None}
    start = Draft(type="tool/call", data={"call_id": "c", "name": "bash", "arguments": None})
    (one,) = calls([user(), said("", block), start])
    assert (one.arguments, one.arguments_digest, one.key, one.conflict) == (None, None, None, None)
    with pytest.raises(Conflict):
        check_arguments(one, "bash", {})


# --- keys and digests ---------------------------------------------------------------------------------------------

HERE = Identity("s1", 1, 0)


def test_a_key_is_the_same_in_every_process_and_version() -> None:
    # Written down: a key that changed would run a tool twice.
    assert call_key(HERE, "bash", {"b": [1, 2.5, None], "a": "é"}) == "ow1-9a30c979ab562b0630307a78419bfb40"
    assert (
        arguments_digest({"b": [1, 2.5, None], "a": "é"})
        == "arguments-1:d764fee2563da33e3d57334755404e635da33c995824b0adfabc4b6e1af4f608"
    )


def test_a_key_rests_on_identity_name_and_arguments() -> None:
    keys = {
        call_key(identity, name, arguments)
        for identity in (HERE, Identity("s2", 1, 0), Identity("s1", 2, 0), Identity("s1", 1, 1))
        for name in ("bash", "read")
        for arguments in ({}, {"a": 1}, {"a": 1.0}, {"a": True}, {"a": "1"}, {"b": 1}, "", "{", '"{}"')
    }
    assert len(keys) == 4 * 2 * 9
    assert all(len(key) == 36 and key.startswith("ow1-") for key in keys)


def test_a_raw_string_that_is_an_object_counts_as_it() -> None:
    assert arguments_digest('{"b": 2, "a": 1}') == arguments_digest({"a": 1, "b": 2})
    assert arguments_digest("[1]") != arguments_digest("[1] ")
    assert arguments_digest('{"a": -0.0}') != arguments_digest({"a": 0.0})
    assert arguments_digest('{"a":' * 100_000).startswith("arguments-1:")


def test_arguments_that_are_no_json_have_no_digest() -> None:
    with pytest.raises(NotLossless):
        arguments_digest({"a": float("nan")})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_the_order_of_keys_makes_no_difference(arguments: dict[str, Any]) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: turned(item) for name, item in reversed(value.items())}
        return [turned(item) for item in value] if isinstance(value, list) else value

    assert arguments_digest(arguments) == arguments_digest(turned(arguments))
    assert call_key(HERE, "t", arguments) == call_key(HERE, "t", turned(arguments))


def test_the_same_identity_with_other_arguments_is_a_conflict() -> None:
    (one,) = calls([user(), said("", wish("c", {"path": "a"}))])
    check_arguments(one, "bash", {"path": "a"})
    with pytest.raises(Conflict, match="other arguments"):
        check_arguments(one, "bash", {"path": "b"})
    with pytest.raises(Conflict, match="asks for 'bash'"):
        check_arguments(one, "rm", {"path": "a"})


# --- the journal and the repair agree -----------------------------------------------------------------------------


ids = st.sampled_from(["a", "b"])
nodes = st.one_of(
    st.sampled_from("TtSs").map(B),
    st.lists(ids, max_size=2).map(lambda wanted: assistant("", *((one, "bash") for one in wanted))),
    ids.map(lambda one: call(one)),
    ids.map(result),
    ids.map(lambda one: asked("allowed", one)),
)


def without_strays(drafts: list[Draft]) -> list[Draft]:
    """Without results of what was not asked for in this step, and without asking twice for an id in one step.

    There the nearest call of an id is not the first of the step, which is what recovery goes by.
    """
    wanted: set[str] = set()
    kept = []
    for draft in drafts:
        if draft.type in ("step/start", "step/end", "turn/start", "turn/end"):
            wanted = set()
        elif draft.type == "assistant/message":
            ids = {block["call_id"] for block in draft.data["message"]["blocks"] if block["type"] == "tool_call"}
            if ids & wanted:
                continue
            wanted |= ids
        elif draft.data["call_id"] not in wanted:
            continue
        kept.append(draft)
    return kept


@given(st.lists(nodes, max_size=14).map(without_strays))
def test_after_recovery_every_call_of_the_open_step_has_its_answer(drafts: list[Draft]) -> None:
    path = events(drafts)
    before = read(path)
    closing = closers(path, stale_before=len(path))
    synthetic = [draft.data for draft in closing if draft.type == "tool/result"]
    after = {one.identity: one for one in read(path + events(closing, len(path)))}
    assert {one.identity for one in before} == set(after)
    changed = [after[one.identity] for one in before if after[one.identity] != one]
    codes = {"cancelled": NOT_STARTED, "unknown": OUTCOME_UNKNOWN}
    assert sorted((one.call_id, codes[one.state]) for one in changed) == sorted(
        (data["call_id"], data["code"]) for data in synthetic
    )
