"""What a summary must not lose: paths, URLs, numbers, identifiers and errors that matter in a stretch of events. Pure.

A value matters when what people, the model or its calls said has it and two events or more do, when the last steps
say it, or when a failure or a person's demand has it. What only stands in the output of tools (a file's text, a
listing) does not, however often it comes: it can be looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from onward.context.summaries.calls import blocks_of, printed
from onward.context.summaries.files import is_shell
from onward.model.demands import demand_of
from onward.model.event import Event
from onward.model.transcript import text_of

TermKind = Literal["path", "url", "number", "identifier", "error"]

LAST_STEPS = 3
"""Replies of the model whose words all matter: what was being done when the range ended."""

SCANNED = 20_000
"""Characters of one text that are looked at, half of them from its end."""

LONGEST_ERROR = 300
"""Characters of the line that says what went wrong."""

_EXTENSIONS = (
    "py|pyi|js|mjs|cjs|ts|tsx|jsx|json|jsonl|md|mdx|rst|txt|toml|yaml|yml|ini|cfg|conf|lock|html|css|scss|svg|vue|rs|go"
    "|java|kt|c|h|cc|cpp|hpp|cs|rb|php|swift|sh|bash|zsh|ps1|sql|proto|tf|xml|csv|tsv|ipynb|log|env|db|png|jpg|pdf|zip"
)
"""Endings by which a word without a folder is known as a file's name."""

_TERM = re.compile(
    r"""(?P<url>\b[a-z][a-z0-9+.-]{1,15}://[^\s"'<>`)\]}]+)
    | (?P<path>(?<![\w/.@+-])(?:~|\.{1,2}|@[\w.-]+)?/(?:SEGMENT/)*[\w.@+-]+
        | (?<![\w/.@+-])(?:SEGMENT/)+[\w.@+-]*\.[A-Za-z]\w{0,5}(?!\w)
        | (?<![\w/.@+-])(?:SEGMENT/){2,}[\w.@+-]+
        | (?<!\w)[A-Za-z]:\\(?:[\w.@+()-]+\\)*[\w.@+-]+
        | (?<![\w/.@+-])[\w.-]*\w\.(?:EXTENSIONS)(?![\w(]))
    | (?P<identifier>(?<![\w-])(?:--[A-Za-z][\w-]+
        | \#[0-9a-fA-F]{3,8}(?!\w)
        | [0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}
        | (?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}(?!\w)
        | [A-Z][A-Z0-9]*_[A-Z0-9_]+
        | [A-Za-z]\w*_\w+
        | [a-z][a-z0-9]*[A-Z]\w*
        | [A-Z][a-z0-9]+[A-Z]\w*))
    | (?P<number>(?<![\w.,])(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:[.:]\d+)+|\d{3,})%?(?!\w)|(?<![\w.])\d+%)
    """.replace("SEGMENT", r"(?:[\w.@+-]|\([\w-]+\)|\[[\w.-]+\]){1,120}").replace("EXTENSIONS", _EXTENSIONS),
    re.VERBOSE,
)
_WRONG = re.compile(
    r"error|exception|fail|fatal|panic|denied|refused|not found|no such|cannot|invalid|✗|❌", re.IGNORECASE
)


@dataclass(slots=True)
class Term:
    """A value and where it comes.

    Attributes:
        kind, value: as the events have it.
        seqs: of the events that have it, in order.
        late: the last steps say it.
        wrong: a failure has it.
        asked: a person's demand has it.
    """

    kind: TermKind
    value: str
    seqs: list[int]
    late: bool = False
    wrong: bool = False
    asked: bool = False

    @property
    def matters(self) -> bool:
        """See the module."""
        return self.late or self.wrong or self.asked or len(self.seqs) > 1

    @property
    def weight(self) -> float:
        """The greater, the worse it is to lose."""
        return 4.0 * self.asked + 3.0 * self.wrong + 2.0 * self.late + min(len(self.seqs), 10) / 5.0


