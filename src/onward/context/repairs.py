"""Make any list of messages one that providers accept, and say what was changed. Shared by the converters.

What providers ask for: no empty content; every tool call with exactly one result directly after it; call ids that
are used once; arguments that are an object; the system prompt at the head. A list that has all that comes out as it
went in, with no repair.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec import UNSET

from onward.context.media import placeholder, pointer
from onward.context.pairing import Pairing, Place, pair
from onward.model.messages import (
    Block,
    ContentBlock,
    Context,
    File,
    Image,
    Message,
    Other,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    text_of,
)
from onward.model.partial import arguments_of

MISSING = "No result of this call is recorded."
NO_CONTENT = "The tool failed and gave no message."
CONTINUES = "[The conversation before this point is not shown.]"


@dataclass(frozen=True, slots=True)
class Repair:
    """One change that a converter made.

    Attributes:
        kind: stable, for programs.
        index: of the message in the converter's input.
        detail: what was done, in words.
        seq: the message's node, where the caller said which it is.
    """

    kind: str
    index: int
    detail: str
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """What differs between providers.

    Attributes:
        call_id: what a call id must match.
        name: what a tool's name must match; `name_limit` = how long it may be.
        reasoning: whether a reasoning block can be sent back.
        user_first: the first message after the system prompt must be a user's.
        reasoning_may_end: a reply may end with reasoning.
    """

    call_id: re.Pattern[str]
    name: re.Pattern[str]
    name_limit: int
    reasoning: Callable[[Reasoning], bool]
    user_first: bool
    reasoning_may_end: bool


class Log:
    """Collects repairs while a converter works."""

    def __init__(self, nodes: Sequence[int] | None) -> None:
        self._nodes = nodes
        self._repairs: list[Repair] = []

    def add(self, kind: str, index: int, detail: str) -> None:
        seq = self._nodes[index] if self._nodes is not None and index < len(self._nodes) else None
        self._repairs.append(Repair(kind, index, detail, seq))

    def sorted(self) -> list[Repair]:
        """The repairs by message, those of one message in the order in which they were made."""
        return sorted(self._repairs, key=lambda repair: repair.index)


Placed = tuple[int, Message]
"""A message and the index of the input's message that it comes from."""


def mend(messages: Sequence[Message], rules: Rules, log: Log) -> list[Placed]:
    """Repair a message list.

    Returns:
        Messages in which system messages come first, each tool message holds exactly one result and stands after
        the assistant message with its call, nothing is empty, and arguments are objects. Images and files of users
        and of results are left as they are.
    """
    cleaned = [_clean(index, message, rules, log) for index, message in enumerate(messages)]
    pairing = pair(cleaned, rules.call_id)
    return _emit(cleaned, pairing, rules, log)


def _clean(index: int, message: Message, rules: Rules, log: Log) -> Message:
    """Take out of a message what no provider accepts, wherever it stands."""
    blocks: list[Block] = []
    for block in message.blocks:
        kept = _clean_block(index, message.role, block, rules, log)
        if kept is not None:
            blocks.append(kept)
    if not rules.reasoning_may_end:
        blocks = _without_last_thoughts(index, blocks, log)
    if not blocks:
        log.add("empty-message", index, f"a {message.role} message without content was left out")
    return Message(role=message.role, blocks=blocks)


def _without_last_thoughts(index: int, blocks: list[Block], log: Log) -> list[Block]:
    """The blocks without the reasoning that would come last once results have gone to their calls."""
    said = [place for place, block in enumerate(blocks) if not isinstance(block, (Reasoning, ToolResult))]
    end = said[-1] if said else -1
    kept = [block for place, block in enumerate(blocks) if place < end or not isinstance(block, Reasoning)]
    for _ in range(len(blocks) - len(kept)):
        log.add("reasoning-dropped", index, "a reply may not end with reasoning")
    return kept


def _clean_block(index: int, role: str, block: Block, rules: Rules, log: Log) -> Block | None:
    match block:
        case Reasoning() if role != "assistant" or not rules.reasoning(block):
            log.add("reasoning-dropped", index, "reasoning that this provider cannot take back was left out")
            return None
        case Reasoning():
            return block
        case ToolCall() if role != "assistant":
            log.add("misplaced-call", index, f"a tool call in a {role} message was left out: {block.name}")
            return None
        case ToolCall():
            return _clean_call(index, block, rules, log)
        case ToolResult():
            return _clean_result(index, block, log)
        case Text() | Image() | File() | Context() if role == "tool" and _speaks(block):
            log.add("misplaced-block", index, "content of a tool message that is no result became a user message")
            return _clean_content(index, block, log)
        case Image() | File() if role in ("system", "assistant"):
            log.add("media-placeholder", index, f"a {role} message cannot hold {block.__struct_config__.tag}s")
            return Text(placeholder(block))
        case _:
            return _clean_content(index, block, log)


def _speaks(block: Block) -> bool:
    return not isinstance(block, Text) or bool(block.text.strip())


