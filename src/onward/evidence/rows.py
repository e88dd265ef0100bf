"""The observations of a path, and what is left of each, as sequences in little memory. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from msgspec.structs import replace

from onward.evidence.observation import Observation, Unverifiable
from onward.evidence.packed import Packed
from onward.evidence.supersession import KeyOf, Left, Row, superseding

UNKEPT = "what was seen of it has half a character, or a number beyond 64 bits"


class Observed(Sequence[Observation]):
    """Observations in the order of a path, packed in the order in which they came."""

    def __init__(self, packed: Packed[Observation], order: array[int] | None) -> None:
        """Args: order, the places of the observations in `packed`; None = as they are there."""
        self.packed, self.order = packed, order

    def __len__(self) -> int:
        return len(self.packed) if self.order is None else len(self.order)

    @overload
    def __getitem__(self, number: int) -> Observation: ...

    @overload
    def __getitem__(self, number: slice) -> list[Observation]: ...

    def __getitem__(self, number: int | slice) -> Observation | list[Observation]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        return self.packed[number if self.order is None else self.order[number]]

    def __iter__(self) -> Iterator[Observation]:
        return iter(self.packed) if self.order is None else (self.packed[place] for place in self.order)


class Collecting:
    """Takes the observations of a path as they are found, and puts them in the path's order."""

    def __init__(self) -> None:
        self._packed: Packed[Observation] = Packed(Observation)
        self._seqs, self._calls = array("q"), array("q")
        self._noted: set[int] = set()

    def add(self, seen: Observation) -> None:
        """Take one."""
        try:
            self._packed.append(seen)
        except (UnicodeEncodeError, OverflowError):
            self._packed.append(_kept(seen))
        self._seqs.append(seen.seq)
        self._calls.append(-1 if seen.call is None or not seen.derived else seen.call)
        if not seen.derived and seen.call is not None:
            self._noted.add(seen.call)

    def done(self) -> Observed:
        """All of them. What was noted as a tool ran says it better than what its result tells: that is left out."""
        places = range(len(self._seqs))
        order = array("q", sorted(places, key=self._seqs.__getitem__))
        if self._noted:
            order = array("q", (place for place in order if self._calls[place] not in self._noted))
        plain = len(order) == len(places) and all(place == at for at, place in enumerate(order))
        return Observed(self._packed, None if plain else order)


def _kept(seen: Observation) -> Observation:
    """An observation that no log holds as it is: as one of which nothing can be compared."""
    subject = seen.subject
    address = subject.address.encode(errors="replace").decode()
    cwd = None if subject.cwd is None else subject.cwd.encode(errors="replace").decode()
    return Observation(
        seen.seq,
        replace(subject, address=address, cwd=cwd),
        seen.action,
        seen.method.encode(errors="replace").decode(),
        Unverifiable(UNKEPT),
        call=seen.call,
        derived=seen.derived,
    )


class Rows(Sequence[Row]):
    """Observations with what is left of each.

    Attributes:
        observed: the observations.
        lefts: what is left, the last first.
    """

    def __init__(self, observed: Observed, lefts: Packed[Left]) -> None:
        self.observed, self.lefts = observed, lefts

    @classmethod
    def of(cls, observed: Observed, key_of: KeyOf) -> Rows:
        """Work out what is left of each. `key_of`: what identifies a file."""
        return cls(observed, Packed(Left, superseding(observed, key_of)))

    def __len__(self) -> int:
        return len(self.observed)

    @overload
    def __getitem__(self, number: int) -> Row: ...

    @overload
    def __getitem__(self, number: slice) -> list[Row]: ...

    def __getitem__(self, number: int | slice) -> Row | list[Row]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        return Row(self.observed[number], self.lefts[len(self) - 1 - number])

    def __iter__(self) -> Iterator[Row]:
        return map(Row, self.observed, reversed(self.lefts))

    def some(self, numbers: Iterable[int]) -> Iterator[tuple[int, Row]]:
        """Those of some numbers, with them."""
        return ((number, self[number]) for number in numbers)
