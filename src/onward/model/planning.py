"""The rules for the next event of a log: what it may be, given what the log holds.

Both the door and the loader plan an event before `State.apply` takes it in. So what the door accepts opens again, and
what it would refuse is corruption.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from onward.errors import SEE_NODES, AlreadyExists, NotFound, Refused
from onward.model import project
from onward.model.event import MAIN, Envelope, Event
from onward.model.state import Planned, State
from onward.model.surface import Op, resolve
from onward.model.tree import NONE
from onward.model.vocabulary import VOCABULARY, Kind

MAX_KEY = 512
MAX_BRANCH = 200
MAX_INPUT = 500
"""Characters of a queued input's id; the message that consumes it has `input:` and the id as its key."""

_BRANCH_NAME = re.compile(r"[^\x00-\x1f\x7f]+")

Lookup = Callable[[int], Event]
"""Reads an earlier event of the same log, its data as stored."""


def plan(state: State, env: Envelope | Event, data: Any, lookup: Lookup) -> Planned:
    """Check an event against every rule; nothing changes.

    Args:
        state: the fold of the log so far.
        env: the event's envelope, with seq and time.
        data: its data as stored.
        lookup: reads earlier events; used only when one tool result replaces another.

    Raises:
        Refused: or a subclass, naming seq and rule.
    """
    seq = env.seq
    if seq != state.next_seq:
        raise Refused(f"the next seq is {state.next_seq}, not {seq}", seq=seq)
    row = VOCABULARY.get(env.type)
    if row is None:
        if not env.type:
            raise Refused("an event needs a type", seq=seq)
        kind = Kind.SESSION_FACT if env.fact else Kind.NODE
        if env.surface is not UNSET:
            raise Refused(f"{env.type} is not of the vocabulary and cannot be on the surface", seq=seq)
    else:
        kind = row.kind
        if env.fact:
            raise Refused(f"`fact` is for an application's own types, not for {env.type}", seq=seq)
        if env.surface is not UNSET and not row.surface:
            raise Refused(f"{env.type} cannot be on the surface", seq=seq)
    if env.sources:
        _check_sources(env)
    if kind is Kind.NODE:
        planned = _plan_node(state, env, data, lookup)
    else:
        _check_fact(state, env, kind, row is None)
        _check_effects(state, env, data)
        planned = Planned(env, data, kind, MAIN, NONE, None, 0)
    if env.key is not UNSET:
        if not 0 < len(env.key) <= MAX_KEY:
            raise Refused(f"a key has 1 to {MAX_KEY} characters", seq=seq)
        if state.find_key(env.key, kind, planned.branch) is not None:
            raise Refused(f"the key {env.key!r} was used before", seq=seq)
    return planned


def _plan_node(state: State, env: Envelope | Event, data: Any, lookup: Lookup) -> Planned:
    seq = env.seq
    if env.about is not UNSET:
        raise Refused(f"{env.type} is a node; `about` is for facts", seq=seq)
    branch = MAIN if env.branch is UNSET else env.branch
    if branch not in state.branches.leaves:
        raise Refused(f"there is no branch {branch!r}", seq=seq, hint="create it first")
    if env.parent is UNSET:
        parent = state.branches.leaves[branch]
    elif env.parent is None:
        parent = NONE
    elif state.tree.has_node(env.parent):
        parent = env.parent
    else:
        raise Refused(f"the parent {env.parent} is not an earlier node", seq=seq)
    if env.surface is UNSET:
        return Planned(env, data, Kind.NODE, branch, parent, None, 0)
    op: Op = None
    if env.surface != "append":
        tip = state.tip(branch, parent)
        op = resolve(env.surface, seq, tip.surface, state.tree.path(parent), state.surfaces.carries, env.sources)
        if env.type == "tool/result" and isinstance(op, tuple):
            _check_result_swap(env, data, tip.surface, op, lookup)
    return Planned(env, data, Kind.NODE, branch, parent, op, project.count(env.type, data))


def _check_result_swap(
    env: Envelope | Event, data: Any, surface: list[int], op: tuple[int, int], lookup: Lookup
) -> None:
    if op[0] != op[1]:
        return
    old = lookup(op[0])
    if old.type != "tool/result":
        return
    before = {name: value for name, value in old.data.items() if name != "content"}
    after = {name: value for name, value in data.items() if name != "content"}
    if before != after:
        raise Refused("a tool result that replaces a tool result may change its content only", seq=env.seq)


def _check_fact(state: State, env: Envelope | Event, kind: Kind, own_type: bool) -> None:
    seq = env.seq
    if env.branch is not UNSET or env.parent is not UNSET:
        raise Refused(f"{env.type} is a fact; `branch` and `parent` are for nodes", seq=seq)
    if env.about is not UNSET:
        if kind is Kind.SESSION_FACT and not own_type:
            raise Refused(f"{env.type} is a fact of the session; it is about no node", seq=seq)
        if not state.tree.has_node(env.about):
            raise Refused(f"{env.about}, which the fact is about, is not an earlier node", seq=seq, hint=SEE_NODES)
    elif kind is Kind.NODE_FACT and state.tree.last_node != NONE and env.origin is UNSET:
        # An imported one may precede the first node of its source, while the log has native nodes already.
        raise Refused(f"{env.type} is a fact of a node; say which with `about`", seq=seq)


def _check_sources(env: Envelope | Event) -> None:
    for source in env.sources:
        low, high = (source, source) if isinstance(source, int) else source
        if not 0 <= low <= high < env.seq:
            raise Refused(f"the source {source} is not an earlier event", seq=env.seq)


def _check_effects(state: State, env: Envelope | Event, data: Any) -> None:
    seq = env.seq
    if env.type == "writer/opened":
        if data["number"] <= state.last_number:
            raise Refused(f"the writer's number must be greater than {state.last_number}", seq=seq)
    elif env.type == "input/queued":
        if not isinstance(data["id"], str) or not 0 < len(data["id"]) <= MAX_INPUT:
            raise Refused(f"an input's id has 1 to {MAX_INPUT} characters", seq=seq)
    elif env.type in ("branch/create", "branch/move"):
        name, node = data["name"], data.get("node")
        if node is not None and not state.tree.has_node(node):
            raise Refused(f"{node} is not an earlier node", seq=seq, hint=SEE_NODES)
        if env.type == "branch/create":
            check_branch_name(name)
            if name in state.branches.leaves:
                raise AlreadyExists(f"there is a branch {name!r} already", seq=seq)
        elif name not in state.branches.leaves:
            raise NotFound(f"there is no branch {name!r}", seq=seq)
    elif env.type == "branch/delete":
        name = data["name"]
        if name not in state.branches.leaves:
            raise NotFound(f"there is no branch {name!r}", seq=seq)
        if name in (MAIN, state.branches.active):
            raise Refused(f"{name!r} is {'main' if name == MAIN else 'the active branch'} and stays", seq=seq)


def check_branch_name(name: str) -> None:
    """Refuse a branch name that is empty, too long, or has control characters."""
    if not name or len(name) > MAX_BRANCH or not _BRANCH_NAME.fullmatch(name):
        raise Refused(f"a branch name has 1 to {MAX_BRANCH} characters and no control characters, not {name[:40]!r}")
