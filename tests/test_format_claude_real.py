"""Real Claude Code sessions, counted straight from their raw lines and compared with what became of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from builders import shared
from claude_sessions import count, real_files
from onward import Store
from onward.formats.claude_code import CLAUDE_CODE
from onward.formats.exporting import export
from onward.formats.family import companions
from onward.formats.importing import import_file
from onward.formats.known import FORMATS
from onward.session import Session


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store(tmp_path / "home", user="me") as made:
        yield made


def counted(session: Session) -> Counter[str]:
    """The same figures as `count`, from a session's events."""
    found: Counter[str] = Counter()
    for event in session.events():
        if event.origin is UNSET:
            continue
        found["lines"] += 1
        data = event.data
        if event.type == "user/message" and "attachment" not in data.get("meta", {}):
            found["prompts" if data["source"] == "user" else "injected"] += 1
        elif event.type == "compaction/summary":
            found["injected"] += 1
        elif event.type == "tool/result":
            found["results"] += 1
        elif event.type == "custom/message" and data["kind"] == "tool-results":
            found["results"] += sum(block["type"] == "tool_result" for block in data["message"]["blocks"])
        elif event.type == "assistant/message":
            found["replies"] += 1
            kinds = Counter(block["type"] for block in data["message"]["blocks"])
            found["calls"] += kinds["tool_call"]
            found["thoughts"] += kinds["reasoning"]
    totals = session.view().usage().totals
    found["input_tokens"] = totals.input
    found["output_tokens"] = totals.output
    found["cache_read_input_tokens"] = totals.cache_read
    found["cache_creation_input_tokens"] = totals.cache_write
    return found


def test_nothing_of_any_real_file_is_lost_or_doubled_and_the_export_is_the_same_bytes(store: Store):
    for path in real_files():
        raw = path.read_bytes()
        one = import_file(store, path, FORMATS)
        with store.open(one.session, write=False) as session:
            assert +counted(session) == +count(raw), path.name
            origins = [event.origin for event in session.events() if event.origin is not UNSET]
            assert origins == [i for i, line in enumerate(raw.split(b"\n"), 1) if line.strip()], path.name
            exported = export(session, session.view(), CLAUDE_CODE)
            assert (exported.data, exported.loss) == (raw, []), path.name


def test_old_sidechains_are_branches_and_no_part_of_the_conversation(store: Store):
    one = import_file(store, shared("sessions", "claude-code", "5c0375b4.jsonl"), FORMATS)
    with store.open(one.session, write=False) as session:
        view = session.view()
        assert len(list(view.path)) == len(view.surface) == 31
        leaves = dict(session.state.branches.leaves)
        main = leaves.pop("main")
        assert main == 52
        assert len(leaves) == 2
        for leaf in leaves.values():
            assert not set(session.view(node=leaf).path) & set(view.path)


def test_a_sub_agents_file_comes_with_its_session_and_is_a_session_of_its_own(store: Store):
    id_ = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"
    path = shared("sessions", "claude-code", "subagent", f"{id_}.jsonl")
    parent = import_file(store, path, FORMATS)
    (file,) = companions(path, parent.format, FORMATS)
    child = import_file(store, file, FORMATS)
    assert companions(file, child.format, FORMATS) == []
    with store.open(child.session, write=False) as session:
        header = session.header
        assert header.spawned is not UNSET
        assert (header.spawned.session, header.spawned.seq, header.spawned.depth) == (parent.session, 2, 1)
        assert header.lineage == {
            "gitBranch": "main",
            "id": "agent-a0ad4f44468bdf20d",
            "agent_id": "a0ad4f44468bdf20d",
            "spawned_by": id_,
            "meta": {"agentType": "general-purpose", "spawnDepth": 1},
        }
        assert len(session.view().surface) == 4
    with store.open(parent.session, write=False) as session:
        assert session.header.spawned is UNSET
