"""`onward why`: for each way in which a model comes not to know something, the stage, the events and the way back."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import onward
from builders import assistant, summary, user
from command_line import onward as run
from onward import Draft, Image, Message, Reasoning, Session, Store, Text, ToolCall
from onward.model.event import SurfaceOp

NEEDLE = "use port 8080 for the proxy"


def replace(first: int, last: int) -> SurfaceOp:
    return SurfaceOp(replace=(first, last))


def view(*items: Any) -> SurfaceOp:
    return SurfaceOp(view=items)


def prune(s: Session, seq: int) -> None:
    data = {**s.event(seq).data, "content": [{"type": "text", "text": "[pruned]"}]}
    s.append(Draft(type="tool/result", data=data, surface=replace(seq, seq), sources=(seq,)))


def asks(text: str = "", **arguments: Any) -> Message:
    return Message("assistant", [*([Text(text)] if text else []), ToolCall("c1", "read", arguments)])


# --- the sessions: each is a function that writes one -----------------------------------------------------------------


def plain(s: Session) -> None:
    s.user("hello")
    s.user(f"Please {NEEDLE}, always.")
    s.assistant("Fine.")


def compacted(s: Session) -> None:
    plain(s)
    s.summary("They spoke of the proxy.", replace(1, 3), [(1, 3)])
    s.user("go on")


def compacted_twice(s: Session) -> None:
    compacted(s)
    s.summary("Nothing much.", replace(4, 5), [4, 5])


def summary_compacted(s: Session) -> None:
    s.user("hello")
    s.summary(f"Decided: {NEEDLE}.", replace(1, 1), [1])
    s.user("go on")
    s.summary("All is well.", replace(2, 3), [2, 3])


def pruned(s: Session) -> None:
    s.user("read it")
    s.assistant(asks(path="notes.md"))
    s.tool_result("c1", f"line one\n{NEEDLE}\nline three")
    prune(s, 3)


def edited(s: Session) -> None:
    plain(s)
    s.edit(2, Message("user", [Text("Please be kind.")]))


def edited_away(s: Session) -> None:
    plain(s)
    s.edit(2, None)


def viewed_away(s: Session) -> None:
    plain(s)
    s.append(Draft(type="custom/message", data={"message": {"role": "user", "blocks": [{"type": "text", "text": "n"}]},
             "kind": "n"}, surface=view(1, "self"), sources=(2, 3)))  # fmt: skip


def brought_back(s: Session) -> None:
    compacted(s)
    s.append(Draft(type="custom", data={"kind": "undo"}))
    s.append(Draft(type="context/edit", data={"target": 4}, surface=view((1, 3), 5), sources=(4,)))


def pruned_then_compacted(s: Session) -> None:
    pruned(s)
    s.user("next")
    s.summary("A file was read.", replace(1, 5), [(1, 5)])


def left_branch(s: Session) -> None:
    s.user("hello")
    s.create_branch("try", node=1)
    s.append(user(f"Please {NEEDLE}.", branch="try"))
    s.append(assistant("Fine.", branch="main"))


def unnamed_branch(s: Session) -> None:
    plain(s)
    s.move("main", 1)
    s.user("something else")


def compacted_on_a_branch(s: Session) -> None:
    plain(s)
    s.append(summary("short", replace(1, 3), [(1, 3)]))
    s.create_branch("old")
    s.move("main", 1)
    s.user("something else")


def on_both(s: Session) -> None:
    left_branch(s)
    s.user(f"I said: {NEEDLE}!")


def compacted_here_seen_there(s: Session) -> None:
    plain(s)
    s.create_branch("old")
    s.append(summary("short", replace(1, 3), [(1, 3)]))


def argument_only(s: Session) -> None:
    s.user("do it")
    s.assistant(asks(command=f"echo '{NEEDLE}'"))


def argument_compacted(s: Session) -> None:
    argument_only(s)
    s.summary("Something was asked.", replace(1, 2), [1, 2])


def argument_and_result(s: Session) -> None:
    argument_only(s)
    s.tool_result("c1", NEEDLE)


def raw_arguments(s: Session) -> None:
    s.user("do it")
    s.append(Draft(type="assistant/message", data={"message": {"role": "assistant", "blocks": [
        {"type": "tool_call", "call_id": "c1", "name": "sh", "arguments": '{"cmd": "\\"use  port\\n8080 for the proxy'}
    ]}}, surface="append"))  # fmt: skip


def in_reasoning(s: Session) -> None:
    s.user("think")
    s.assistant(Message("assistant", [Reasoning(f"I should {NEEDLE}."), Text("Done.")]))


def reasoning_compacted(s: Session) -> None:
    in_reasoning(s)
    s.summary("It thought.", replace(1, 2), [1, 2])


def image_caption(s: Session) -> None:
    s.user(Message("user", [Image(url="https://x.test/a.png", meta={"caption": NEEDLE})]))


def image_url(s: Session) -> None:
    s.user(Message("user", [Image(url=f"https://x.test/{NEEDLE.replace(' ', '-')}.png")]))


def fact(type_: str, data: Any, **fields: Any) -> Callable[[Session], None]:
    def build(s: Session) -> None:
        s.user("hello")
        s.append(Draft(type=type_, data=data, **fields))
        s.assistant("hi")

    return build


def cut_partial(s: Session) -> None:
    with s.turn("go") as turn, turn.step() as step:
        step.request(model=onward.Model("p", "m"))
        s.append(
            Draft(type="assistant/partial", data={"blocks": [{"type": "text", "text": "well, use po"}]}, about=s.leaf)
        )
        s.append(
            Draft(
                type="assistant/partial",
                data={"blocks": [{"type": "text", "text": "rt 8080 for the pro"}]},
                about=s.leaf,
            )
        )
        s.append(Draft(type="assistant/partial", data={"blocks": [{"type": "text", "text": "xy"}]}, about=s.leaf))
        step.reply("never mind")


def late(s: Session) -> None:
    s.user("go")
    s.assistant(asks(path="a"))
    s.tool_result("c1", "timeout", is_error=True)
    s.append(
        Draft(type="tool/result", data={"call_id": "c1", "late": True, "content": [{"type": "text", "text": NEEDLE}]})
    )


def queued(s: Session) -> None:
    s.user("hello")
    s.queue(f"And {NEEDLE}.", id="q1")


def taken_back(s: Session) -> None:
    queued(s)
    s.cancel_input("q1")


def long_talk(s: Session) -> None:
    s.system("Be kind.")
    s.user(f"First: {NEEDLE}. " + "x" * 400)
    s.assistant("Fine.")
    for turn in range(6):
        s.user(f"question {turn} " + "y" * 400)
        s.assistant(f"answer {turn} " + "z" * 400)


def budgeted(s: Session) -> None:
    long_talk(s)
    with s.turn("last") as turn, turn.step() as step:
        step.request(model=onward.Model("p", "m"), budget=400)
        step.reply("yes")


def requested(s: Session) -> None:
    plain(s)
    with s.turn("last") as turn, turn.step() as step:
        step.request(model=onward.Model("p", "m"))
        step.reply("yes")


def text(words: str) -> Callable[[Session], None]:
    def build(s: Session) -> None:
        s.user("hello")
        s.user(words)

    return build


def big_result(s: Session) -> None:
    s.user("read it")
    s.assistant(asks(path="big"))
    s.tool_result("c1", "filler " * 20_000 + NEEDLE + " filler" * 10)
    prune(s, 3)


class Made(NamedTuple):
    """A session, what is asked of it, and the answer: the stage, the seqs of the first events, the fix (S = its id)."""

    name: str
    build: Callable[[Session], None]
    stage: str
    events: list[int]
    fix: str | None = None
    query: str = NEEDLE
    match: str = "as given"
    how: dict[str, Any] = {}  # noqa: RUF012
    shown: str | None = None


SHOW, RESULT = "show S --event {}", "tool-result S {}"
STATE = {"kind": "k", "data": {"k": [NEEDLE]}}
TABLE = [
    Made("a message that the model sees", plain, "visible", [2]),
    Made("a call and its result that the model sees", argument_and_result, "visible", [3]),
    Made("what an undone compaction brought back", brought_back, "visible", [2]),
    Made("said again on this path", on_both, "visible", [5]),
    Made("the model's reasoning", in_reasoning, "visible", [2]),
    Made("a picture's address", image_url, "visible", [1], query=f"https://x.test/{NEEDLE.replace(' ', '-')}.png"),
    Made("a compacted message", compacted, "compaction", [2, 4], SHOW.format(2)),
    Made("a message under two compactions", compacted_twice, "compaction", [2, 4, 6], SHOW.format(2)),
    Made("a summary that was compacted", summary_compacted, "compaction", [2, 4], SHOW.format(2)),
    Made("a pruned result", pruned, "compaction", [3, 4], RESULT.format(3)),
    Made("a pruned result, compacted since", pruned_then_compacted, "compaction", [3, 4, 6], RESULT.format(3)),
    Made("a pruned result in a blob", big_result, "compaction", [3, 4], RESULT.format(3)),
    Made("an edited message", edited, "compaction", [2, 4], SHOW.format(2)),
    Made("a message edited away", edited_away, "compaction", [2, 4], SHOW.format(2)),
    Made("a message that a view leaves out", viewed_away, "compaction", [2, 4], SHOW.format(2)),
    Made("reasoning that was compacted", reasoning_compacted, "compaction", [2, 3], SHOW.format(2)),
    Made("arguments that were compacted", argument_compacted, "compaction", [2, 3], SHOW.format(2)),
    Made("compacted here, seen there", compacted_here_seen_there, "compaction", [2, 5], SHOW.format(2)),
    Made("a message on another branch", left_branch, "branch", [3], "context S --branch try --json"),
    Made("a message that no branch leads to", unnamed_branch, "branch", [2], "context S --node 2 --json"),
    Made("compacted on another branch", compacted_on_a_branch, "branch", [2], SHOW.format(2)),
    Made("left out by a budget", long_talk, "budget", [2], "context S --budget {} --json", how={"budget": 500}),
    Made("left out by the newest request's budget", budgeted, "budget", [2], "context S --budget {} --json"),
    Made("arguments alone", argument_only, "never-seen", [2], SHOW.format(2)),
    Made("arguments that are no JSON", raw_arguments, "never-seen", [2], SHOW.format(2), shown="8080 for the proxy"),
    Made("a picture's caption in its meta", image_caption, "never-seen", [1], "show S --event 1 --json"),
    Made("an application's state", fact("custom", STATE), "never-seen", [2], SHOW.format(2)),
    Made("an application's own type", fact("app.x", {"t": NEEDLE}), "never-seen", [2], SHOW.format(2)),
    Made("a label", fact("label", {"label": NEEDLE}, about=1), "never-seen", [2], SHOW.format(2)),
    Made("a note", fact("note", {"text": NEEDLE}, about=1), "never-seen", [2], SHOW.format(2)),
    Made("a title", fact("title", {"title": NEEDLE}), "never-seen", [2], SHOW.format(2)),
    Made("a failed request", fact("assistant/attempt", {"error": {"message": NEEDLE}}),
         "never-seen", [2], SHOW.format(2)),
    Made("streamed text", fact("assistant/partial", {"blocks": [{"type": "text", "text": NEEDLE}]}, about=1),
         "never-seen", [2], SHOW.format(2)),
    Made("a late result", late, "never-seen", [4], SHOW.format(4)),
    Made("input that waits", queued, "never-seen", [2], SHOW.format(2)),
    Made("input that was taken back", taken_back, "never-seen", [2], SHOW.format(2)),
    Made("nowhere", plain, "stored", [], query="a thing that nobody ever said"),
    Made("nearly the same", text("We decided to use a connection pool."), "visible", [2],
         query="we decided to use a conection pol", match="nearly"),
    Made("with words between", text("Use the port 8080, please, for the new proxy"), "visible", [2],
         query="use port 8080 for proxy", match="with other words between"),
    Made("other case", text("USE PORT 8080 FOR THE PROXY"), "visible", [2], match="but for case"),
    Made("wrapped lines", text("We\n  use port\n  8080 for\n  the proxy"), "visible", [2]),
    Made("many lines", text("a\n    b(c)\n\n    d"), "visible", [2], query="a\nb( c )\nd"),
    Made("other quotes", text("say “don’t – stop”"), "visible", [2], query="\"don't - stop\""),
    Made("composed otherwise", text("Cafe\u0301 Zu\u0308rich"), "visible", [2], query="Café Zürich"),
    Made("Chinese, wrapped", text("请使用\n八零八零 端口"), "visible", [2], query="请使用八零八零端口"),
    Made("escaped in JSON", text('{"a": "{\\"name\\": \\"Z\\u00fcrich\\"}"}'), "visible", [2],
         query='{"name": "Zürich"}'),
    Made("signs of regular expressions", text(r"match ^(a|b)+[.*?$ here"), "visible", [2], query="^(a|b)+[.*?$"),
    Made("signs alone", text("what ==> that"), "visible", [2], query="==>"),
    Made("an event by its number", compacted, "compaction", [2, 4], SHOW.format(2), query="#2", shown=NEEDLE),
    Made("an event by option", plain, "visible", [3], query="", how={"event": 3}),
    Made("an event that is not there", plain, "stored", [], query="", how={"event": 99}),
    Made("a call by its id", pruned, "compaction", [3, 4], RESULT.format(3), query="",
         how={"call": "c1"}, shown=NEEDLE),
    Made("a call without a result", argument_only, "never-seen", [2], SHOW.format(2), query="",
         how={"call": "c1"}, shown=NEEDLE),
    Made("a call that is not there", plain, "stored", [], query="", how={"call": "c9"}),
    Made("a number that is no event", text("see #404 there"), "visible", [2], query="#404"),
]  # fmt: skip


@pytest.mark.parametrize("made", TABLE, ids=lambda made: made.name)
def test_a_text_is_explained_by_its_stage_its_events_and_a_command_that_shows_it(made: Made, tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="S", cwd="/w") as session:
        made.build(session)
        found = session.why(made.query or None, **made.how)
    assert (found.stage, found.session) == (made.stage, "S"), found
    assert [place.seq for place in found.events][: len(made.events)] == made.events, found.events
    assert found.match == (None if made.stage == "stored" else made.match)
    assert found.verdict.endswith(".") and found.explanation.endswith(".")
    if made.fix is None:
        assert found.fix is None
        assert "no command" in found.explanation or "nothing to bring back" in found.explanation
        return
    assert found.fix is not None
    words = shlex.split(found.fix)
    if "{}" in made.fix:
        assert int(words[words.index("--budget") + 1]) > 400
    else:
        assert words == ["onward", *made.fix.split()]
    assert (made.shown or made.query) in shown_by(tmp_path, found.fix)


def shown_by(home: Path, fix: str) -> str:
    """What a command shows: its output, or all strings of its document."""
    program, *words = shlex.split(fix)
    assert program == "onward"
    answer = run(home, *words)
    assert answer.code == 0, answer
    if "--json" not in words:
        return answer.out
    return "\n".join(strings(json.loads(answer.out)))


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in strings(item)]
