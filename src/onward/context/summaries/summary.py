"""What a summary is made of, what it is, and why there is none. Shapes only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from onward.errors import Refused
from onward.model.event import Event
from onward.model.messages import Model, Usage

How = Literal["model", "extractive", "extension"]
"""Who wrote a summary: a model, this program by picking from the events, or somebody who handed it in."""

RefusedKind = Literal[
    "too-small",
    "too-large",
    "not-smaller",
    "empty",
    "cut-off",
    "filtered",
    "tool-call",
    "bad-format",
    "bad-sources",
    "timeout",
    "failed",
]
"""Why there is no summary.

too-small: the source is so small, or so much of it has to be kept word for word, that a summary would save nothing.
too-large: what must be kept does not fit the limit, or the source does not fit the summariser's window however it is
cut. not-smaller: the summary takes as many tokens as its source. empty: it says nothing. cut-off: the model ran out of
tokens. filtered: the provider held the reply back. tool-call: the model called a tool instead. bad-format: the reply is
not what was asked for, also when asked again. bad-sources: its claims cite nothing, or events that it does not stand
for. timeout: no reply in time. failed: the request failed; the error's cause says how.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """What a summary is to stand for.

    Attributes:
        events: the surface nodes that it replaces, in surface order, blobs fetched; a former summary among them.
        tokens: what they take, as estimated.
        instructions: what whoever asks for the summary wants to be looked at.
        prefix_of_turn: seq where the turn starts that the range's end lies in; None when it ends with a whole turn.
    """

    events: tuple[Event, ...]
    tokens: int
    instructions: str | None = None
    prefix_of_turn: int | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A line of a summary: its section's heading, what it says, the seqs that it rests on."""

    section: str
    text: str
    sources: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """Something of the source that the summary's own words lack.

    Attributes:
        kind: path, url, number, identifier, error or demand.
        value: what is lost, as the source has it.
        seq: the last event that has it.
        reattached: the summary's text has it all the same, because it was added to its end.
    """

    kind: str
    value: str
    seq: int
    reattached: bool


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary that passed its checks.

    Attributes:
        text: what stands on the surface, whole.
        how: who wrote it.
        claims: its lines, each with what it rests on; none for a text that somebody handed in.
        lost: what the source has and the summary's own words lack.
        read_files, modified_files: paths as the tools' calls name them, sorted; a file that was modified is only there.
        tokens: what `text` takes as a message, as estimated.
        usage: what it took to make, all requests together; None where no model was asked, or none was reported.
        model: the one that answered; None where none was asked.
        notes: what was found wrong with it and put right: claims that were left out, names that nobody had mentioned.
    """

    text: str
    how: How
    claims: tuple[Claim, ...]
    lost: tuple[Lost, ...]
    read_files: tuple[str, ...]
    modified_files: tuple[str, ...]
    tokens: int
    usage: Usage | None = None
    model: Model | None = None
    notes: tuple[str, ...] = ()


class SummaryRefused(Refused):
    """There is no summary, and nothing was changed.

    Attributes:
        kind: see `RefusedKind`.
        usage: what the requests took that came to nothing, as far as it was reported.
    """

    code: ClassVar[str] = "summary-refused"

    def __init__(
        self, message: str, *, kind: RefusedKind, usage: Usage | None = None, hint: str | None = None, **where: Any
    ) -> None:
        super().__init__(message, hint=hint, **where)
        self.kind = kind
        self.usage = usage
