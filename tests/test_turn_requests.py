"""A request's header: what the model was sent can be rebuilt exactly, and a request costs what is new."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from onward import Draft, Message, Session, Store, Text, replace
from onward.errors import Corrupt, NotFound, NotLossless
from onward.model.messages import Message as Neutral
from onward.running.records import Request, Start
from running_turns import MODEL, asked, calling, session_of


def talk(session: Session, text: str, kept: list[Request], *, budget: int | None = None) -> None:
    """A turn with a tool; the requests that were made are added to `kept`."""
    with session.turn(text) as turn:
        with turn.step() as step:
            kept.append(asked(step, budget=budget))
            reply = step.reply(calling(f"c{session.next_seq}", text="long " * 100))
            (started,) = step.start(Start(reply.calls[0], "read"))
            step.finish(started, "r" * 40)
        with turn.step() as step:
            kept.append(asked(step, budget=budget))
            step.reply(f"answer to {text}")


def check_all(session: Any, kept: Sequence[Request], verified: bool | None = True) -> None:
    for request in kept:
        past = session.request(request.seq)
        assert past.messages == request.messages and past.verified is verified
        assert past.projection == request.projection and past.header.model == MODEL


def test_every_request_is_rebuilt_after_compaction_edits_branches_and_forks(tmp_path: Path):
    kept: list[Request] = []
    with session_of(tmp_path) as session:
        session.system("be good")
        for number in range(3):
            talk(session, f"one {number}", kept)
        first, last = session.surface[1], session.surface[5]
        session.summary("short", replace(first, last), [(first, last)])
        talk(session, "after the summary", kept)
        session.edit(session.surface[2], Message("user", [Text("edited")]))
        session.edit(session.surface[-1], None)
        talk(session, "after the edits", kept)
        leaf = session.leaf
        session.create_branch("side", node=kept[2].seq - 2)
        session.append(Draft(type="turn/end", data={"reason": "aborted"}, branch="side"))
        talk(session, "on the side", kept)
        session.move("main", leaf)
        talk(session, "and on", kept)
        check_all(session, kept)
        for request in kept:
            assert session.at(request.seq).request(request.seq).messages == request.messages
        with session.fork(at=session.next_seq - 1) as child:
            talk(child, "in the fork", kept)
            check_all(child, kept)
            with child.fork() as grandchild:
                check_all(grandchild, kept)
        with session.fork(at=session.next_seq - 1, detach=True) as copy:
            check_all(copy, kept[:-2], None)
    with Store(tmp_path) as store, store.open("s", write=False) as again:
        check_all(again, kept[:-2])


def test_what_a_budget_dropped_is_dropped_again_whatever_estimates_say_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kept: list[Request] = []
    with session_of(tmp_path) as session:
        session.append(
            Draft(
                type="compaction/summary",
                surface="append",
                data={"messages": [_data("user", "a" * 400), _data("assistant", "b" * 400), _data("user", "c" * 40)]},
            )
        )
        talk(session, "one", kept, budget=10_000)
        with session.turn("two") as turn, turn.step() as step:
            kept += [asked(step, budget=budget) for budget in range(600, -1, -10)]
            step.reply("x")
        gaps = [gap for request in kept for gap in request.event.data.get("dropped", [])]
        assert any("last_part" in gap for gap in gaps), "a node with several messages is dropped in part"
        assert kept[-1].projection.over and "dropped" not in kept[0].event.data
        from onward.context import projection, tokens

        for module in (projection, tokens):
            monkeypatch.setattr(module, "estimate", lambda message: 10_000)
        for request in kept:
            past = session.request(request.seq)
            assert past.messages == request.messages and past.verified
            assert past.header.budget == request.event.data["budget"]


def _data(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "blocks": [{"type": "text", "text": text}]}


def test_a_request_that_was_made_of_other_nodes_is_not_shown_as_this_one(tmp_path: Path):
    kept: list[Request] = []
    with session_of(tmp_path) as session:
        talk(session, "one", kept)
        data = {**session.event(kept[0].seq).data, "digest": kept[1].digest}
        (wrong,) = session.append(Draft(type="request/header", data=data))
        with pytest.raises(Corrupt, match="other nodes"):
            session.request(wrong.seq)
        (foreign,) = session.append(
            Draft(type="request/header", data={"model": {"name": "x"}}),
        )
        assert session.request(foreign.seq).verified is None
        assert session.request(foreign.seq).messages == session.context().messages
        (unknown,) = session.append(Draft(type="request/header", data={**data, "digest": "surface-9:00"}))
        assert session.request(unknown.seq).verified is None
        for seq in (1, 999):
            with pytest.raises(NotFound):
                session.request(seq)


def test_a_request_is_what_the_context_is_by_any_way_to_get_there(tmp_path: Path):
    kept: list[Request] = []
    with session_of(tmp_path) as session:
        for number in range(3):
            talk(session, f"turn {number}", kept)
            if number == 1:
                session.edit(session.surface[0], None)
        with session.turn("last") as turn, turn.step() as step:
            assert asked(step).projection == session.context()
            step.reply("x")
        with session.turn("last") as turn, turn.step() as step:
            assert asked(step, budget=300).projection == session.context(budget=300)
            step.reply("x")


def test_the_tokens_of_a_message_are_estimated_once_however_many_requests_carry_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from onward.running import shown

    kept: list[Request] = []
    estimated: list[Neutral] = []
    real = shown.estimate
    monkeypatch.setattr(shown, "estimate", lambda message: estimated.append(message) or real(message))
    with session_of(tmp_path) as session:
        for number in range(3):
            talk(session, f"{number}", kept)
        assert estimated == []  # nobody has asked
        sums = [request.projection.tokens for request in kept]
        assert sums == [sum(map(real, request.messages)) for request in kept]
        assert len(estimated) == len(kept[-1].messages)


def test_a_request_reads_what_is_new_however_much_is_on_the_surface(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    kept: list[Request] = []
    with session_of(tmp_path) as session:
        for number in range(300):
            session.user(f"{number}")
        talk(session, "first", kept)
        read: list[int] = []
        real = type(session.log.chain).read

        def noted(self: Any, seqs: Sequence[int]) -> Any:
            read.extend(seqs)
            return real(self, seqs)

        monkeypatch.setattr(type(session.log.chain), "read", noted)
        estimated: list[Neutral] = []
        from onward.running import shown

        monkeypatch.setattr(shown, "estimate", lambda message: estimated.append(message) or 1)
        talk(session, "second", kept)
        assert len(set(read)) == len(read) < 10
        talk(session, "third", kept, budget=100_000)
        assert len(estimated) == len(kept[-1].messages)
        estimated.clear()
        talk(session, "fourth", kept, budget=100_000)
        assert len(estimated) == 4
        first, last = session.surface[0], session.surface[250]
        session.summary("short", replace(first, last), [(first, last)])
        read.clear()
        talk(session, "fifth", kept)
        assert len(read) < 12
        assert all(session.request(request.seq).messages == request.messages for request in kept)


def test_what_was_learnt_of_a_batch_that_was_refused_is_forgotten(tmp_path: Path):
    with session_of(tmp_path) as session, session.turn("hi") as turn:
        with turn.step() as step:
            turn.inject("first words", kind="n")
            with pytest.raises(NotLossless):
                asked(step, settings={"x": float("nan")})
            session.user("in between")
            request = asked(step)
            step.reply("x")
        assert session.request(request.seq).messages == request.messages == session.context().messages[:-1]


def custom(text: str, kind: str) -> Draft:
    data = {"message": {"role": "user", "blocks": [{"type": "text", "text": text}]}, "kind": kind}
    return Draft(type="custom/message", data=data, surface="append")


def test_a_request_fits_a_budget_as_the_context_does_with_the_summary_as_a_head(tmp_path: Path):
    with session_of(tmp_path) as session:
        kept: list[Request] = []
        session.system("be good")
        session.append(custom("use tabs", "context-file"))
        for number in range(3):
            talk(session, f"one {number}", kept)
        first, last = session.surface[2], session.surface[6]
        session.summary("what was done before", replace(first, last), [(first, last)])
        talk(session, "after the summary", kept)
        with session.turn("now") as turn:
            with turn.step() as step:
                asked(step)
                step.reply("x" * 400)
            session.inject("mind the time", "clock")
            with turn.step() as step:
                for budget in range(0, 500, 20):
                    shown = asked(step, budget=budget).projection
                    assert shown == session.node(shown.nodes[-1]).context(budget=budget)
                    texts = [
                        block.text for message in shown.messages for block in message.blocks if hasattr(block, "text")
                    ]
                    assert texts[0] == "be good" and "now" in texts and texts[-1] == "mind the time"
                    assert budget < 200 or texts[1:3] == ["use tabs", "what was done before"]
                step.reply("done")
