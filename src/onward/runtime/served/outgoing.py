"""A neutral request in pydantic-ai's words.

What the model sees: the history as `context.repairs` mends it for the provider, so that the provider accepts it; each
repair is one that `onward context --as` lists as well. Reasoning goes back only to the provider that it came from,
with its signature. A tool's pictures are sent where `to_openai` can only name them. Prompt cache: a history that grows
becomes a request that grows. Known limits: an error result looks like any other to a provider without a flag for it
(OpenAI), so its text has to say it; blocks that no provider has a word for (`other`) are left out.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic_ai import messages as ai
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from onward.context import anthropic, openai
from onward.context.media import IMAGE_TYPES, Fetch, document, inline, placeholder, web_url
from onward.context.model import ModelRequest, ToolSpec
from onward.context.repairs import Log, Placed, Repair, Rules, mend
from onward.model.messages import Block, ContentBlock, File, Image, Message, Reasoning, Text, ToolCall, ToolResult

Dialect = Literal["openai-chat", "openai-responses", "anthropic"]
"""Whose rules a history is mended by: OpenAI's for what speaks its APIs, the stricter Anthropic's for all others."""

_WHEN = datetime.fromtimestamp(0, UTC)
"""The time of all parts: nobody sends it, and a request should depend on nothing but what is asked."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What pydantic-ai is given, and what had to be changed for it."""

    messages: list[ai.ModelMessage]
    parameters: ModelRequestParameters
    repairs: list[Repair]


def outgoing(request: ModelRequest, provider: str, dialect: Dialect) -> Outgoing:
    """Convert a request.

    Args:
        request: as the caller has it.
        provider: the name under which pydantic-ai knows the provider, for what goes back only to its source.
        dialect: see `Dialect`.
    """
    log = Log(None)
    placed = mend(request.messages, _rules(provider, dialect), log)
    messages = _Messages(provider, dialect, request.fetch, log).convert(placed)
    parameters = ModelRequestParameters(function_tools=[_tool(spec) for spec in request.tools])
    return Outgoing(messages, parameters, log.sorted())


def signature_of(block: Reasoning, provider: str) -> str | None:
    """The signature or sealed form of a reasoning block that this provider gave, if it gave one."""
    meta = block.meta if isinstance(block.meta, dict) else {}
    if "provider" not in meta:
        return anthropic.signature_of(block) if provider == "anthropic" else None
    sealed = meta.get("signature", meta.get("encrypted_content")) if meta["provider"] == provider else None
    return sealed if isinstance(sealed, str) and sealed else None


def _rules(provider: str, dialect: Dialect) -> Rules:
    rules = anthropic.RULES if dialect == "anthropic" else openai.RULES
    return replace(rules, reasoning=lambda block: _goes_back(block, provider, dialect))


def _goes_back(block: Reasoning, provider: str, dialect: Dialect) -> bool:
    """Whether the provider takes this block back: it signed it, or sent it in a field of its own beside the text.

    What came as tags in the text (`content`) would go back as text, and the model would learn to write it.
    """
    if signature_of(block, provider) is not None:
        return True
    field = _of(block, provider).get("id")
    named = isinstance(field, str) and field not in ("", "content")
    return dialect == "openai-chat" and named and bool(block.text.strip())


def _of(block: Text | Reasoning | ToolCall, provider: str) -> dict[str, Any]:
    """What this provider attached to a block when it sent it."""
    meta = block.meta if isinstance(block.meta, dict) else {}
    return meta if meta.get("provider") == provider else {}


def _tool(spec: ToolSpec) -> ToolDefinition:
    return ToolDefinition(
        name=spec.name,
        description=spec.description or None,
        parameters_json_schema=spec.parameters,
        # Strict schemas would change what the model is told of a tool; a schema goes out as it was declared.
        strict=False,
    )