def notable(events: Sequence[Event]) -> list[Term]:
    """The values that matter, the weightiest first; of equal ones the latest."""
    replies = [at for at, event in enumerate(events) if event.type == "assistant/message"]
    late_from = replies[-LAST_STEPS] if len(replies) >= LAST_STEPS else 0
    found: dict[tuple[TermKind, str], Term] = {}
    outputs: list[tuple[int, str]] = []
    for at, event in enumerate(events):
        asked = demand_of(event) is not None
        for text, said in _texts(event):
            if not said:
                outputs.append((event.seq, _scanned(text)))
                continue
            for kind, value in terms(text):
                term = _noted(found, kind, value, event.seq)
                term.asked |= asked
                term.late |= at >= late_from
        if failed(event) and (line := wrong_line(complaint(event))):
            _noted(found, "error", line, event.seq).wrong = True
            for kind, value in terms(line):
                _noted(found, kind, value, event.seq).wrong = True
    for term in found.values():
        if not term.matters:  # said once: does a tool's output have it too?
            term.seqs += [seq for seq, text in outputs if seq not in term.seqs and term.value in text][-1:]
    out = [term for term in found.values() if term.matters]
    out.sort(key=lambda term: (-term.weight, -max(term.seqs), term.kind, term.value))
    return out


def _noted(found: dict[tuple[TermKind, str], Term], kind: TermKind, value: str, seq: int) -> Term:
    term = found.setdefault((kind, value), Term(kind, value, []))
    if not term.seqs or term.seqs[-1] != seq:
        term.seqs.append(seq)
    return term


def terms(text: str) -> Iterator[tuple[TermKind, str]]:
    """The paths, URLs, numbers and identifiers in a text, in order, also again."""
    for found in _TERM.finditer(_scanned(text)):
        kind: Any = found.lastgroup
        value = found[0].rstrip(".,:;!?")
        if kind is not None and 1 < len(value) <= LONGEST_ERROR and not value.startswith("/dev/"):
            yield kind, value


def failed(event: Event) -> bool:
    """Whether an event says that something went wrong: a tool's result, or a request to the model."""
    data = event.data if isinstance(event.data, dict) else {}
    if event.type == "tool/result":
        return bool(data.get("is_error"))
    return event.type == "assistant/message" and isinstance(data.get("error"), dict)


def _scanned(text: str) -> str:
    return text if len(text) <= SCANNED else f"{text[: SCANNED // 2]}\n{text[-SCANNED // 2 :]}"


def complaint(event: Event) -> str:
    """What an event that failed says of it: what a tool printed, or the error of a request to the model."""
    if event.type == "tool/result":
        return printed(text_of(event))
    message = event.data["error"].get("message")
    return message if isinstance(message, str) else ""


def reads_wrong(line: str) -> bool:
    """Whether a line of output reads as if something went wrong."""
    return _WRONG.search(line) is not None


def wrong_line(text: str) -> str:
    """The line of an output that says what went wrong: the last that reads so, else the last one that says anything."""
    lines = [line.strip() for line in text[-SCANNED:].splitlines() if line.strip()]
    telling = [line for line in lines if reads_wrong(line)]
    return (telling or lines or [""])[-1][:LONGEST_ERROR]


def _texts(event: Event) -> Iterator[tuple[str, bool]]:
    """The texts of an event, each with whether somebody says it: not so the output of tools and what programs add."""
    data = event.data if isinstance(event.data, dict) else {}
    if event.type == "assistant/message":
        for block in blocks_of(event, event.type):
            if block.get("type") == "text":
                yield str(block.get("text", "")), True
            elif block.get("type") == "tool_call":
                yield from _arguments(str(block.get("name", "")), block.get("arguments"))
    elif event.type == "tool/result":
        yield text_of(event), False
    elif event.type in ("user/message", "context/edit"):
        one = demand_of(event)
        yield (text_of(event), False) if one is None else (one.text, True)
    elif event.type in ("compaction/summary", "branch/summary"):
        yield str(data.get("summary", "")), True


def _arguments(name: str, arguments: Any) -> Iterator[tuple[str, bool]]:
    """What a call asks for: its short words. What it writes into a file is the file's text, not said."""
    if isinstance(arguments, str):
        yield arguments, False
    elif isinstance(arguments, dict):
        for value in arguments.values():
            if isinstance(value, str):
                yield value, is_shell(name) or "\n" not in value
            elif isinstance(value, list):
                yield "\n".join(item for item in value if isinstance(item, str)), True
