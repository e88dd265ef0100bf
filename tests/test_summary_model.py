"""Summaries by a model: what is asked, what is believed, and that whatever goes wrong is a refusal that says so."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from builders import assistant, event_of, result, summary, user
from onward.context.model import ModelRequest
from onward.context.summaries.asking import summarise
from onward.context.summaries.sections import lines_of
from onward.context.summaries.summary import Source, Summary, SummaryRefused
from onward.context.summaries.supplied import checked
from onward.context.summaries.telling import RESULT, parts
from onward.context.tokens import estimate
from onward.model.event import replace
from onward.model.messages import Message, Model, Text, Usage, text_of
from onward.runtime.scripted import Asks, Fails, Says, Scripted
from real_sources import LARGE, real_source, source_of
from test_summary_extract import LONG, call, events_of, reply, section, wrong

Script = list[Any]


def claim(text: str, *sources: Any, section: str = "Progress: Done") -> dict[str, Any]:
    return {"section": section, "text": text, "sources": list(sources)}


def answer(*claims: dict[str, Any]) -> str:
    return json.dumps({"claims": list(claims)})


def work(long: str = LONG) -> Source:
    return source_of(
        events_of(
            user("Port the parser to src/new.py, and never touch legacy_mode"),
            reply("I read it first.", call("r", "read", path="src/old.py")),
            result("r", long),
            reply("Now the port.", call("w", "write", path="src/new.py", content="x = 1")),
            result("w", "ok"),
            reply("", call("t", "bash", command="pytest tests/test_parser.py")),
            wrong("t", "collected 3 items\nE   ValueError: bad token at 1234"),
        )
    )


GOOD = answer(claim("The port to src/new.py is written.", 3), claim("The goal is a port.", 0, section="Goal"))


def ask(script: Script, source: Source | None = None, **options: Any) -> tuple[Summary, Scripted]:
    client = Scripted(script, id=Model("scripted", "minutes"))
    options.setdefault("window", None)
    return asyncio.run(summarise(client, source or work(), **options)), client


def refused(script: Script, source: Source | None = None, **options: Any) -> SummaryRefused:
    with pytest.raises(SummaryRefused) as error:
        ask(script, source, **options)
    return error.value


def asked_for(request: ModelRequest) -> str:
    return "\n".join(text_of(list(message.blocks)) for message in request.messages)


# --- what comes of it -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [GOOD, f"```json\n{GOOD}\n```", f"Here it is:\n{GOOD}\nThat is all.", GOOD.replace("[3]", '["[3]"]')]
)
def test_a_models_claims_stand_in_their_sections_beside_what_is_kept_without_it(text: str) -> None:
    used = Usage(input=900, output=50, cost=0.25)
    found, client = ask([Says(text=text, usage=used)])
    assert section(found, "Goal") == [((0,), "The goal is a port.")]
    assert section(found, "Progress: Done") == [((3,), "The port to src/new.py is written.")]
    assert section(found, "Constraints & Preferences: the person's own words") == [
        ((0,), "Port the parser to src/new.py, and never touch legacy_mode")
    ]
    assert (found.modified_files, found.read_files) == (("src/new.py",), ("src/old.py",))
    assert (found.how, found.usage, found.model, found.notes) == ("model", used, Model("scripted", "minutes"), ())
    assert found.tokens == estimate(Message("user", [Text(found.text)])) < work().tokens
    assert len(client.requests) == 1 and not client.requests[0].tools
    assert [(one.section, one.sources, one.text) for one in found.claims] == lines_of(found.text)[1:]


def test_what_the_claims_lost_is_told_and_brought_back_as_far_as_there_is_room() -> None:
    found, _ = ask([GOOD])
    assert ("error", "E   ValueError: bad token at 1234", 6, True) in [
        (one.kind, one.value, one.seq, one.reattached) for one in found.lost
    ]
    assert ((6,), "E   ValueError: bad token at 1234") in section(found, "Kept exactly")
    assert "legacy_mode" not in [one.value for one in found.lost], "the person's words have it"
    bare, _ = ask([GOOD], attach=0)
    assert [one.value for one in bare.lost] == [one.value for one in found.lost]
    assert not any(one.reattached or one.value in bare.text for one in bare.lost)
    assert section(bare, "Kept exactly") == []


def test_what_is_asked_has_every_event_with_its_number_and_says_what_was_left_out() -> None:
    _, client = ask([GOOD], source_of(work().events, instructions="the parser's errors"))
    told = asked_for(client.requests[0])
    for seq in range(7):
        assert f"[{seq}] " in told
    assert f"[… {len(LONG) - RESULT:,} characters left out …]" in told
    assert "Look at this above all: the parser's errors" in told
    assert "legacy_mode" in told and 'calls bash: {"command":"pytest tests/test_parser.py"}' in told


def test_a_former_summary_is_updated_and_its_citations_stay_good() -> None:
    once, _ = ask([GOOD])
    events = [
        event_of(summary(once.text, replace(0, 6), [(0, 6)]), 7),
        event_of(user("Now src/next.py"), 8),
        event_of(assistant(LONG), 9),
    ]
    twice, client = ask([answer(claim("Both are written.", 3, 9))], source_of(events))
    told = asked_for(client.requests[0])
    assert "Progress: Done: [3] The port to src/new.py is written." in told
    assert section(twice, "Progress: Done") == [((3, 9), "Both are written.")]
    assert [seqs for seqs, _ in section(twice, "Constraints & Preferences: the person's own words")] == [(0,), (8,)]
    assert twice.modified_files == ("src/new.py",)
    assert refused([answer(claim("Two of them.", 2))], source_of(events)).kind == "bad-sources"


# --- what is larger than the window -----------------------------------------------------------------------------


def test_what_does_not_fit_the_window_is_asked_for_in_parts_that_do_and_merged() -> None:
    source = real_source(LARGE[0])
    window = 30_000
    numbers: list[int] = []

    def play(request: ModelRequest) -> str:
        told = asked_for(request)
        size = sum(map(estimate, request.messages))
        assert size + request.settings["max_tokens"] <= window * 0.86
        numbers.append(size)
        if "Stretch 1:" in told:
            return answer(claim("All of it.", 3, 986))
        return answer(claim("A part of it.", source.events[0].seq))

    client = Scripted(play)
    found = asyncio.run(summarise(client, source, window=window))
    assert len(client.requests) > 3
    assert "All of it." in found.text and "A part of it." not in found.text
    told = "\n".join(asked_for(request) for request in client.requests)
    assert all(f"[{event.seq}] " in told for event in source.events if event.seq != 2)
    assert found.usage is None


def test_parts_are_whole_events_and_one_that_is_too_long_says_what_it_lacks() -> None:
    events = work(LONG * 3).events
    found = parts([*events, event_of(user("y" * 9_000), 7)], 400)
    assert all(part.tokens <= 400 for part in found) and len(found) == 2
    assert "characters left out" in found[-1].text
    assert len(parts(events, None)) == 1 and parts([], None) == []


def test_a_window_that_has_no_room_or_minutes_that_do_not_fit_together_are_refused() -> None:
    assert refused([GOOD], window=900).kind == "too-large"
    wordy = answer(*(claim(f"Something {'long ' * 60}", 0) for _ in range(60)))
    error = refused([wordy] * 99, real_source(LARGE[0]), window=12_000)
    assert error.kind == "too-large" and "do not fit the window together" in error.message


# --- what is not believed ---------------------------------------------------------------------------------------


def test_claims_that_cite_wrongly_are_refused_and_a_few_are_left_out_and_told_of() -> None:
    good = [claim(f"Fact {number}.", 0) for number in range(6)]
    error = refused([Says(text=answer(*good[:2], claim("Lies.", 99)), usage=Usage(input=7))])
    assert error.kind == "bad-sources" and "“Lies.” cites [99]" in error.message
    assert error.usage is not None and error.usage.input == 7
    assert refused([answer(claim("No source."))]).kind == "bad-sources"
    found, _ = ask([answer(*good, claim("Lies.", 99), claim("Half a lie.", 0, "later"))])
    assert "Lies" not in found.text and "Half a lie" not in found.text
    assert found.notes == (
        "left out, because it cites [99]: “Lies.”",
        "left out, because it cites [-1, 0]: “Half a lie.”",
    )
    assert "2 of its claims left out" in found.text


def test_names_that_nobody_mentioned_are_marked() -> None:
    found, _ = ask([answer(claim("src/new.py and src/secret/other.py are done, see makeItSo.", 3))])
    (line,) = section(found, "Progress: Done")
    assert line[1].endswith("(not found in those events: src/secret/other.py, makeItSo)")
    assert found.notes == ("not in what it is a summary of: src/secret/other.py, makeItSo",)


PROSE = "The parser was ported."
SPENT = Usage(input=100, output=5, cost=0.5)


@pytest.mark.parametrize(
    ("script", "kind", "words", "requests"),
    [
        ([Says(text=GOOD[:40], stop="max-tokens", usage=SPENT)], "cut-off", "ran out of tokens", 1),
        ([Says(text=GOOD, stop="content-filter", usage=SPENT)], "filtered", "filter", 1),
        ([Says(text=GOOD, stop="error", usage=SPENT)], "failed", "did not come to its own end: error", 1),
        ([Says(text=" ", usage=SPENT)], "empty", "is empty", 1),
        ([Says(text=answer(), usage=SPENT)], "empty", "says nothing", 1),
        ([Says(text=GOOD, calls=[Asks("read")], usage=SPENT)], "tool-call", "called a tool", 1),
        ([Fails("too long", kind="overflow", usage=SPENT)], "too-large", "too long", 1),
        ([Fails("try later", kind="rate-limit", usage=SPENT)], "failed", "try later", 1),
        ([Fails("nothing", kind="empty", usage=SPENT)], "empty", "nothing", 1),
        ([Says(text=PROSE, usage=SPENT)] * 2, "bad-format", "cannot be read, also when asked again", 2),
        ([Says(text='{"claims": 3}', usage=SPENT)] * 2, "bad-format", "Expected `array`", 2),
        ([Says(text=PROSE, usage=SPENT), Says(text=" ", usage=SPENT)], "empty", "is empty", 2),
    ],
)
def test_a_reply_that_is_no_summary_is_refused_with_what_it_cost(
    script: Script, kind: str, words: str, requests: int
) -> None:
    error = refused(script)
    assert error.kind == kind and words in error.message
    assert error.usage is not None
    assert (error.usage.input, error.usage.cost, error.usage.requests) == (100 * requests, 0.5 * requests, requests)


def test_prose_is_answered_with_one_request_for_json() -> None:
    found, client = ask([Says(text=PROSE, usage=SPENT), Says(text=GOOD, usage=SPENT)])
    assert len(client.requests) == 2
    assert asked_for(client.requests[1]).count(PROSE) == 1
    assert found.usage is not None and found.usage.input == 200


def test_a_model_that_never_ends_is_given_up_and_what_it_cost_before_is_kept() -> None:
    error = refused([Says(text=PROSE, usage=SPENT), Says(hang=True)], timeout=0.05)
    assert (error.kind, error.usage) == ("timeout", SPENT)


def test_a_client_that_times_out_by_itself_is_told_from_the_time_that_was_given() -> None:
    def play(request: ModelRequest) -> str:
        raise TimeoutError("the socket")

    with pytest.raises(SummaryRefused, match="the socket") as error:
        asyncio.run(summarise(Scripted(play), work(), window=None, timeout=30))
    assert error.value.kind == "failed"


def test_whoever_cancels_gets_the_cancellation() -> None:
    async def run() -> None:
        client = Scripted([Says(hang=True)])
        task = asyncio.create_task(summarise(client, work(), window=None, timeout=30))
        while not client.requests:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_a_summary_that_saves_nothing_is_refused() -> None:
    small = source_of(work("short").events)
    error = refused([Says(text=answer(claim("word " * 400, 0)), usage=SPENT)], small)
    assert (error.kind, error.usage) == ("not-smaller", SPENT)
    assert refused([GOOD], source_of([])).kind == "empty"


# --- summaries that are handed in -------------------------------------------------------------------------------


def test_a_summary_that_is_handed_in_keeps_its_words_and_gets_what_it_lost() -> None:
    found = checked("All is well.\n", work())
    assert found.text.startswith("All is well.\n") and found.how == "extension"
    assert "Port the parser to src/new.py, and never touch legacy_mode" in found.text
    lost = {(one.kind, one.value): one.reattached for one in found.lost}
    assert lost["demand", "Port the parser to src/new.py, and never touch legacy_mode"]
    assert lost["path", "src/new.py"] and lost["error", "E   ValueError: bad token at 1234"]
    bare = checked("All is well.", work(), attach=0)
    assert bare.text == "All is well."
    assert {(one.kind, one.value) for one in bare.lost} == set(lost) and not any(one.reattached for one in bare.lost)


def test_a_summary_that_is_handed_in_is_smaller_than_its_source_or_refused() -> None:
    with pytest.raises(SummaryRefused) as error:
        checked("word " * 9_000, work())
    assert error.value.kind == "not-smaller"
    with pytest.raises(SummaryRefused) as error:
        checked(" \n", work())
    assert error.value.kind == "empty"
    source = source_of(events_of(user("x" * 400), assistant("y" * 100)))
    tight = checked("s" * 100, source)
    assert tight.text == "s" * 100 and not tight.lost[0].reattached
