"""Where an interrupted run stands, read from its log. A checkpoint says what the loop was about to do; the log says
what of that has happened since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from onward.model.event import Event
from onward.model.messages import Message
from onward.runtime.acting import Acted
from onward.runtime.graph import Node
from onward.runtime.loop import Loop
from onward.runtime.settling import Settled

if TYPE_CHECKING:
    from onward.reading import View
    from onward.running.recovery import Recovery


@dataclass(frozen=True, slots=True)
class Position:
    """Where a run goes on.

    Attributes:
        node: which node is next.
        document: the control fields of the checkpoint; empty without one.
        asked: the reply that came after the checkpoint, so that the counters do not know of it yet.
        reply: the newest whole reply; None when the run has none.
        results: the results of the calls of that reply, when what they did is not in the state yet.
        begun: what the run was asked for is in the log.
    """

    node: Node
    document: Mapping[str, Any] = field(default_factory=dict)
    asked: bool = False
    reply: Event | None = None
    results: Sequence[Event] = ()
    begun: bool = True

    def enter(self, loop: Loop) -> Node:
        """Bring a loop to this position. Returns the node that it goes on with."""
        if self.reply is not None:
            data = self.reply.data
            message = msgspec.convert(data["message"], Message)
            loop.stands(self.reply.seq, message, data.get("stop"), _calls(self.reply))
        if self.asked:
            loop.state.iteration += 1
        if self.node is Node.REMEMBER:
            return loop.remember(Acted(results=list(self.results)))
        return self.node


def find(session: View, recovery: Recovery) -> Position:
    """Where the run of a recovery stands. Its turn has been closed by now, so every call has a result."""
    nodes = _nodes_of(session, recovery.run)
    saved = recovery.checkpoint
    document = {} if saved is None else saved.document.state
    wanted = Node.INIT if saved is None or saved.document.next_node is None else Node(saved.document.next_node)
    reply = next((event for event in reversed(nodes) if _is_whole(event)), None)
    fresh = reply is not None and (saved is None or reply.seq > saved.about)
    if reply is None or (wanted in _BEFORE_REPLY and not fresh):
        begun = any(event.type == "user/message" for event in nodes)
        return Position(wanted if wanted in _BEFORE_REPLY else Node.REASON, document, reply=reply, begun=begun)
    if wanted is Node.REFINE and not fresh:
        return Position(Node.REFINE, document, reply=reply)
    asked = wanted in _BEFORE_REPLY or wanted is Node.REFINE
    if not _calls(reply):
        return Position(Node.REFINE, document, asked, reply)
    results = [event for event in nodes if event.seq > reply.seq and _is_result(event)]
    return Position(Node.REMEMBER, document, asked, reply, results)


_BEFORE_REPLY = (Node.INIT, Node.PLAN, Node.REASON)
"""Nodes after which the model is asked next."""


def _nodes_of(session: View, run: str | None) -> list[Event]:
    """The nodes of all the turns of a run, on the active path."""
    nodes = session.nodes()
    first = next((event.seq for event in nodes if event.type == "turn/start" and event.data.get("run") == run), 0)
    return [event for event in nodes if event.seq >= first]


def run_of(session: View, seq: int) -> str | None:
    """The run of the turn in which a node of the active path lies."""
    run: str | None = None
    for event in session.nodes():
        if event.seq > seq:
            break
        if event.type == "turn/start":
            run = event.data.get("run")
    return run


def run_options(session: View) -> dict[str, Any] | None:
    """How the last run of a path was begun, as its program said it in `Session.turn`; None where it said nothing."""
    run: str | None = None
    for event in reversed(session.nodes()):
        if event.type != "turn/start":
            continue
        run = run or event.data.get("run")
        if run is None or event.data.get("run") != run:
            return None
        options = event.data.get("options")
        if isinstance(options, dict):
            return options
    return None


def told(recovery: Recovery, settled: Sequence[Settled]) -> str:
    """What a resumption found and did, in a few words for people."""
    said = [f"{len(recovery.closed)} events closed what was open"] if recovery.closed else []
    said += [f"{each.call.name} ({each.call.call_id}): {each.done}" for each in settled]
    return "; ".join(said) or "nothing was open"


def _is_whole(event: Event) -> bool:
    return event.type == "assistant/message" and not event.data.get("interrupted")


def _calls(reply: Event) -> bool:
    return any(block.get("type") == "tool_call" for block in reply.data["message"].get("blocks", ()))


def _is_result(event: Event) -> bool:
    return event.type == "tool/result" and not event.data.get("late")