def _clean_content(index: int, block: ContentBlock, log: Log) -> ContentBlock | None:
    match block:
        case Text() if not block.text.strip():
            log.add("empty-text", index, "an empty text was left out")
            return None
        case Context():
            return Text(pointer(block))
        case Other():
            log.add("unknown-block", index, f"a block of the unknown kind {block.kind!r} was left out")
            return None
        case _:
            return block


def _clean_call(index: int, block: ToolCall, rules: Rules, log: Log) -> ToolCall:
    name = block.name
    if not rules.name.fullmatch(name):
        name = re.sub(r"[^A-Za-z0-9_-]", "_", name)[: rules.name_limit] or "unnamed"
        log.add("name-changed", index, f"the tool name {block.name!r} became {name!r}")
    arguments = arguments_of(block.arguments)
    if arguments is None:
        arguments = {"_raw": block.arguments}
        log.add("arguments-wrapped", index, f"the arguments of call {block.call_id!r} are no JSON object")
    # What the provider attached to the call is about the call as it was.
    same = name == block.name and arguments_of(block.arguments) is not None
    return ToolCall(call_id=block.call_id, name=name, arguments=arguments, meta=block.meta if same else UNSET)


def _clean_result(index: int, block: ToolResult, log: Log) -> ToolResult:
    cleaned = (_clean_content(index, part, log) for part in block.content)
    content = [part for part in cleaned if part is not None]
    if block.is_error and not content:
        log.add("empty-error", index, f"the error result of call {block.call_id!r} had no content")
        content = [Text(NO_CONTENT)]
    return ToolResult(call_id=block.call_id, content=content, is_error=block.is_error)


def _emit(messages: Sequence[Message], pairing: Pairing, rules: Rules, log: Log) -> list[Placed]:
    out: list[Placed] = []
    answering: int | None = None  # the last message put out: results of its calls are where they belong
    started = False
    for index, message in enumerate(messages):
        rest: list[Block] = []
        quoted: list[Block] = []  # of results without a call
        for place, block in enumerate(message.blocks):
            match block:
                case ToolResult():
                    quoted += _result((index, place), block, message.role, answering, pairing, log)
                case ToolCall():
                    rest.append(_with_id((index, place), block, pairing, log))
                case _:
                    rest.append(block)
        if rest and message.role == "system" and not started:
            out.append((index, Message(role="system", blocks=rest)))
            rest = []
        elif rest and message.role == "system":
            log.add("system-moved", index, "a system message after the head became a notice in the user's role")
            rest = [Text(f"<system-notice>\n{text_of(rest)}\n</system-notice>")]
        if rest and message.role == "assistant":
            if rules.user_first and not started:
                log.add("user-inserted", index, "the first message must be a user's")
                out.append((index, Message(role="user", blocks=[Text(CONTINUES)])))
            out.append((index, Message(role="assistant", blocks=rest)))
            out += _answers(index, messages, pairing, log)
            started, answering, rest = True, index, []
        if rest or quoted:
            out.append((index, Message(role="user", blocks=[*rest, *quoted])))
            started, answering = True, index
    return out


def _result(
    place: Place, block: ToolResult, role: str, answering: int | None, pairing: Pairing, log: Log
) -> Sequence[Block]:
    """Report what becomes of a result, which is put out with its call; what is quoted where it has none."""
    index = place[0]
    if place in pairing.orphans:
        log.add("orphan-result", index, f"the result of an unknown call {block.call_id!r} became a user message")
        return [Text(f"[Result of a tool call that is not shown: {block.call_id}]"), *block.content]
    if place in pairing.duplicates:
        log.add("duplicate-result", index, f"a second result of call {block.call_id!r} was left out")
    elif role != "tool" or pairing.owner[place][0] != answering:
        log.add("result-moved", index, f"the result of call {block.call_id!r} was moved to its call")
    return []


def _with_id(place: Place, block: ToolCall, pairing: Pairing, log: Log) -> ToolCall:
    new = pairing.ids[place]
    if new == block.call_id:
        return block
    log.add("call-id-renamed", place[0], f"the call id {block.call_id!r} became {new!r}")
    return ToolCall(call_id=new, name=block.name, arguments=block.arguments)


def _answers(index: int, messages: Sequence[Message], pairing: Pairing, log: Log) -> list[Placed]:
    """The results of an assistant message's calls: as they stand in the log, then those that are missing."""
    out: list[Placed] = []
    for result_index, place in pairing.results_of(index):
        block = messages[result_index].blocks[place]
        assert isinstance(block, ToolResult)
        new = pairing.ids[pairing.owner[result_index, place]]
        result = ToolResult(call_id=new, content=block.content, is_error=block.is_error)
        out.append((result_index, Message(role="tool", blocks=[result])))
    for call in pairing.unanswered(index):
        call_id = pairing.ids[call]
        log.add("missing-result", index, f"call {call_id!r} has no result; an error result was put in")
        result = ToolResult(call_id=call_id, content=[Text(MISSING)], is_error=True)
        out.append((index, Message(role="tool", blocks=[result])))
    return out
