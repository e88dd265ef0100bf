"""What a stretch of events says that a summary must keep: a person's words, files, errors, what is open. Pure.

Both kinds of summaries take it from here: the model is not trusted with any of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onward.context.summaries import sections
from onward.context.summaries.calls import Asked, asked
from onward.context.summaries.files import plain_name, touched
from onward.context.summaries.former import Former, former, is_summary
from onward.context.summaries.sections import cited
from onward.context.summaries.summary import Claim, Source
from onward.model.demands import demands
from onward.model.event import Event

_TODO_TOOLS = frozenset({"todowrite", "todo_write", "todo", "update_plan", "todos", "write_todos"})
_TODO = "To do: "
_DOING = "Being done: "
_DONE = "Done: "


@dataclass(frozen=True, slots=True)
class Stretch:
    """A source, looked through once.

    Attributes:
        source: what was looked through.
        formers: the summaries among the events.
        calls: the tool calls.
        words: the person's words, in order, as lines.
        todo: the items of the last todo list, as lines, those that are done among them.
        modified, read: files, as lines.
    """

    source: Source
    formers: tuple[Former, ...]
    calls: tuple[Asked, ...]
    words: tuple[Claim, ...]
    todo: tuple[Claim, ...]
    modified: tuple[Claim, ...]
    read: tuple[Claim, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        """The events."""
        return self.source.events

    def before(self, *names: str) -> list[Claim]:
        """The lines of former summaries in some sections, in order."""
        return [claim for one in self.formers for claim in one.claims if claim.section in names]

    @property
    def citable(self) -> frozenset[int]:
        """The seqs that a summary of this may cite: of the events, and those that their summaries cite."""
        old = (seq for one in self.formers for claim in one.claims for seq in claim.sources)
        return frozenset([event.seq for event in self.events]) | frozenset(old)


def gather(source: Source) -> Stretch:
    """Look through a source."""
    formers = tuple(former(event) for event in source.events if is_summary(event))
    calls = tuple(asked(source.events))
    modified, read = _files(formers, calls)
    return Stretch(
        source, formers, calls, _words(formers, source.events), _todo(formers, source, calls), modified, read
    )


def _words(formers: Sequence[Former], events: Sequence[Event]) -> tuple[Claim, ...]:
    """The person's words: those that former summaries kept, and those of the events, none twice."""
    found: dict[str, Claim] = {}
    old = [claim for one in formers for claim in one.claims if claim.section == sections.ASKED]
    new = []
    for one in demands(events):
        # What is no text is named behind the words, on a line of its own.
        told = "".join(f"\n[{attached}]" for attached in one.attached)
        new.append(Claim(sections.ASKED, f"{one.text}{told}".removeprefix("\n" if not one.text else ""), one.seqs))
    for claim in [*old, *new]:
        before = found.get(claim.text.strip())
        seqs = claim.sources if before is None else before.sources + claim.sources
        found[claim.text.strip()] = Claim(sections.ASKED, claim.text, cited(seqs))
    return tuple(sorted(found.values(), key=lambda claim: claim.sources[0]))


def _files(formers: Sequence[Former], calls: Sequence[Asked]) -> tuple[tuple[Claim, ...], tuple[Claim, ...]]:
    modified: dict[str, list[int]] = {}
    read: dict[str, list[int]] = {}
    for one in formers:
        known = {(claim.section, claim.text): claim.sources for claim in one.claims}
        for found, paths, section in ((modified, one.modified, sections.MODIFIED), (read, one.read, sections.READ)):
            for path in paths:
                found.setdefault(_one_line(path), []).extend(known.get((section, path), (one.seq,)))
    for file in touched(calls):
        (modified if file.mode == "modified" else read).setdefault(_one_line(file.path), []).extend(file.seqs)
    return (
        tuple(Claim(sections.MODIFIED, path, cited(modified[path])) for path in sorted(modified) if path),
        tuple(Claim(sections.READ, path, cited(read[path])) for path in sorted(read) if path and path not in modified),
    )


def _one_line(path: str) -> str:
    return path.replace("\n", "\\n")


def _todo(formers: Sequence[Former], source: Source, calls: Sequence[Asked]) -> tuple[Claim, ...]:
    """The last todo list: of a call, of a fact among the events, else of a former summary."""
    lists: list[tuple[int, list[Any]]] = []
    for call in calls:
        if plain_name(call.name) in _TODO_TOOLS and isinstance(call.arguments, dict) and not call.failed:
            items = next((call.arguments[key] for key in ("todos", "items", "plan") if key in call.arguments), None)
            if isinstance(items, list):
                lists.append((call.seq, items))
    lists += [
        (event.seq, event.data["items"])
        for event in source.events
        if event.type == "todo" and isinstance(event.data, dict) and isinstance(event.data.get("items"), list)
    ]
    if lists:
        seq, items = max(lists, key=lambda one: one[0])
        return tuple(claim for item in items if (claim := _item(item, seq)) is not None)
    marks = (_TODO, _DOING, _DONE)
    return tuple(claim for one in formers for claim in one.claims if claim.text.startswith(marks))


def _item(item: Any, seq: int) -> Claim | None:
    if not isinstance(item, dict):
        return None
    text = next((item[key] for key in ("text", "content", "step", "title") if isinstance(item.get(key), str)), "")
    text = " ".join(text.split())
    match item.get("status"):
        case _ if not text:
            return None
        case "completed" | "done" | "cancelled":
            return Claim(sections.DONE, _DONE + text, (seq,))
        case "in_progress" | "in-progress":
            return Claim(sections.DOING, _DOING + text, (seq,))
    return Claim(sections.NEXT, _TODO + text, (seq,))
