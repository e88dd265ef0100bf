"""What an observation is: a source that was looked at or changed, how, what of it, and what was known of it then.

Data only. Whoever runs tools makes observations, whoever reads imported sessions derives them from recorded results,
and `status` compares them with what is there now. `facts` turns them into the log's `observation` fact and back.
"""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

SubjectKind = Literal["file", "directory", "url", "query", "command", "other"]
"""What kind of source it is. `other` is an application's own."""

KINDS: frozenset[str] = frozenset(get_args(SubjectKind))

Action = Literal["looked", "searched", "listed", "changed", "created", "deleted", "moved"]
"""What the call did with its subject. Of the first three the subject is as it was before."""

CHANGES: frozenset[str] = frozenset({"changed", "created", "deleted", "moved"})
"""Actions that leave the subject other than it was."""


class Subject(Struct, frozen=True, omit_defaults=True):
    """A source.

    Attributes:
        kind: what kind of source.
        address: as it was recorded: a path (relative, absolute or with `~`), a URL, a query, a command.
        cwd: the directory that a relative path was meant from, as recorded; None = the session's own.
    """

    kind: SubjectKind
    address: str
    cwd: str | None = None

    def __str__(self) -> str:
        return self.address if self.kind == "other" else f"{self.kind}:{self.address}"

    @classmethod
    def parse(cls, text: str, cwd: str | None = None) -> Subject:
        """From `file:src/a.py`, `url:https://…`; what begins with no kind is of kind `other`."""
        kind, colon, address = text.partition(":")
        if colon and kind in KINDS and kind != "other":
            return cls(kind, address, cwd)  # type: ignore[arg-type]
        return cls("other", text, cwd)


# --- what was known of it then ----------------------------------------------------------------------------------


class Whole(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="whole"):
    """All of a file was known.

    Attributes:
        sha256: of its bytes, hex.
        git_blob: git's id of a blob with its bytes, hex: 40 digits, or 64 in a repository of sha256.
        size: in bytes.
        text: what was in it, with its last line end if it had one. Tools lose the CR of CRLF and a byte order mark on
            the way, so a text alone says nothing of these; a digest does.
        mtime: nanoseconds since 1970, where it was seen. A hint, never a proof.
    """

    sha256: str | None = None
    git_blob: str | None = None
    size: int | None = None
    text: str | None = None
    mtime: int | None = None


class Excerpt(Struct, frozen=True, omit_defaults=True):
    """Lines that follow each other in a file.

    Attributes:
        text: the lines, joined by LF, without an end after the last. One line at least; it may be empty.
        first: the number of the first, from 1; None = it was not said where they are.
        cut: which of them (from 0) are known by their beginning only.
        pieces: which of them are known by a piece only, from somewhere in the line.
        snippet: the text begins and ends anywhere in a line: what an edit put there.
    """

    text: str
    first: int | None = None
    cut: tuple[int, ...] = ()
    pieces: tuple[int, ...] = ()
    snippet: bool = False


class Lines(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="lines"):
    """Parts of a file were known.

    Attributes:
        excerpts: the parts, in the file's order where that is known.
        ends: the last one ends where the file ends; whether in a line end is not known.
        blank: of that end: blank lines may follow, which the tool that showed it takes off.
        of: how many lines the file had.
        replaced: the pieces of text that an edit took out or replaced, in its order. One that none of the excerpts
            has was not in the file any more.
        again: what was replaced may be elsewhere in the file, too: only one of its places was.
        sha256, size: of the whole file's bytes, where the tool said them although it showed only a part.
    """

    excerpts: tuple[Excerpt, ...] = ()
    ends: bool = False
    of: int | None = None
    replaced: tuple[str, ...] = ()
    sha256: str | None = None
    size: int | None = None
    blank: bool = False
    again: bool = False


class Match(Struct, frozen=True, omit_defaults=True):
    """A line that a search found.

    Attributes:
        path: of its file, relative to the subject's cwd or absolute, as recorded.
        line: its number, from 1.
        text: the line; None = only the file's name was said.
        piece: the text is only a piece of the line.
    """

    path: str
    line: int | None = None
    text: str | None = None
    piece: bool = False


class Matches(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="matches"):
    """What a search found.

    Attributes:
        matches: in the order in which they were shown; empty = nothing was found.
        pattern: what was searched for, as given; None = not recorded.
        complete: nothing that was found was left out.
        within: the directory or file that was searched; None = the subject's cwd.
    """

    matches: tuple[Match, ...] = ()
    pattern: str | None = None
    complete: bool = False
    within: str | None = None


class Listing(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="listing"):
    """What was in a directory.

    Attributes:
        names: relative to the directory; a slash at the end marks a directory where the tool does that.
        complete: everything that fits is in it.
        pattern: only names that match this glob; None = all.
        deep: directories below are in it too.
        hidden: names that begin with a dot are in it too.
    """

    names: tuple[str, ...] = ()
    complete: bool = False
    pattern: str | None = None
    deep: bool = False
    hidden: bool = False


class Absent(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="absent"):
    """It was not there (any more)."""


class Response(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="response"):
    """What a server answered: HTTP's status, validators as it sent them, and its body's digest and bytes."""

    status: int | None = None
    etag: str | None = None
    last_modified: str | None = None
    sha256: str | None = None
    size: int | None = None


class Unverifiable(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="unverifiable"):
    """Nothing is known that could be compared; `reason` says why. `sha256` is of what the tool gave back."""

    reason: str
    sha256: str | None = None


Fingerprint = Whole | Lines | Matches | Listing | Absent | Response | Unverifiable


class Observation(Struct, frozen=True, omit_defaults=True):
    """A source that was looked at or changed.

    Attributes:
        seq: the event that it rests on: the tool's result, or the `observation` fact.
        subject: what it was.
        action: what was done with it.
        method: how, in words for people: "Read, lines 1 to 200".
        then: what was known of it afterwards.
        covered, not_covered: in words; empty = what `then` says (`words.covered`, `words.not_covered`).
        call_id: of the call behind it.
        call: seq of the call's `tool/call` where there is one.
        to: where it was moved to (of `moved` only).
        derived: it was read out of a recorded result, not noted when the tool ran.
    """

    seq: int
    subject: Subject
    action: Action
    method: str
    then: Fingerprint
    covered: str = ""
    not_covered: str = ""
    call_id: str | None = None
    call: int | None = None
    to: str | None = None
    derived: bool = False

    @property
    def changes(self) -> bool:
        """Whether the subject is another one afterwards."""
        return self.action in CHANGES
