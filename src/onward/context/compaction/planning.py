"""Ask a policy what to do about a surface, and see what a plan makes of its messages. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from onward.context.compaction.nodes import Node
from onward.context.compaction.plan import Declined, Plan, Policy, Trigger
from onward.context.compaction.threshold import THRESHOLD, Threshold, plan_threshold
from onward.context.compaction.tiered import TIERS, Tiers, plan_tiered
from onward.context.counting import Count
from onward.errors import Usage
from onward.model.messages import Message, Text, ToolResult

NO_MORE = "only a summary would make room, and there is to be none"


def plan(
    policy: Policy,
    surface: Sequence[Node],
    window: int | None,
    *,
    count: Count | int | None = None,
    open_step: int | None = None,
    trigger: Trigger = "threshold",
    summarise: bool = False,
    summaries: bool = True,
    tiers: Tiers = TIERS,
    threshold: Threshold = THRESHOLD,
) -> Plan | Declined:
    """What a policy would do about a surface. The same arguments always give the same plan.

    Args:
        policy: `tiered` or `threshold`.
        surface: its nodes, as `nodes.nodes_of` makes them.
        window: the model's window in tokens; None or 0 = unknown.
        count: tokens that the context takes; None = counted by the policy's own rules.
        open_step: seq of a step that is not over.
        trigger: why it is asked.
        summarise: a person wants a summary, however full the context is.
        summaries: there may be one.
        tiers, threshold: the numbers of the policies.

    Raises:
        Usage: there is no such policy.
    """
    if policy == "tiered":
        return plan_tiered(
            surface,
            window=window,
            count=count,
            open_step=open_step,
            trigger=trigger,
            summarise=summarise,
            summaries=summaries,
            tiers=tiers,
        )
    if policy == "threshold":
        tokens = count.tokens if isinstance(count, Count) else count
        made = plan_threshold(
            surface, window=window, count=tokens, open_step=open_step, trigger=trigger, numbers=threshold
        )
        if summaries or isinstance(made, Declined):
            return made
        return Declined("threshold", trigger, "no-more-summaries", NO_MORE, made.before, made.window)
    raise Usage(f"there is no policy {policy!r} for compaction", hint="the policies are tiered and threshold")


def apply(made: Plan, surface: Sequence[Node], summary: str | Message = "") -> list[Message]:
    """The messages of a surface after a plan has been carried out.

    Args:
        made: a plan for this surface.
        summary: what stands for the summarised part: text, which becomes a message of role `user`, or a message. The
            empty text is no message.
    """
    shorter = {each.seq: each.content for each in made.demotions}
    going: set[int] = set() if made.cut is None else {*made.cut.nodes, *made.cut.standing}
    out: list[Message] = []
    for node in surface:
        if node.seq in shorter:
            out += [_with(message, shorter[node.seq]) for message in node.messages]
        elif node.seq not in going:
            out += node.messages
        elif made.cut is not None and node.seq == made.cut.nodes[0]:
            standing = set(made.cut.standing)
            out += [message for other in surface if other.seq in standing for message in other.messages]
            if isinstance(summary, Message):
                out.append(summary)
            elif summary:
                out.append(Message(role="user", blocks=[Text(summary)]))
    return out


def _with(message: Message, content: Sequence[object]) -> Message:
    blocks = [
        replace(block, content=list(content)) if isinstance(block, ToolResult) else block for block in message.blocks
    ]
    return replace(message, blocks=blocks)