class _Messages:
    """Turns mended messages into pydantic-ai's, neighbours on one side of the talk in one message."""

    def __init__(self, provider: str, dialect: Dialect, fetch: Fetch | None, log: Log) -> None:
        self._provider = provider
        self._dialect = dialect
        self._fetch = fetch
        self._log = log
        self._names: dict[str, str] = {}

    def convert(self, placed: Sequence[Placed]) -> list[ai.ModelMessage]:
        """The messages; `placed` are `mend`'s."""
        out: list[ai.ModelMessage] = []
        asked: list[ai.ModelRequestPart] = []
        said: list[ai.ModelResponsePart] = []
        for index, message in placed:
            if message.role == "assistant":
                if asked:
                    out.append(ai.ModelRequest(parts=asked))
                    asked = []
                # Anthropic's rules have roles alternate; with OpenAI's each reply stays the message that it was.
                if said and self._dialect != "anthropic":
                    out.append(self._response(said))
                    said = []
                said += [self._said(block) for block in message.blocks]
            else:
                if said:
                    out.append(self._response(said))
                    said = []
                # A tool's pictures come after the results, as a user's: they are to stand before what the user says.
                if asked and self._dialect == "openai-chat" and message.role == "user":
                    out.append(ai.ModelRequest(parts=asked))
                    asked = []
                asked += self._asked(index, message)
        if asked:
            out.append(ai.ModelRequest(parts=asked))
        if said:
            out.append(self._response(self._trimmed(said, placed)))
        return out

    def _trimmed(self, said: list[ai.ModelResponsePart], placed: Sequence[Placed]) -> list[ai.ModelResponsePart]:
        """A list that ends with a reply has the model go on with it; Anthropic wants no whitespace at its end."""
        last = said[-1]
        if self._dialect == "anthropic" and isinstance(last, ai.TextPart) and last.content != last.content.rstrip():
            self._log.add("whitespace-trimmed", placed[-1][0], "the last reply may not end in whitespace")
            return [*said[:-1], replace(last, content=last.content.rstrip())]
        return said

    def _response(self, parts: list[ai.ModelResponsePart]) -> ai.ModelResponse:
        ours = any(part.provider_name == self._provider for part in parts)
        return ai.ModelResponse(parts=parts, provider_name=self._provider if ours else None, timestamp=_WHEN)

    def _said(self, block: Block) -> ai.ModelResponsePart:
        match block:
            case Text():
                return ai.TextPart(block.text, **self._attached(block))
            case Reasoning():
                signature = signature_of(block, self._provider)
                meta = block.meta if isinstance(block.meta, dict) else {}
                attached = {**self._attached(block), "provider_name": self._provider}
                if meta.get("redacted") is True:
                    attached["id"] = "redacted_thinking"
                return ai.ThinkingPart(block.text, signature=signature, **attached)
            case ToolCall():
                self._names[block.call_id] = block.name
                return ai.ToolCallPart(block.name, block.arguments, block.call_id, **self._attached(block))
            case _:
                raise AssertionError(f"repairing leaves no {type(block).__name__} in a reply")

    def _attached(self, block: Text | Reasoning | ToolCall) -> dict[str, Any]:
        ours = _of(block, self._provider)
        given = {"id": ours.get("id"), "provider_details": ours.get("details")}
        attached = {name: value for name, value in given.items() if value}
        return {**attached, "provider_name": self._provider} if attached else {}

    def _asked(self, index: int, message: Message) -> list[ai.ModelRequestPart]:
        if message.role == "tool":
            return [self._result(index, block) for block in message.blocks if isinstance(block, ToolResult)]
        texts = [block.text for block in message.blocks if isinstance(block, Text)]
        if message.role == "system":
            return [ai.SystemPromptPart("\n".join(texts), timestamp=_WHEN)]
        if len(texts) == len(message.blocks):
            return [ai.UserPromptPart("\n".join(texts), timestamp=_WHEN)]
        content: list[ai.UserContent] = [self._content(index, block) for block in message.blocks]
        return [ai.UserPromptPart(content, timestamp=_WHEN)]

    def _result(self, index: int, result: ToolResult) -> ai.ModelRequestPart:
        content: list[str | ai.MultiModalContent] = [self._content(index, block) for block in result.content]
        media = [part for part in content if not isinstance(part, str)]
        text = "\n".join(part for part in content if isinstance(part, str))
        # Several texts in a list would reach OpenAI as a JSON array; they are one text, as in `to_openai`.
        whole: Any = text if text and not media else [*([text] if text else []), *media]
        failed = result.is_error and self._dialect == "anthropic"
        return ai.ToolReturnPart(
            tool_name=self._names.get(result.call_id, "unnamed"),
            content=whole,
            tool_call_id=result.call_id,
            timestamp=_WHEN,
            outcome="failed" if failed else "success",
        )

    def _content(self, index: int, block: Block | ContentBlock) -> str | ai.MultiModalContent:
        part: str | ai.MultiModalContent | None
        match block:
            case Text():
                return block.text
            case Image():
                part = self._image(block)
            case File():
                part = self._file(block)
            case _:
                raise AssertionError(f"repairing leaves no {type(block).__name__} here")
        if part is not None:
            return part
        self._log.add("media-placeholder", index, "an image or file whose bytes are not at hand became a line of text")
        return placeholder(block)

    def _image(self, block: Image) -> ai.MultiModalContent | None:
        url = web_url(block)
        if url is not None:
            return ai.ImageUrl(url=url)
        return self._bytes(block, IMAGE_TYPES)

    def _file(self, block: File) -> str | ai.MultiModalContent | None:
        text = document(block, self._fetch)
        if text is not None:
            return text
        url = web_url(block)
        if url is not None and block.media_type == "application/pdf":
            return ai.DocumentUrl(url=url, media_type="application/pdf")
        return self._bytes(block, frozenset({"application/pdf"}))

    def _bytes(self, block: Image | File, types: frozenset[str]) -> ai.BinaryContent | None:
        if not isinstance(block.url, str) and block.media_type not in types:
            return None  # nobody would take it: not worth the reading
        data = inline(block, self._fetch)
        if data is None or data[0] not in types:
            return None
        try:
            return ai.BinaryContent(b64decode(data[1], validate=True), media_type=data[0])
        except BadBase64:
            return None
