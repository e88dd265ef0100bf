"""A made Codex rollout whose history is written out again at each compaction, and what importing it takes.

`python bench/rollout.py` makes one of 300 MB with 40 compactions, imports it in a process of its own, and prints
seconds, peak memory and the store's size. Options: the size in MB, and the share of the file that the replacements are.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]

TIME = "2026-01-01T00:00:00.000Z"
_HISTORY = 0.38
"""Which part of the lines of a turn is response items, as this maker writes them."""

_SYLLABLES = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "an", "er", "is", "ol")]


class Maker:
    """Makes a rollout's lines. Everything follows from the seed.

    Args:
        size: bytes, about.
        compactions: how many.
        share: which part of the file the replacement histories are; None = each repeats all that was said before.
        seed: of the random texts.
    """

    def __init__(self, size: int, compactions: int, share: float | None = None, seed: int = 1) -> None:
        self._random = random.Random(seed)
        words = ["".join(self._random.choices(_SYLLABLES, k=self._random.randint(1, 4))) for _ in range(3000)]
        self._pool = " ".join(self._random.choices(words, k=200_000))
        self._compactions = compactions
        if share is None:
            # Of the bytes between two compactions a part is history, and is repeated at each one from there on.
            self._own = size / (compactions + _HISTORY * compactions * (compactions + 1) / 2)
            self._keep: float | None = None
        else:
            self._own = size * (1 - share) / compactions
            self._keep = size * share / compactions
        self._history: list[tuple[int, Json]] = []
        self._calls = 0
        self._total = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "reasoning_output_tokens": 0}

    def lines(self) -> Iterator[bytes]:
        meta = {"id": "0199aaaa-0000-7000-8000-000000000001", "timestamp": TIME, "cwd": "/w", "cli_version": "0.80.0"}
        yield _line("session_meta", meta)
        for number in range(self._compactions):
            done = 0
            while done < self._own:
                for line in self._turn():
                    done += len(line)
                    yield line
            yield _line("compacted", {"message": "", "replacement_history": self._replacement(number)})
        yield from self._turn()

    def _replacement(self, number: int) -> list[Json]:
        left = self._keep if self._keep is not None else float("inf")
        kept: list[tuple[int, Json]] = []
        for size, item in reversed(self._history):
            if left <= 0:
                break
            left -= size
            kept.append((size, item))
        kept.reverse()
        kept.append(self._sized(_said("user", f"Summary {number}: {self._text(2000)}")))
        self._history = kept
        return [item for _, item in kept]

    def _turn(self) -> Iterator[bytes]:
        prompt = self._text(300)
        yield self._item(_said("user", prompt))
        yield _line("event_msg", {"type": "user_message", "message": prompt, "images": []})
        for _ in range(6):
            yield _line("turn_context", {"cwd": "/w", "approval_policy": "never", "model": "gpt-5", "effort": "high"})
            thought = self._text(120)
            sealed = base64.b64encode(self._random.randbytes(600)).decode()
            summary = [{"type": "summary_text", "text": thought}]
            yield self._item({"type": "reasoning", "summary": summary, "encrypted_content": sealed})
            yield _line("event_msg", {"type": "agent_reasoning", "text": thought})
            yield self._tokens()
            self._calls += 1
            call_id = f"call_{self._calls}"
            arguments = json.dumps({"command": ["bash", "-lc", self._text(80)]})
            yield self._item({"type": "function_call", "name": "shell", "arguments": arguments, "call_id": call_id})
            text = self._text(self._random.choice((300, 1500, 4000, 9000)))
            end = {"type": "exec_command_end", "call_id": call_id, "stdout": text, "aggregated_output": text}
            yield _line("event_msg", {**end, "exit_code": 0, "formatted_output": text})
            output = f"Exit code: 0\nWall time: 0.1 seconds\nOutput:\n{text}"
            yield self._item({"type": "function_call_output", "call_id": call_id, "output": output})
        answer = self._text(1200)
        yield _line("event_msg", {"type": "agent_message", "message": answer})
        yield self._item(_said("assistant", answer))
        yield self._tokens()

    def _tokens(self) -> bytes:
        last = {key: self._random.randint(1, 900) for key in self._total}
        last["input_tokens"] += last["cached_input_tokens"]
        last["output_tokens"] += last["reasoning_output_tokens"]
        self._total = {key: value + last[key] for key, value in self._total.items()}
        info = {"total_token_usage": self._total, "last_token_usage": last, "model_context_window": 272_000}
        return _line("event_msg", {"type": "token_count", "info": info, "rate_limits": None})

    def _item(self, item: Json) -> bytes:
        self._history.append(self._sized(item))
        return _line("response_item", item)

    def _sized(self, item: Json) -> tuple[int, Json]:
        return len(json.dumps(item)), item

    def _text(self, size: int) -> str:
        at = self._random.randrange(len(self._pool) - size)
        return self._pool[at : at + size]


def _said(role: str, text: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _line(type_: str, payload: Json) -> bytes:
    return json.dumps({"timestamp": TIME, "type": type_, "payload": payload}, separators=(",", ":")).encode() + b"\n"


def make(path: Path, size: int, compactions: int, share: float | None = None, seed: int = 1) -> int:
    """Write a rollout and return its size in bytes."""
    with path.open("wb") as file:
        for line in Maker(size, compactions, share, seed).lines():
            file.write(line)
        return file.tell()


def measure(source: Path, home: Path) -> Json:
    """Import a rollout in this process: seconds, peak memory in MB, the store's parts and its share of the source.

    Next to all of the `rest` is the catalogue: texts and the index of their words, to search in.
    """
    from onward import Store
    from onward.formats.codex import CODEX
    from onward.formats.importing import import_file

    started, worked = time.perf_counter(), time.process_time()
    with Store(home, user="me") as store:
        done = import_file(store, source, [CODEX])
    seconds, cpu = time.perf_counter() - started, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024 * 1024)
    log = sum(file.stat().st_size for file in home.rglob("log.jsonl"))
    whole = sum(file.stat().st_size for file in home.rglob("*") if file.is_file())
    blobs = [file.stat().st_size for file in home.rglob("blobs/*")]
    size = source.stat().st_size
    return {
        "source_mb": round(size / 1e6, 1),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "peak_mb": round(peak),
        "store_mb": round(whole / 1e6, 1),
        "log_mb": round(log / 1e6, 1),
        "blobs_mb": round(sum(blobs) / 1e6, 1),
        "rest_mb": round((whole - log - sum(blobs)) / 1e6, 1),
        "blobs": len(blobs),
        "share": round(whole / size, 3),
        "events": done.events,
        "messages": done.messages,
        "warnings": len(done.warnings),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=300)
    parser.add_argument("--compactions", type=int, default=40)
    parser.add_argument("--share", type=float, help="share of the replacements; default: each repeats everything")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "rollout.jsonl"
        make(source, given.mb * 1_000_000, given.compactions, given.share)
        print(json.dumps(measure(source, Path(folder) / "home")))


if __name__ == "__main__":
    main()
