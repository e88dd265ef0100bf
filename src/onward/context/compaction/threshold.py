"""The policy `threshold`, by the rules of the Pi coding agent 1.6.0: summarise all but the newest 20,000 tokens. Pure.

One thing is done otherwise than there, see decision 27: whether the kept part begins with a turn is looked at before
the cut moves back over what has no message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onward.context.compaction.characters import estimated, in_context
from onward.context.compaction.cutting import cut_at, stands, unparted
from onward.context.compaction.nodes import Node
from onward.context.compaction.plan import Cut, Declined, Plan, Trigger, Why
from onward.model.messages import ToolCall


@dataclass(frozen=True, slots=True)
class Threshold:
    """The numbers of the policy, in tokens.

    Attributes:
        reserve: what has to stay free of the window.
        keep_recent: how much of the end is kept at least.
        room: what a summary is expected to take at most, for the estimate; at most a quarter of what it stands for.
    """

    reserve: int = 16_384
    keep_recent: int = 20_000
    room: int = 4_000


THRESHOLD = Threshold()

_READS, _CHANGES = ("read",), ("write", "edit")


def plan_threshold(
    nodes: Sequence[Node],
    *,
    window: int | None,
    count: int | None = None,
    changed: int | None = None,
    open_step: int | None = None,
    trigger: Trigger = "threshold",
    numbers: Threshold = THRESHOLD,
) -> Plan | Declined:
    """What to do about a surface.

    Args:
        nodes: the surface; nodes of its path that project to nothing may be among them, as entries of Pi's are.
        window: the model's window in tokens; it matters to the trigger `threshold` alone.
        count: tokens of the context; None = counted as Pi does.
        changed: seq of the last change of the surface that was no append, for that count; None = by the nodes.
        open_step: seq of the step that is not over; its calls stay with their results.
        trigger: any but `threshold` compacts whatever the size.
    """
    tokens = in_context(nodes, changed) if count is None else count

    def no(why: Why, reason: str) -> Declined:
        return Declined("threshold", trigger, why, reason, tokens, window or None)

    if not nodes:
        return no("empty", "there is nothing on the surface")
    if trigger == "threshold":
        if not window or window <= 0:
            return no("unknown-window", "the model's window is not known, so nobody can say how full it is")
        if tokens <= window - numbers.reserve:
            said = f"the context takes {tokens:,} tokens; {window - numbers.reserve:,} are the threshold"
            return no("below", said)
    if nodes[-1].event.type == "compaction/summary":
        return no("compacted", "the newest thing is a summary already")
    former = next((i for i in range(len(nodes) - 1, -1, -1) if nodes[i].event.type == "compaction/summary"), None)
    sizes = [sum(map(estimated, node.messages)) for node in nodes]
    cut = _cut(nodes, sizes, former, numbers.keep_recent, open_step)
    if cut is None:
        return no("too-small", f"everything is within the newest {numbers.keep_recent:,} tokens")
    gone = set(cut.nodes)
    room = min(numbers.room, cut.tokens // 4)
    staying = sum(size for node, size in zip(nodes, sizes, strict=True) if node.seq not in gone)
    scale = tokens / max(1, sum(sizes))  # what is counted besides the messages is shared out among them
    reads, changes = _files([node for node in nodes if node.seq in gone])
    return Plan(
        policy="threshold",
        trigger=trigger,
        tier="summary",
        window=window or None,
        before=tokens,
        after=round(scale * staying) + room,
        cache_cost=round(scale * sum(sizes[len(nodes) - len(cut.kept) :])) + room,
        cut=cut,
        read_files=reads,
        modified_files=changes,
    )


def _cut(
    nodes: Sequence[Node], sizes: Sequence[int], former: int | None, keep: int, open_step: int | None
) -> Cut | None:
    start = 0 if former is None else former + 1
    found = _found(nodes, sizes, start, keep, open_step)
    turns = (i for i in range(found, start - 1, -1) if i < len(nodes) and _role(nodes[i]) == "user")
    turn = next(turns, None)
    split = turn is not None and turn != found
    at = found
    while at > start and not _weigh(nodes[at - 1]) and nodes[at - 1].event.type != "compaction/summary":
        at -= 1
    first = 0 if former is None else former
    return cut_at(nodes, at, sizes, start=first, turn=turn, split=split, weigh=_weigh)


def _found(nodes: Sequence[Node], sizes: Sequence[int], start: int, keep: int, open_step: int | None) -> int:
    """The first kept node, before the cut moves back over what has no message."""
    cuts = [i for i in range(start, len(nodes)) if _role(nodes[i]) in ("user", "assistant")]
    if not cuts:
        return start
    at, over, total = cuts[0], False, 0
    for i in range(len(nodes) - 1, start - 1, -1):
        total += sizes[i]
        if sizes[i] and total >= keep:
            over = True
            at = next((cut for cut in cuts if cut >= i), cuts[-1])
            break
    behind = nodes[at + 1 :]
    if over and behind and all(_omits(node) or not _weigh(node) for node in behind) and any(map(_omits, behind)):
        return at + 1
    whole = unparted(nodes)
    open_at = len(nodes)
    if open_step is not None:
        open_at = next((i for i, node in enumerate(nodes) if node.seq > open_step), len(nodes))
    while at > start and (not whole[at] or at > open_at):
        at -= 1
    return at


def _role(node: Node) -> str | None:
    """`user` for what begins a turn, `assistant` for a reply; None for what no cut may come before."""
    if node.event.type == "compaction/summary" or stands(node) or not _weigh(node):
        return None
    if not node.messages:
        return "assistant"
    role = node.messages[0].role
    return role if role in ("user", "assistant") else None


def _weigh(node: Node) -> int:
    """How many messages a node counts as: a reply that says nothing is one."""
    return len(node.messages) or (1 if node.event.type == "assistant/message" else 0)


def _omits(node: Node) -> bool:
    return node.event.type == "context/edit" and not node.messages


def _files(nodes: Sequence[Node]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Paths that the calls in a range read and no more, and those that they changed, sorted."""
    read: set[str] = set()
    changed: set[str] = set()
    for node in nodes:
        if node.event.type == "compaction/summary" and node.data.get("how") != "extension":
            read.update(path for path in node.data.get("read_files", ()) if isinstance(path, str))
            changed.update(path for path in node.data.get("modified_files", ()) if isinstance(path, str))
        for message in node.messages:
            for block in message.blocks:
                if not isinstance(block, ToolCall) or not isinstance(block.arguments, dict):
                    continue
                path = block.arguments.get("path")
                if isinstance(path, str):
                    (read if block.name in _READS else changed if block.name in _CHANGES else set()).add(path)
    return tuple(sorted(read - changed)), tuple(sorted(changed))
