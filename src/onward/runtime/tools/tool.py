"""`Tool`: one thing that a model may ask for. Also what its body is handed, and what it gives back."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from onward.errors import Usage
from onward.model.data import Digest, Effect
from onward.model.digests import ToolShape, tools_digest
from onward.model.messages import ContentBlock
from onward.runtime.tools.schema import Arguments, check_shape
from onward.runtime.tools.seen import Seen

if TYPE_CHECKING:
    from onward.session import Session

NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
NAME_LENGTH = 64
"""What OpenAI and Anthropic accept as a tool's name: letters, digits, `_` and `-`, at most 64."""

EVERYTHING = "*"
"""What a tool touches that may touch anything."""


class Cancelled(threading.Event):
    """Set when a call should stop. A body looks at it now and then, waits on it, or asks to be told."""

    def __init__(self, parent: Cancelled | None = None) -> None:
        super().__init__()
        self._guard = threading.Lock()
        self._then: list[Callable[[], None]] = []
        if parent is not None:
            parent.on_set(self.set)

    def set(self) -> None:
        """Ask to stop. Once is enough."""
        with self._guard:
            super().set()
            then, self._then = self._then, []
        for call in then:
            call()

    def on_set(self, call: Callable[[], None]) -> None:
        """Have `call()` called when it is set, in the thread that sets it; at once if it is set already."""
        with self._guard:
            if not self.is_set():
                self._then.append(call)
                return
        call()

    def forget(self, call: Callable[[], None]) -> None:
        """Take back `on_set`."""
        with self._guard:
            self._then = [other for other in self._then if other != call]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool's body is handed besides its arguments.

    Attributes:
        cwd: the session's own directory: what relative paths are relative to.
        session: the session, for tools that log facts or store blobs; None where there is none (tests, dry runs).
        call_id: the id that the model gave the call.
        advertised: seq of the assistant message that asked for it.
        call: seq of its tool/call event; None before that is logged.
        key: the idempotency key, the same in every attempt.
        attempt: counts from 1.
        cancelled: set when the body should stop.
        seen: what this session's tools have read and written of files.
        evidence: what `Tool.prepare` gave before the call was logged.
    """

    cwd: Path
    session: Session | None = None
    call_id: str = ""
    advertised: int | None = None
    call: int | None = None
    key: str | None = None
    attempt: int = 1
    cancelled: Cancelled = field(default_factory=Cancelled)
    seen: Seen = field(default_factory=Seen)
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a body gives back.

    Attributes:
        content: what the model sees: a text, or content blocks.
        is_error: whether the model is told that it failed.
        code: a stable word for what went wrong, for programs.
        data: for programs, never for the model: what was looked at (`looked`) and what was changed (`changed`).
    """

    content: str | Sequence[ContentBlock]
    is_error: bool = False
    code: str | None = None
    data: dict[str, Any] | None = None


Verdict = Literal["applied", "not-applied", "unknown"]
"""Whether a call has happened, as far as a probe can tell."""


@dataclass(frozen=True, slots=True)
class Probed:
    """What a probe found out about a call whose outcome is unknown, and on what evidence."""

    outcome: Verdict
    evidence: str


Body = Callable[[dict[str, Any], ToolContext], Any]
"""Takes the arguments and the context; gives a text, content blocks, a `ToolOutput` or JSON; may be async."""

