"""What a program prints: lines of files, matches, names."""

from __future__ import annotations

from dataclasses import dataclass

from onward.evidence.derived.matching import Printed


@dataclass(frozen=True, slots=True)
class Content:
    """Lines of one file are printed.

    Attributes:
        first: the number of the first; None = counted from the end.
        count: how many at most; None = to the end.
        numbers: with numbers before them, as `cat -n` and `nl -ba` print them.
        sections: instead of some lines (`\\:\\:`) an empty one is printed, as `nl` does.
    """

    path: str
    first: int | None = 1
    count: int | None = None
    numbers: bool = False
    sections: bool = False


@dataclass(frozen=True, slots=True)
class Several:
    """Several files are printed, each behind a line `==> name <==`, or one after the other."""

    parts: tuple[Content, ...]
    headed: bool = False


@dataclass(frozen=True, slots=True)
class Search:
    """Matches are printed. `most`: rows at most."""

    how: Printed
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Names:
    """Names are printed.

    Attributes:
        path: the directory that they are in.
        pattern: of the names; None = all.
        long: as `ls -l` prints them.
        prefixed: each begins with the directory's path, as `find` prints them.
        deep, hidden, complete: as in `Listing`.
        most: rows at most.
        marked: names of programs, links and others end in a mark of their kind.
    """

    path: str
    pattern: str | None = None
    long: bool = False
    prefixed: bool = False
    deep: bool = False
    hidden: bool = False
    complete: bool = True
    most: int | None = None
    marked: bool = False


Print = Content | Several | Search | Names
