"""Real rollouts, mutated: never a crash, every line accounted for, the untouched export byte for byte."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from builders import shared
from codex_rollouts import event, raw, reading
from onward.errors import BadSource
from onward.formats.codex import CODEX
from onward.formats.source import decode, split

FILES = (
    "redacted-many-shapes.jsonl",
    "rollout-2025-09-24T20-12-23.jsonl",
    "rollout-2025-09-25T15-12-14.jsonl",
)
SEEDS = 14
ODD: tuple[Any, ...] = (None, 7, "", "x", [], {}, [{}], True, -1, {"type": "message"}, [["a"]], 1.5, "\ud800")


def drop(rng: random.Random, lines: list[bytes]) -> None:
    for _ in range(rng.randint(1, 5)):
        del lines[rng.randrange(len(lines))]


def duplicate(rng: random.Random, lines: list[bytes]) -> None:
    for _ in range(rng.randint(1, 5)):
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))


def reorder(rng: random.Random, lines: list[bytes]) -> None:
    at = rng.randrange(len(lines))
    part = lines[at : at + 20]
    rng.shuffle(part)
    lines[at : at + 20] = part


def truncate(rng: random.Random, lines: list[bytes]) -> None:
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(lines))
        lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]


def retype(rng: random.Random, lines: list[bytes]) -> None:
    for _ in range(rng.randint(1, 30)):
        at = rng.randrange(len(lines))
        try:
            record = json.loads(lines[at])
        except ValueError:
            continue
        places = list(_places(record))
        if places:
            holder, key = rng.choice(places)
            holder[key] = rng.choice(ODD)
            lines[at] = json.dumps(record).encode()


def rename(rng: random.Random, lines: list[bytes]) -> None:
    for _ in range(rng.randint(1, 10)):
        at = rng.randrange(len(lines))
        old, new = rng.choice(
            [(b'"payload"', b'"load"'), (b'"type"', b'"kind"'), (b"call_id", b"id"), (b'"role"', b'"r"')]
        )
        lines[at] = lines[at].replace(old, new, rng.randint(1, 3))


def roll_back(rng: random.Random, lines: list[bytes]) -> None:
    for _ in range(rng.randint(1, 4)):
        record = event("thread_rolled_back", num_turns=rng.choice([0, 1, 1, 2, 99, -1]))
        lines.insert(rng.randrange(1, len(lines) + 1), json.dumps(record).encode())


def compact(rng: random.Random, lines: list[bytes]) -> None:
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(1, len(lines) + 1)
        earlier = [json.loads(line) for line in lines[:at] if line.startswith(b'{"timestamp"') and line.endswith(b"}")]
        history = [one["payload"] for one in earlier if one.get("type") == "response_item" and "payload" in one]
        kept = [one for one in history if rng.random() < 0.7]
        if rng.random() < 0.3:
            rng.shuffle(kept)
        extra = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"sum {rng.random()}"}]}
        kept.insert(rng.randrange(len(kept) + 1), extra)
        record = {"timestamp": "x", "type": "compacted", "payload": {"message": "", "replacement_history": kept}}
        lines.insert(at, json.dumps(record).encode())


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key
        yield from _places(item)


MUTATIONS: tuple[Callable[[random.Random, list[bytes]], None], ...] = (
    drop,
    duplicate,
    reorder,
    truncate,
    retype,
    rename,
    compact,
    roll_back,
)


def check(data: bytes) -> None:
    """Import, account for every line, look at the context, export."""
    lines = [line for line in split([data]) if line.raw.strip()]
    records = [line for line in lines if line.complete or decode(line).parses]
    try:
        with reading(data) as read:
            origins = [found.origin for found in read.events]
            missing = [line.number for line in records if line.number not in set(origins)]
            # At most one line, the header, is no event; and none is two.
            assert len(missing) <= 1, missing
            assert len(set(origins)) == len(origins) == len(records) - len(missing)
            assert origins == sorted(origins)
            named = {line for line, _ in read.warnings}
            unparsed = {line.number for line in records if decode(line).problem is not None}
            assert unparsed - set(missing) <= named
            assert read.export().data == data
            assert len(read.plain) == read.done.messages
            assert _plain_calls(records) == _read_calls(read)
            again = CODEX.render(_as_fresh(read))
            assert again.lines
    except BadSource:
        first = next((decode(line).value for line in lines if type(decode(line).value) is dict), None)
        assert first is None or CODEX.sniff(first) is None


def _plain_calls(records: list[Any]) -> list[str]:
    """The ids of the function calls of a plain shape, straight from the lines."""
    found = []
    for one in records:
        value = decode(one)
        item = (
            value.value.get("payload") if value.problem is None and value.value.get("type") == "response_item" else None
        )
        if isinstance(item, dict) and item.get("type") == "function_call":
            call_id, name = item.get("call_id"), item.get("name")
            if isinstance(call_id, str) and isinstance(name, str):
                found.append(call_id)
    return found


def _read_calls(read: Any) -> list[str]:
    said = [found.data["message"]["blocks"] for found in read.events if found.type == "assistant/message"]
    return [b["call_id"] for blocks in said for b in blocks if b["type"] == "tool_call" and "meta" not in b]


def _as_fresh(read: Any) -> Any:
    from onward.formats.exporting import _view

    return _view(read.session, read.session.view(), None)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_mutated_rollout_is_read_or_refused_and_never_crashes(name: str, seed: int):
    rng = random.Random(f"{name} {seed}")
    lines = shared("sessions", "codex", name).read_bytes().splitlines()
    lines = lines[: rng.randint(20, len(lines))]
    for mutation in rng.sample(MUTATIONS, rng.randint(1, 4)):
        if len(lines) > 8:
            mutation(rng, lines)
    check(raw(lines) if rng.random() < 0.8 else raw(lines)[:-1])


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.__name__)
def test_each_mutation_alone(mutation: Callable[[random.Random, list[bytes]], None]):
    rng = random.Random(7)
    lines = shared("sessions", "codex", FILES[0]).read_bytes().splitlines()
    mutation(rng, lines)
    check(raw(lines))
