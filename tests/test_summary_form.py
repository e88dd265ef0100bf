"""How summaries are written and read back, and what of a message may be shortened."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import event_of, summary, user
from onward.context.summaries import sections
from onward.context.summaries.former import former, is_summary
from onward.context.summaries.notable import terms
from onward.context.summaries.pasted import LEAST, shortened
from onward.context.summaries.sections import cited, lines_of, written
from onward.context.summaries.summary import Claim
from onward.model.event import APPEND, replace

texts = st.text(st.sampled_from("ab #-[]1,~\n`*:"), min_size=1, max_size=40).filter(lambda text: text.strip() != "")
claims = st.builds(
    Claim,
    st.sampled_from(sections.ORDER),
    texts,
    st.lists(st.integers(0, 999), min_size=1, max_size=9).map(cited),
)


@settings(max_examples=50)
@given(st.lists(claims, max_size=8))
def test_whatever_a_line_says_it_is_read_back_as_it_was_written(some: list[Claim]) -> None:
    found = [(heading, seqs, text) for heading, seqs, text in lines_of(written("Head\n", some)) if seqs]
    assert sorted(found) == sorted((one.section, one.sources, one.text) for one in some)


def test_a_line_cites_the_first_and_the_last_events_of_many() -> None:
    assert cited([9, 1, 5, 3, 7, 5]) == (1, 5, 7, 9)
    assert cited([2, 1, 2]) == (1, 2)


@pytest.mark.parametrize(
    ("heading", "section"),
    [
        ("## Goal", "Goal"),
        ("### In Progress", "Progress: In Progress"),
        ("1. Primary Request and Intent:", "Goal"),
        ("**Pending Tasks**:", "Next Steps"),
        ("6. All user messages:", "Constraints & Preferences"),
        ("## Something Else", "Critical Context"),
    ],
)
def test_headings_of_other_programs_lead_to_our_sections(heading: str, section: str) -> None:
    found = former(event_of(summary(f"{heading}\n   - one thing\n", replace(0, 0), [0]), 4))
    assert found.claims == (Claim(section, "one thing", (4,)),)


def test_a_citation_of_what_came_later_is_not_believed() -> None:
    found = former(event_of(summary("## Goal\n- [3, 9] one\n- [9] two", replace(0, 0), [0]), 4))
    assert [(one.sources, one.text) for one in found.claims] == [((3,), "one"), ((4,), "two")]


def test_a_programs_text_in_the_place_of_others_is_a_summary_and_a_persons_is_not() -> None:
    theirs = user("## Goal\nGo on", surface=replace(0, 1), sources=[0, 1])
    assert not is_summary(event_of(theirs, 2))
    theirs.data["source"] = "injected"
    assert is_summary(event_of(theirs, 2)) and former(event_of(theirs, 2)).claims[0].section == "Goal"
    plain = user("look at the time", surface=APPEND)
    plain.data["source"] = "injected"
    assert not is_summary(event_of(plain, 2))


def test_a_message_without_pasted_blocks_stays_as_it_is() -> None:
    talk = "\n".join(f"And then we go to step {number} of the plan" for number in range(40))
    assert shortened(talk, 1) == talk
    short = "```\n" + "x = 1;\n" * (LEAST - 3) + "```"
    assert shortened(short, 1) == short
    open_fence = "```\nnever closed, and I mean it"
    assert shortened(open_fence, 1) == open_fence


def test_what_a_person_says_within_a_pasted_log_stays() -> None:
    log = [f"srv[{number}]: GET=/x;" for number in range(40)]
    log[20] = "here is where it breaks for me"
    found = shortened("\n".join(log), 7)
    assert log[20] in found and log[0] in found and log[39] in found and log[10] not in found
    assert found.count("pasted lines left out here; event 7 has them") == 2
    wide = shortened("```\n" + "\n".join(["{" + "y" * 2_000 + "}"] * 20) + "\n```", 7)
    assert len(wide) < 3_000


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("see (packages/x/y.ts) and src/a.py:12", ["packages/x/y.ts", "src/a.py"]),
        ("app/(auth)/[id]/page.tsx, ~/.config/x and ./run", ["app/(auth)/[id]/page.tsx", "~/.config/x", "./run"]),
        ("theme.ts is fine, e.g. this.ui is no file", ["theme.ts"]),
        ("https://a.example/b?c=1#d.", ["https://a.example/b?c=1#d"]),
        ("C:\\Users\\me\\a.txt", ["C:\\Users\\me\\a.txt"]),
        ("port 5432, 1,200 rows, 99%, 3.11.4, 12 and 7", ["5432", "1,200", "99%", "3.11.4"]),
        ("#8abeb7 and a1b2c3d4, MAX_SIZE, max_size, maxSize, MaxSize, --no-verify", None),
        ("2> /dev/null sed -n '1,200p'", []),
        ("plain words only", []),
    ],
)
def test_values_are_found_in_text(text: str, values: list[str] | None) -> None:
    found = [value for _, value in terms(text)]
    wanted = ["#8abeb7", "a1b2c3d4", "MAX_SIZE", "max_size", "maxSize", "MaxSize", "--no-verify"]
    assert found == (wanted if values is None else values)


@pytest.mark.parametrize("piece", ["(", "a/", "a.", "a", "aB", "(a)", "[a]", "/", "-", "1,", "A_", "~/", "x@", "\\"])
def test_a_long_run_of_anything_is_looked_through_in_no_time(piece: str) -> None:
    assert len(list(terms(piece * (20_000 // len(piece))))) <= 20_000