Prepare = Callable[[dict[str, Any], ToolContext], dict[str, Any]]
Touches = Callable[[dict[str, Any], ToolContext], frozenset[str]]
Probe = Callable[[dict[str, Any], Mapping[str, Any], ToolContext], Probed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One thing that a model may ask for.

    Attributes:
        name: letters, digits, `_` and `-`, at most 64.
        description: for the model: what it does and when to use it.
        parameters: JSON schema of the arguments, an object.
        body: does it. Sync bodies run in a thread of their own, async ones as a task.
        effect: what a call does to the world. `read` may be run again at will, `idempotent` again with the same key,
            `verifiable` has a probe that tells whether it happened, `irreversible` is never run again by itself.
        version: change it when the tool does something else under the same schema.
        timeout: seconds; None = no limit.
        check: turns the arguments as the model gave them into those for the body. Raises `BadArguments`.
            Default: a look at the top level of `parameters`.
        prepare: looks at the world before the call is logged; what it gives is logged with the call, and the probe
            gets it. Raises ToolFailed where the call cannot be done; then the body is not run.
        probe: tells from the arguments and what `prepare` gave whether the call happened.
        effect_of: the effect of one call, for tools where it depends on the arguments.
        touches: what a call reads or changes, as words; two calls that touch the same do not run at once, unless
            both only read.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    body: Body
    effect: Effect = "irreversible"
    version: str = "1"
    timeout: float | None = None
    check: Callable[[Any], dict[str, Any]] | None = None
    prepare: Prepare | None = None
    probe: Probe | None = None
    effect_of: Callable[[dict[str, Any]], Effect] | None = None
    touches: Touches | None = None

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > NAME_LENGTH or not NAME_CHARS.issuperset(self.name):
            raise Usage(
                f"{self.name!r} is no name for a tool",
                hint=f"letters, digits, _ and -, at most {NAME_LENGTH}, is what providers accept",
            )
        if self.effect == "verifiable" and self.probe is None:
            raise Usage(f"the tool {self.name} is verifiable, but has no probe")
        if self.parameters.get("type") != "object":
            raise Usage(f"the parameters of the tool {self.name} are no schema of an object")

    def arguments(self, given: Any) -> dict[str, Any]:
        """Check what a model gave as arguments. Raises `BadArguments` with all that is wrong."""
        return check_shape(self.parameters, given) if self.check is None else self.check(given)

    def digest(self) -> Digest:
        """Of what the tool is to a model and to recovery: see `digest_of`."""
        return digest_of([self])


def digest_of(tools: Iterable[Tool]) -> Digest:
    """A digest of tools: of the name, version, effect, schema and description of each; see `digests.tools_digest`.

    Descriptions count: they are instructions to the model, and a call that it made under other instructions is one
    that a person should look at. The order of tools, of keys, and Unicode's ways to write one text do not count.
    """
    shapes = (ToolShape(each.name, each.version, each.effect, each.parameters, each.description) for each in tools)
    return tools_digest(shapes)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect = "irreversible",
    version: str = "1",
    timeout: float | None = None,
    prepare: Prepare | None = None,
    probe: Probe | None = None,
    touches: Touches | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect = "irreversible",
    version: str = "1",
    timeout: float | None = None,
    prepare: Prepare | None = None,
    probe: Probe | None = None,
    touches: Touches | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function: `@tool(effect="read")`, or `@tool` alone for one with irreversible effects.

    The schema follows from the annotations (`Annotated[str, msgspec.Meta(description="…", max_length=80)]` says more),
    the description from the docstring, the parameters' descriptions from its `Args:` section. A parameter annotated
    `ToolContext` is handed the context and is not part of the schema.

    Raises:
        TypeError: a parameter has no annotation, is variadic, or of a type that has no JSON schema.
    """

    def make(function: Callable[..., Any]) -> Tool:
        arguments = Arguments.of(function, ToolContext)

        def body(given: dict[str, Any], context: ToolContext) -> Any:
            return function(**arguments.convert(given), **arguments.context(context))

        async def async_body(given: dict[str, Any], context: ToolContext) -> Any:
            return await function(**arguments.convert(given), **arguments.context(context))

        return Tool(
            name=function.__name__ if name is None else name,
            description=arguments.description if description is None else description,
            parameters=arguments.schema,
            body=async_body if inspect.iscoroutinefunction(function) else body,
            effect=effect,
            version=version,
            timeout=timeout,
            check=arguments.check,
            prepare=prepare,
            probe=probe,
            touches=touches,
        )

    return make if function is None else make(function)
