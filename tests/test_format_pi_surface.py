"""What the model saw in an imported Pi session: branches, compaction and edits give Pi's context at every leaf."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_sessions import (
    assistant,
    branch_summary,
    call,
    chain,
    compaction,
    custom,
    custom_message,
    edit,
    entry,
    file_of,
    head,
    label,
    load,
    model,
    name,
    pi_context,
    result,
    shell,
    system,
    thinking,
    user,
)

PROMPT = {"role": "system", "content": "prompt", "timestamp": 5}

# name, records, leaf, expected plain texts
CASES: list[tuple[str, list[Any], str, list[str]]] = [
    ("one message", chain(user("u", None)), "u", ["u"]),
    ("set-up entries are not seen", chain(model("m", None), thinking("t", None), user("u", None)), "u", ["u"]),
    ("application state is not seen", chain(user("u", None), custom("x", None), assistant("a", None)), "a", ["u", "a"]),
    ("application messages are", chain(user("u", None), custom_message("x", None)), "x", ["u", "x"]),
    ("labels and names are not", chain(user("u", None), label("l", None, "u"), name("n", None, "N")), "n", ["u"]),
    ("a leaf that is a fact sees the nodes above it", chain(user("u", None), model("m", None)), "m", ["u"]),
    (
        "one branch of two",
        [user("1", None), assistant("2", "1"), user("3", "2"), user("4", "2")],
        "3",
        ["1", "2", "3"],
    ),
    (
        "the other branch",
        [user("1", None), assistant("2", "1"), user("3", "2"), user("4", "2")],
        "4",
        ["1", "2", "4"],
    ),
    (
        "a branch that goes on below a label",
        [user("1", None), label("l", "1", "1"), user("2", "l"), model("m", "l"), user("3", "m")],
        "3",
        ["1", "3"],
    ),
    (
        "a summary of the branch that was left",
        [user("1", None), assistant("2", "1"), user("3", "2"), branch_summary("4", "2", "3"), user("5", "4")],
        "5",
        ["1", "2", "4", "5"],
    ),
    (
        "an empty summary of a branch gives no message",
        [user("1", None), branch_summary("2", "1", "root", ""), user("3", "2")],
        "3",
        ["1", "3"],
    ),
    ("a second root sees nothing of the first", [user("1", None), user("2", None), user("3", "2")], "3", ["2", "3"]),
    (
        "compaction: summary first, then what is kept",
        chain(
            *[user("u1", None), assistant("a1", None), user("u2", None), assistant("a2", None)],
            *[compaction("C", None, "u2"), user("u3", None), assistant("a3", None)],
        ),
        "a3",
        ["[C]", "u2", "a2", "u3", "a3"],
    ),
    (
        "compaction with a system message",
        chain(
            *[system("s", None), user("u1", None), user("u2", None)],
            *[compaction("C", None, "u2", systemMessage=PROMPT), user("u3", None)],
        ),
        "u3",
        ["prompt", "[C]", "u2", "u3"],
    ),
    (
        "system messages in the kept range are dropped, later ones are not",
        chain(
            *[user("u1", None), user("u2", None), system("s1", None), user("u3", None)],
            *[compaction("C", None, "u2"), system("s2", None)],
        ),
        "s2",
        ["[C]", "u2", "u3", "s2"],
    ),
    (
        "compaction that keeps from the first entry",
        chain(user("u1", None), assistant("a1", None), compaction("C", None, "u1"), user("u2", None)),
        "u2",
        ["[C]", "u1", "a1", "u2"],
    ),
    (
        "compaction that keeps nothing names itself",
        chain(user("u1", None), assistant("a1", None), compaction("C", None, "C"), user("u2", None)),
        "u2",
        ["[C]", "u2"],
    ),
    (
        "compaction whose first kept entry is not in the file",
        chain(user("u1", None), compaction("C", None, "gone"), user("u2", None)),
        "u2",
        ["[C]", "u2"],
    ),
    (
        "compaction whose first kept entry is on another branch",
        [user("1", None), user("2", "1"), user("3", "1"), compaction("C", "3", "2"), user("4", "C")],
        "4",
        ["[C]", "4"],
    ),
    (
        "compaction whose first kept entry is a label",
        chain(user("u1", None), label("l", None, "u1"), user("u2", None), compaction("C", None, "l")),
        "C",
        ["[C]", "u2"],
    ),
    (
        "two compactions: only the second summary",
        chain(
            *[user("u1", None), assistant("a1", None), compaction("C1", None, "u1"), user("u2", None)],
            *[assistant("a2", None), compaction("C2", None, "u2"), user("u3", None)],
        ),
        "u3",
        ["[C2]", "u2", "a2", "u3"],
    ),
    (
        "an older compaction inside the kept range gives no message",
        chain(
            *[user("u1", None), user("u2", None), compaction("C1", None, "u2"), user("u3", None)],
            *[compaction("C2", None, "u1"), user("u4", None)],
        ),
        "u4",
        ["[C2]", "u1", "u2", "u3", "u4"],
    ),
    (
        "a leaf before the compaction sees everything",
        chain(user("u1", None), user("u2", None), compaction("C", None, "u2")),
        "u2",
        ["u1", "u2"],
    ),
    (
        "a branch around the compaction",
        [user("1", None), user("2", "1"), compaction("C", "2", "2"), user("3", "C"), user("4", "2")],
        "4",
        ["1", "2", "4"],
    ),
    (
        "an edit that omits",
        chain(user("u", None), assistant("a", None), edit("e", None, "a"), user("v", None)),
        "v",
        ["u", "v"],
    ),
    ("before the edit", chain(user("u", None), assistant("a", None), edit("e", None, "a")), "a", ["u", "a"]),
    (
        "an edit that replaces",
        chain(user("u", None), assistant("a", None), edit("e", None, "a", "new"), user("v", None)),
        "v",
        ["u", "new", "v"],
    ),
    (
        "an edit of a tool result",
        chain(user("u", None), assistant("a", None, call("c1")), result("r", None), edit("e", None, "r", "short")),
        "e",
        ["u", "a\n", "short"],
    ),
    (
        "an edit of an application's message",
        chain(custom_message("x", None), edit("e", None, "x", "y")),
        "e",
        ["y"],
    ),
    (
        "the later of two edits, which undoes an omission",
        chain(user("u", None), edit("e1", None, "u"), edit("e2", None, "u", "back"), user("v", None)),
        "v",
        ["back", "v"],
    ),
    (
        "an edit on one branch is not seen on the other",
        [user("1", None), user("2", "1"), edit("e", "2", "1", "new"), user("3", "e"), user("4", "2")],
        "4",
        ["1", "2", "4"],
    ),
    (
        "two branches edit the same entry",
        [user("1", None), edit("e", "1", "1", "A"), user("2", "e"), edit("f", "1", "1", "B"), user("3", "f")],
        "3",
        ["B", "3"],
    ),
    (
        "an edit inside the kept range survives a compaction",
        chain(
            *[user("u1", None), user("u2", None), edit("e", None, "u2", "new"), user("u3", None)],
            compaction("C", None, "u2"),
        ),
        "C",
        ["[C]", "new", "u3"],
    ),
    (
        "an omission inside the kept range survives a compaction",
        chain(user("u1", None), user("u2", None), edit("e", None, "u2"), compaction("C", None, "u1")),
        "C",
        ["[C]", "u1"],
    ),
    (
        "an edit after the compaction of an entry that it keeps",
        chain(user("u1", None), user("u2", None), compaction("C", None, "u2"), edit("e", None, "u2", "new")),
        "e",
        ["[C]", "new"],
    ),
    (
        "an edit of an entry that was compacted away",
        chain(user("u1", None), user("u2", None), compaction("C", None, "u2"), edit("e", None, "u1", "new")),
        "e",
        ["[C]", "u2"],
    ),
    (
        "an edit of an entry that was compacted away and is kept again by a later compaction",
        chain(
            *[user("u1", None), user("u2", None), compaction("C1", None, "u2"), edit("e", None, "u1", "new")],
            *[user("u3", None), compaction("C2", None, "u1")],
        ),
        "C2",
        ["[C2]", "new", "u2", "u3"],
    ),
    (
        "a first kept entry that is an edit",
        chain(user("u1", None), edit("e", None, "u1", "new"), user("u2", None), compaction("C", None, "e")),
        "C",
        ["[C]", "u2"],
    ),
]


@pytest.mark.parametrize("records, leaf, expected", [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_context_of_a_leaf_is_what_pi_shows(records, leaf, expected):
    log = load(file_of(head(), *records))
    place = next(i for i, record in enumerate(records) if record["id"] == leaf)
    event = log.events[place]
    node = place if log.state.tree.has_node(place) else event.about
    if event.type == "title":
        node = log.current
    assert log.texts(node) == expected
    assert pi_context(records, leaf) == expected


@pytest.mark.parametrize(
    "records, expected, reason",
    [
        (chain(user("u", None), edit("e", None, "u", "x"), edit("f", None, "e", "y")), ["x"], "no message"),
        (chain(user("u", None), edit("e", None, "gone", "y")), ["u"], "not an earlier entry"),
        (chain(user("u", None), edit("e", None, "e", "y")), ["u"], "no message"),
        ([user("1", None), user("2", "1"), user("3", "1"), edit("e", "3", "2", "y")], ["1", "3"], "another branch"),
        (chain(user("u", None), label("l", None, "u"), edit("e", None, "l", "y")), ["u"], "no message"),
        (chain(system("s", None), edit("e", None, "s", "y")), ["s"], "no message"),
        (chain(user("u", None), compaction("C", None, "u"), edit("e", None, "C", "y")), ["[C]", "u"], "no message"),
        (chain(user("u", None), edit("e", None, "u", 5)), ["u"], "neither null nor a content"),
        (chain(user("u", None), {**edit("e", None, "u"), "replacement": "text"}), ["u"], "neither null nor a content"),
    ],
)
def test_an_edit_that_pi_would_not_have_made_is_kept_without_effect_and_reported(records, expected, reason):
    log = load(file_of(head(), *records))
    assert log.texts(log.current) == expected
    assert log.current == len(records) - 1 and len(log.events) == len(records)
    assert [(w.line, reason in w.message) for w in log.warnings] == [(len(records) + 1, True)]


def test_a_shell_command_is_shown_in_words_unless_it_is_excluded():
    shown = load(file_of(head(), *chain(shell("s", None, exitCode=2))))
    (message,) = shown.messages(shown.current)
    assert message.role == "user"
    assert "ls" in message.blocks[0].text and "a.txt" in message.blocks[0].text and "2" in message.blocks[0].text
    hidden = load(file_of(head(), *chain(shell("s", None, excludeFromContext=True))))
    assert hidden.messages(hidden.current) == [] and hidden.types() == ["custom/message"]


@pytest.mark.parametrize(
    "fields, expected",
    [
        ({"output": ""}, "printed nothing"),
        ({"cancelled": True}, "cancelled"),
        ({"truncated": True, "fullOutputPath": "/tmp/out.txt"}, "/tmp/out.txt"),
    ],
)
def test_how_a_shell_command_went_is_told(fields, expected):
    log = load(file_of(head(), *chain(shell("s", None, **fields))))
    assert expected in log.texts(log.current)[0]


def test_an_unedited_compaction_in_a_long_session_names_ranges_not_every_node():
    records = chain(*[user(f"u{i}", None) for i in range(500)], compaction("C", None, "u400"))
    log = load(file_of(head(), *records))
    event = log.events[-1]
    assert event.surface.view == ("self", (400, 499)) and event.sources == ((0, 399),)


# --- any tree ---------------------------------------------------------------------------------------------------


@st.composite
def trees(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Any valid Pi tree: branches, roots, compactions that keep anything of their path, edits of anything on it."""
    records: list[dict[str, Any]] = []
    paths: dict[str | None, list[dict[str, Any]]] = {None: []}
    for i in range(draw(st.integers(1, 14))):
        this = f"e{i}"
        before = [None, *(record["id"] for record in records)]
        parent = draw(st.sampled_from([before[-1]] * 6 + before))
        path = paths[parent]
        targets = [e["id"] for e in path if e["type"] == "custom_message" or e.get("message", {}).get("role") == "user"]
        kinds = ["user", "user", "user", "system", "custom", "custom_message", "model", "compaction", "branch_summary"]
        kind = draw(st.sampled_from(kinds + ["edit"] * 4 * bool(targets)))
        record: dict[str, Any]
        match kind:
            case "compaction":
                kept = draw(st.sampled_from([this, "gone", *(e["id"] for e in path)]))
                extra = {"systemMessage": PROMPT} if draw(st.booleans()) else {}
                record = compaction(this, parent, kept, **extra)
            case "edit":
                target = draw(st.sampled_from(targets))
                record = edit(this, parent, target, draw(st.sampled_from([None, f"{target} by {this}"])))
            case "branch_summary":
                record = branch_summary(this, parent, "root")
            case _:
                build = {"user": user, "system": system, "custom": custom, "model": model}
                record = build.get(kind, custom_message)(this, parent)
        records.append(record)
        paths[this] = [*path, record]
    return records


@given(trees())
@settings(max_examples=160, deadline=None)
def test_at_every_node_of_any_tree_the_fold_gives_what_pi_gives(records):
    log = load(file_of(head(), *records))
    assert [event.origin for event in log.events] == list(range(2, len(records) + 2))
    for place, record in enumerate(records):
        if log.state.tree.has_node(place):
            assert log.texts(place) == pi_context(records, record["id"]), record["id"]


def test_an_entry_of_an_unknown_type_is_a_node_that_the_model_does_not_see():
    log = load(file_of(head(), *chain(user("1", None), entry("hologram", "2", None, x=1), user("3", None))))
    assert log.types() == ["user/message", "pi.hologram", "user/message"]
    assert log.events[1].ignorable and not log.events[1].fact and log.events[1].data["x"] == 1
    assert list(log.state.path(2)) == [0, 1, 2] and log.texts(2) == ["1", "3"]
