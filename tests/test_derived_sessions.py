"""Real sessions: what of their readings can be checked; in a checkout made of what they recorded, all of it holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from builders import shared
from checkouts import Checkout
from onward import MemoryBackend, Store
from onward.errors import OnwardError
from onward.evidence.checking import check
from onward.evidence.observation import Observation, Unverifiable
from onward.evidence.scope import Scope
from onward.formats.importing import import_file
from onward.formats.known import format_named
from onward.model.event import Event, given
from onward.model.transcript import text_of

FORMATS = ("claude-code", "codex", "dsh", "pi")
CALLS = (b'"toolCall"', b'"tool_use"', b'_call"')
DSH_CALL = re.compile(rb'"tool/call".*"name": ?"(?:read|read_image|write|edit|bash|glob|grep|ls|web_fetch)"')
"""What a file has in which a tool was called that looks at something; the others have nothing to derive."""

READERS = frozenset({"Read", "read"})


class Recorded(NamedTuple):
    """A session as it was imported."""

    name: str
    home: str
    nodes: list[Event]
    observations: tuple[Observation, ...]


@pytest.fixture(scope="module", params=FORMATS)
def sessions(request: pytest.FixtureRequest) -> Iterator[list[Recorded]]:
    """The sessions of a format."""
    out = []
    folder = shared("sessions", request.param)
    with Store(user="me", backend=MemoryBackend(), sync="never") as store:
        for file in sorted(folder.rglob("*.jsonl")):
            source = file.read_bytes()
            if not any(mark in source for mark in CALLS) and DSH_CALL.search(source) is None:
                continue
            try:
                one = import_file(store, file, [format_named(request.param)])
            except OnwardError:
                continue  # files that are refused have their own tests
            with store.open(one.session, write=False) as session:
                home = given(session.header.cwd) or "/w"
                out.append(Recorded(file.name, home, session.nodes(), session.observations()))
    yield out


def readings(one: Recorded) -> Iterator[tuple[Event, list[Observation]]]:
    """The results of tools that read a file, with recorded text, and what was derived of each."""
    names = {
        block["call_id"]: block["name"]
        for event in one.nodes
        if event.type == "assistant/message"
        for block in event.data["message"].get("blocks", ())
        if block["type"] == "tool_call"
    }
    found: dict[int, list[Observation]] = {}
    for seen in one.observations:
        found.setdefault(seen.seq, []).append(seen)
    for event in one.nodes:
        if event.type == "tool/result" and not event.data.get("is_error") and text_of(event):
            plain = any(seen.action == "looked" and seen.subject.kind == "file" for seen in found.get(event.seq, ()))
            if names.get(event.data["call_id"]) in READERS or plain:
                yield event, found.get(event.seq, [])


def test_nine_of_ten_readings_of_every_format_can_be_checked(sessions: list[Recorded]) -> None:
    all_ = [seen for one in sessions for _, seen in readings(one)]
    good = [
        seen
        for seen in all_
        if any(one.subject.kind == "file" and not isinstance(one.then, Unverifiable) for one in seen)
    ]
    assert len(all_) >= 10
    assert len(good) >= 0.9 * len(all_)


def test_every_observation_rests_on_a_result_and_names_its_source(sessions: list[Recorded]) -> None:
    for one in sessions:
        results = {event.seq for event in one.nodes}
        assert all(seen.seq in results and seen.derived and seen.subject.address for seen in one.observations)
        assert [seen.seq for seen in one.observations] == sorted(seen.seq for seen in one.observations)


def test_in_a_checkout_made_of_what_a_session_recorded_all_that_it_saw_holds(
    sessions: list[Recorded], tmp_path: Path
) -> None:
    fresh = 0
    for number, one in enumerate(sessions):
        root = tmp_path / str(number)
        root.mkdir()
        made = Checkout(one.nodes, one.observations, one.home)
        made.write(root)
        report = check(one.observations, Scope(str(root), one.home, one.home))
        fresh += report.counts["fresh"]
        bad = [found for found in report.findings if found.status in ("stale", "moved", "missing")]
        assert bad == [], (one.name, [(str(found.observation.subject), found.now) for found in bad])
    assert fresh >= 19
