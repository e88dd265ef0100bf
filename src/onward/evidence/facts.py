"""Observations in the log: to the data of the `observation` fact, and back from whatever such a fact holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

import msgspec
from msgspec import UNSET

from onward.evidence.observation import Action, Fingerprint, Observation, Subject, Unverifiable
from onward.model import facts as f
from onward.model.event import Event, given

_ACTIONS = frozenset(get_args(Action))


def fact_of(observation: Observation) -> dict[str, Any]:
    """The data of the fact that says this. Its `seq` is the fact's own and not part of it."""
    data = f.Observation(
        subject=str(observation.subject),
        method=observation.method,
        covered=observation.covered or None,
        not_covered=observation.not_covered or None,
        fingerprint=_plain(observation.then),
        call=UNSET if observation.call is None else observation.call,
        action=observation.action,
        cwd=UNSET if observation.subject.cwd is None else observation.subject.cwd,
        call_id=UNSET if observation.call_id is None else observation.call_id,
        to=UNSET if observation.to is None else observation.to,
    )
    return _plain(data)


def of_facts(events: Iterable[Event]) -> list[Observation]:
    """What `observation` facts say, in their order."""
    return [of_fact(event) for event in events]


def of_fact(event: Event) -> Observation:
    """What an `observation` fact says.

    A fingerprint of a kind that is not known here makes an observation that cannot be verified, not an error: other
    applications may write such facts.
    """
    data = msgspec.convert(event.data, f.Observation)
    try:
        then: Fingerprint = msgspec.convert(data.fingerprint, Fingerprint)
    except msgspec.ValidationError as error:
        then = Unverifiable(f"its fingerprint says nothing that can be compared: {error}")
    action = given(data.action)
    return Observation(
        seq=event.seq,
        subject=Subject.parse(data.subject, given(data.cwd)),
        action=action if action in _ACTIONS else "looked",  # type: ignore[arg-type]
        method=data.method,
        then=then,
        covered=_words(data.covered),
        not_covered=_words(data.not_covered),
        call_id=given(data.call_id),
        call=given(data.call),
        to=given(data.to),
    )


def _plain(value: msgspec.Struct) -> dict[str, Any]:
    """As JSON gives it back: lists, no tuples. Raises UnicodeEncodeError for text that no JSON holds."""
    built: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return built


def _words(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
