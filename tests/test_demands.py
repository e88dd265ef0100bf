"""Which messages in the user's role a person wrote, and what of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

import onward
from builders import shared
from onward.formats.importing import import_file
from onward.model.demands import demand_of, demands
from onward.model.event import Event


def said(seq: int, *blocks: Any, source: str = "user", type_: str = "user/message") -> Event:
    built = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    data: dict[str, Any] = {"message": {"role": "user", "blocks": built}, "source": source}
    return Event(seq=seq, type=type_, time=0, data=data, surface="append", about=UNSET)


@pytest.mark.parametrize(
    ("blocks", "source", "text"),
    [
        (["fix it"], "user", "fix it"),
        (["  two\nlines \n"], "user", "  two\nlines \n"),
        (["one", "two"], "user", "one\ntwo"),
        (["why is <system-reminder> in my log?"], "user", "why is <system-reminder> in my log?"),
        (["<system-reminder>be brief</system-reminder>"], "user", None),
        (["fix it\n\n<system-reminder>be brief</system-reminder>"], "user", "fix it"),
        (["<ide_selection>a</ide_selection>\nfix it"], "user", "fix it"),
        (["<b>fix</b>"], "user", "<b>fix</b>"),
        (["fix it", "<system-reminder>x</system-reminder>\n<system-reminder>y</system-reminder>"], "user", "fix it"),
        (["look at the time"], "injected", None),
        (["job 1 is done"], "notice", None),
        (["go on"], "goal", None),
        (["<command-name>/model</command-name><command-args></command-args>"], "command", None),
        (["<command-name>/fix</command-name>\n<command-args>the parser</command-args>"], "command", "/fix the parser"),
        (["<local-command-stdout>ok</local-command-stdout>"], "command", None),
        ([], "user", None),
    ],
)  # fmt: skip
def test_what_a_person_asks_for_in_a_message(blocks: list[str], source: str, text: str | None) -> None:
    found = demand_of(said(3, *blocks, source=source))
    assert (None if found is None else found.text) == text
    assert found is None or found.seqs == (3,)


def test_a_picture_alone_is_a_demand_that_names_it() -> None:
    found = demand_of(said(1, {"type": "image", "media_type": "image/png", "sha256": "0" * 64}))
    assert found is not None and (found.text, found.attached) == ("", ("image: image/png",))


def test_an_edit_of_what_was_said_counts_and_what_others_say_does_not() -> None:
    assert demand_of(said(4, "fix b", type_="context/edit")) is not None
    for type_ in ("custom/message", "compaction/summary", "system/message"):
        assert demand_of(said(4, "fix b", type_=type_)) is None
    reply = Event(seq=1, type="assistant/message", time=0, data={"message": {"role": "assistant", "blocks": []}})
    assert demand_of(reply) is None


def test_what_is_said_again_in_the_same_words_is_there_once() -> None:
    found = demands([said(1, "continue"), said(2, "fix b"), said(5, "continue\n"), said(7, "look", source="notice")])
    assert [(one.seqs, one.text) for one in found] == [((1, 5), "continue"), ((2,), "fix b")]


def test_a_long_text_of_brackets_that_do_not_match_is_left_as_it_is() -> None:
    open_ones = "<system-reminder>" * 20_000 + "x"
    found = demand_of(
        said(1, open_ones),
    )
    assert found is not None and found.text == open_ones
    closed = "x" + "</system-reminder>" * 20_000
    found = demand_of(said(1, closed))
    assert found is not None and found.text == closed


@pytest.mark.parametrize(
    ("file", "count", "programs"),
    [
        ("pi/large-session.jsonl", 88, 0),
        ("codex/rollout-2025-09-25T15-12-14.jsonl", 1, 1),
        ("codex/rollout-2025-09-24T20-12-23.jsonl", 2, 1),
        ("claude-code/5c0375b4.jsonl", 1, 1),
        ("claude-code/full-session.jsonl", 2, 0),
        ("dsh/v3/acp-agent--hook-cc-promptsubmit-context--session.jsonl", 1, 2),
        ("dsh/v3/headless-agent--compaction-recovery--session.jsonl", 1, 1),
    ],
)
def test_in_real_sessions_a_persons_messages_are_told_from_programs(
    file: str, count: int, programs: int, tmp_path: Path
) -> None:
    with onward.Store(tmp_path) as store:
        with store.open(import_file(store, shared("sessions", *file.split("/"))).session) as session:
            spoken = [event for event in session.nodes() if event.type == "user/message"]
        theirs = [event for event in spoken if demand_of(event) is not None]
        assert (len(theirs), len(spoken) - len(theirs)) == (count, programs)
        for event in theirs:
            if event.data["source"] == "user":
                words = [block["text"] for block in event.data["message"]["blocks"] if block["type"] == "text"]
                assert demand_of(event).text in "\n".join(words)  # type: ignore[union-attr]
