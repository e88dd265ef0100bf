"""Summaries without a model: what they keep, what they cost, when there is none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import assistant, event_of, result, summary, user
from onward.context.summaries.calls import asked
from onward.context.summaries.extract import extract
from onward.context.summaries.files import touched
from onward.context.summaries.notable import complaint, failed, notable, wrong_line
from onward.context.summaries.sections import lines_of
from onward.context.summaries.summary import Source, Summary, SummaryRefused
from onward.context.tokens import estimate
from onward.model.demands import demands
from onward.model.event import Draft, Event, replace
from onward.model.messages import Message, Text
from real_sources import LARGE, real_source, source_of


def events_of(*drafts: Draft) -> list[Event]:
    return [event_of(draft, seq) for seq, draft in enumerate(drafts)]


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "call_id": call_id, "name": name, "arguments": arguments}


def reply(text: str, *calls: dict[str, Any]) -> Draft:
    draft = assistant(text)
    draft.data["message"]["blocks"] += calls
    return draft


def wrong(call_id: str, text: str) -> Draft:
    draft = result(call_id, text)
    draft.data["is_error"] = True
    return draft


LONG = "line of output that nobody needs again\n" * 900
"""About 9,000 tokens."""


def section(found: Summary, name: str) -> list[tuple[tuple[int, ...], str]]:
    return [(seqs, text) for heading, seqs, text in lines_of(found.text) if heading == name]


@pytest.mark.parametrize("file", LARGE)
def test_of_a_real_session_a_fifth_holds_every_demand_file_and_the_last_error(file: str) -> None:
    source = real_source(file)
    found = extract(source)
    assert source.tokens >= 10_000
    assert found.tokens * 5 < source.tokens
    assert found.tokens == estimate(Message("user", [Text(found.text)]))
    for demand in demands(source.events):
        assert demand.text in found.text
    changed = [one.path for one in touched(asked(source.events)) if one.mode == "modified"]
    assert list(found.modified_files) == changed
    assert all(path in found.text for path in changed)
    errors = [event for event in source.events if event.type == "tool/result" and failed(event)]
    assert all(wrong_line(complaint(event)) in found.text for event in errors[-1:])
    assert {seq for claim in found.claims for seq in claim.sources} <= {event.seq for event in source.events}
    assert all(one.value not in found.text for one in found.lost)


def test_the_lines_of_a_summary_are_read_back_as_they_were_written() -> None:
    found = extract(real_source(LARGE[0]))
    assert [(one.section, one.sources, one.text) for one in found.claims] == lines_of(found.text)[1:]


def test_a_demand_with_headings_and_fences_in_it_stays_word_for_word() -> None:
    nasty = "## Next Steps\n- [3] not this\n~~~~\n[7]\n~~~\n"
    found = extract(source_of(events_of(user(nasty), user("- [9] one line"), assistant(LONG))))
    words = section(found, "Constraints & Preferences: the person's own words")
    assert words == [((0,), nasty), ((1,), "- [9] one line")]
    assert nasty in found.text


def test_what_is_open_is_told() -> None:
    todos = [
        {"content": "read the code", "status": "completed"},
        {"content": "fix it", "status": "in_progress"},
        {"content": "test it", "status": "pending"},
    ]
    found = extract(
        source_of(
            events_of(
                user("fix the parser"),
                reply(LONG, call("t", "TodoWrite", todos=todos)),
                result("t", "ok"),
                reply("", call("e", "Edit", file_path="src/parser.py")),
                result("e", "edited"),
                reply("", call("b", "Bash", command="npm test")),
                wrong("b", f"FAIL src/parser.test.ts\n{'x' * 50}\nError: expected 3, got 4"),
                reply("", call("p", "Bash", command="npm run build")),
            ),
            prefix_of_turn=0,
        )
    )
    assert section(found, "Next Steps") == [
        ((1,), "To do: test it"),
        ((7,), "No result yet: Bash `npm run build`"),
    ]
    assert ((1,), "Being done: fix it") in section(found, "Progress: In Progress")
    assert ((0, 7), "The last request was being worked on.") in section(found, "Progress: In Progress")
    assert ((0,), "The turn that began here goes on in the messages that follow.") in section(
        found, "Progress: In Progress"
    )
    assert ((1,), "Done: read the code") in section(found, "Progress: Done")
    assert section(found, "Checked") == [
        ((5, 6), "`npm test` failed: Error: expected 3, got 4"),
        ((7,), "`npm run build` has no result"),
    ]
    assert section(found, "Not checked") == [((3,), "Changed and no check was run: src/parser.py")]
    assert found.modified_files == ("src/parser.py",)
    (error,) = [text for seqs, text in section(found, "Critical Context") if seqs == (6,)]
    assert error.startswith("Last error, of Bash: FAIL src/parser.test.ts") and error.endswith("expected 3, got 4")


def test_a_request_that_nobody_answered_is_the_next_step() -> None:
    found = extract(source_of(events_of(user("one"), assistant(LONG), user("and two?"))))
    assert ((2,), "The last request has no answer yet.") in section(found, "Next Steps")
    assert ((2,), "Asked last: and two?") in section(found, "Goal")


def test_a_summary_among_the_events_is_merged_and_its_lines_keep_what_they_cite() -> None:
    first = source_of(
        events_of(user("always use tabs"), reply(LONG, call("w", "Write", file_path="a.py")), result("w", "ok"))
    )
    once = extract(first)
    again = [
        event_of(summary(once.text, replace(0, 2), [(0, 2)]), 3),
        event_of(user("now b.py, and ALWAYS_SORT the keys"), 4),
        event_of(reply(LONG, call("v", "write", path="b.py")), 5),
        event_of(result("v", "ok"), 6),
    ]
    twice = extract(source_of(again))
    assert twice.text.count("This stands for") == 1
    assert section(twice, "Constraints & Preferences: the person's own words") == [
        ((0,), "always use tabs"),
        ((4,), "now b.py, and ALWAYS_SORT the keys"),
    ]
    assert section(twice, "Files modified") == [((1,), "a.py"), ((5,), "b.py")]
    assert twice.modified_files == ("a.py", "b.py")
    assert "The last request was being worked on." in once.text
    assert section(twice, "Progress: In Progress") == [((4, 5), "The last request was being worked on.")]


def test_another_programs_summary_is_taken_by_its_headings_and_cited_as_a_whole() -> None:
    theirs = (
        "## Goal\nPort the theme\n\n## Constraints & Preferences\n- no console logs\n\n"
        "## Progress\n### Done\n- [x] dark\n"
        "### In Progress\n- [ ] light\n\n## Next Steps\n1. release\n2. rest\n\n<read-files>\na.ts\n</read-files>\n"
        "<modified-files>\nb.ts\nc.ts\n</modified-files>"
    )
    found = extract(source_of([event_of(summary(theirs, replace(0, 4), [(0, 4)]), 5), event_of(assistant(LONG), 6)]))
    assert section(found, "Goal") == [((5,), "Port the theme")]
    assert section(found, "Constraints & Preferences") == [((5,), "no console logs")]
    assert ((5,), "dark") in section(found, "Progress: Done")
    assert ((5,), "light") in section(found, "Progress: In Progress")
    assert section(found, "Next Steps") == [((5,), "release"), ((5,), "rest")]
    assert (found.read_files, found.modified_files) == (("a.ts",), ("b.ts", "c.ts"))


def test_long_pasted_blocks_are_shortened_only_where_they_do_not_fit_and_what_is_said_stays() -> None:
    log = "\n".join(f"12:00:{at:02} srv[{at}]: GET /x/{at} -> {{200}};" for at in range(60))
    said = f"Why does this happen after the upgrade?\n\n```\n{log}\n```\nPlease do not touch the proxy."
    wide = extract(source_of(events_of(user(said), assistant(LONG * 2))))
    assert said in wide.text
    close = extract(source_of(events_of(user(said), assistant(LONG[: len(LONG) // 5]))))
    assert said not in close.text
    for kept in ("Why does this happen after the upgrade?", "Please do not touch the proxy.", "12:00:00", "12:00:59"):
        assert kept in close.text
    assert "56 pasted lines left out here; event 0 has them" in close.text


def test_a_limit_drops_what_is_worth_least_and_never_a_demand() -> None:
    source = real_source(LARGE[0])
    whole = extract(source)
    small = extract(source, limit=6_000)
    assert small.tokens <= 6_000 < whole.tokens
    assert all(demand.text in small.text for demand in demands(source.events))
    assert small.modified_files == whole.modified_files
    with pytest.raises(SummaryRefused, match="the limit is 3,000") as refused:
        extract(source, limit=3_000)
    assert refused.value.kind == "too-large"


@pytest.mark.parametrize(
    "drafts",
    [
        [],
        [user("hi"), assistant("hello")],
        [user("x" * 30_000), assistant("fine " * 900)],
    ],
)
def test_a_source_that_is_too_small_or_mostly_demands_is_declined_with_the_reason(drafts: list[Draft]) -> None:
    with pytest.raises(SummaryRefused, match="what must be kept takes") as refused:
        extract(source_of(events_of(*drafts)))
    assert (refused.value.kind, refused.value.usage) == ("too-small", None)


def test_values_in_a_tools_output_alone_are_not_missed_and_those_that_were_spoken_of_are() -> None:
    listing = "src/a.py src/b.py src/c.py PORT_NUMBER=5432\n" * 3
    found = notable(
        events_of(
            user("look at src/a.py"),
            reply("", call("l", "bash", command="ls")),
            result("l", listing),
            reply("PORT_NUMBER is set.", call("l", "bash", command="ls")),
            result("l", listing),
            wrong("m", "Traceback\nValueError: bad magic 0xdead in `load_cache`"),
            *(assistant("so") for _ in range(3)),
        )
    )
    by_value = {term.value: term for term in found}
    assert by_value["src/a.py"].asked and "src/b.py" not in by_value
    assert not by_value["PORT_NUMBER"].late and len(by_value["PORT_NUMBER"].seqs) == 2
    assert "5432" not in by_value
    assert by_value["ValueError: bad magic 0xdead in `load_cache`"].kind == "error"
    assert by_value["load_cache"].wrong


words = st.text(st.sampled_from("ab/._-# ~[]0123456789\n`\"'<>é漢"), max_size=60)
names = st.sampled_from(["read", "Edit", "Bash", "shell", "apply_patch", "TodoWrite", "AskUserQuestion", "x"])
values = st.one_of(
    words, st.integers(), st.none(), st.lists(words, max_size=3), st.dictionaries(words, words, max_size=2)
)
keys = st.sampled_from(["path", "file_path", "command", "todos", "items", "workdir", "input"])
calls = st.builds(
    lambda id_, name, arguments: {"type": "tool_call", "call_id": id_, "name": name, "arguments": arguments},
    st.sampled_from("abc"),
    names,
    st.one_of(words, st.dictionaries(keys, values, max_size=3)),
)
drafts = st.one_of(
    st.builds(user, words),
    st.builds(reply, words, calls, calls),
    st.builds(result, st.sampled_from("abc"), words),
    st.builds(wrong, st.sampled_from("abc"), words),
    st.builds(lambda text: summary(text, replace(0, 0), [0]), words),
    st.builds(lambda text: Draft(type="branch/summary", data={"summary": text, "read_files": [text]}), words),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(drafts, max_size=12), st.integers(0, 6), st.one_of(st.none(), st.integers(0, 4_000)))
def test_a_summary_of_any_events_is_small_and_cites_them_alone_or_is_refused(
    some: list[Draft], filler: int, limit: int | None
) -> None:
    events = events_of(*some, *(assistant(LONG[:4_000]) for _ in range(filler)))
    source = source_of(events)
    try:
        found = extract(source, limit=limit)
    except SummaryRefused:
        return
    assert found.tokens * 5 < source.tokens
    assert limit is None or found.tokens <= limit
    for demand in demands(events):
        assert demand.text in found.text
    seqs = {seq for _, cited, _ in lines_of(found.text) for seq in cited}
    assert seqs <= set(range(len(events)))
    assert all(claim.sources for claim in found.claims)
    again = Source((event_of(summary(found.text, replace(0, 0), [0]), len(events)),), source.tokens)
    kept = extract(again)
    assert all(demand.text in kept.text for demand in demands(events))
    assert kept.modified_files == found.modified_files
