"""Calls: checked and prepared before they are logged, then run, at once where that is safe, timed out and stopped.

What comes out is always an `Outcome`; only a session that can no longer be written (StorageFailed, LeaseLost) and what
stops a program go through. Nothing here writes to the log: who runs the turn does.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import msgspec

from onward.errors import BadArguments, LeaseLost, NotLossless, OnwardError, OutcomeUnknown, StorageFailed, ToolFailed
from onward.model.data import Digest, Effect
from onward.model.lossless import guard, paired
from onward.model.messages import ContentBlock, Text
from onward.model.repair import OUTCOME_UNKNOWN
from onward.runtime.tools.tool import Body, Cancelled, Probed, Tool, ToolContext, ToolOutput, Verdict
from onward.runtime.tools.toolset import Toolset

UNKNOWN_TOOL = "TOOL_UNKNOWN"
BAD_ARGUMENTS = "TOOL_BAD_ARGUMENTS"
FAILED = "TOOL_FAILED"
TIMED_OUT = "TOOL_TIMED_OUT"
CANCELLED = "TOOL_CANCELLED"

GRACE = 5.0
"""Seconds that a body gets to stop after it was asked to, before it is left to itself."""

AT_ONCE = 8
"""Bodies that run at the same time."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended, ready for `Step.finish`.

    Attributes:
        started: whether the body ran at all. A call that was refused needs no tool/call.
        data: as in `ToolOutput`: for the result's `meta`.
    """

    content: tuple[ContentBlock, ...]
    is_error: bool = False
    code: str | None = None
    data: dict[str, Any] | None = None
    started: bool = True

    @property
    def text(self) -> str:
        """The text of the content."""
        return "\n".join(block.text for block in self.content if isinstance(block, Text))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that may run: log its tool/call with `effect`, `digest` and (in `meta.evidence`) `evidence` first."""

    tool: Tool
    arguments: dict[str, Any]
    context: ToolContext
    effect: Effect
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> Digest:
        """Of the tool's definition."""
        return self.tool.digest()

    def within(self, context: ToolContext) -> Prepared:
        """The same call in another context: once its tool/call is logged, `call` and `key` are known."""
        return replace(self, context=context)


def check(tools: Toolset, name: str, arguments: Any) -> tuple[Tool, dict[str, Any]] | Outcome:
    """Find a call's tool and check its arguments; an outcome, for the model, where that fails."""
    tool = tools.get(name)
    if tool is None:
        known = ", ".join(tools.names) or "none"
        return _refused(UNKNOWN_TOOL, f"There is no tool {name!r}. Nothing was run. The tools are: {known}.")
    try:
        return tool, tool.arguments(deepcopy(arguments))
    except BadArguments as error:
        return _refused(BAD_ARGUMENTS, error.message)
    except BaseException as error:  # noqa: BLE001 - a tool is anybody's code; its failure is the model's to see
        unless_interrupted(error)
        return _refused(BAD_ARGUMENTS, f"The arguments could not be checked: {_told(error)}. Nothing was run.")


def effect_of(tool: Tool, arguments: dict[str, Any]) -> Effect:
    """The effect of one call. Where the tool cannot tell it, it counts as irreversible."""
    if tool.effect_of is None:
        return tool.effect
    try:
        effect = tool.effect_of(deepcopy(arguments))
    except BaseException as error:  # noqa: BLE001 - see `check`
        unless_interrupted(error)  # whatever else went wrong, nothing is claimed of the call
        return "irreversible"
    return effect if effect in get_args(Effect) else "irreversible"


def prepare(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Prepared | Outcome:
    """Have a tool look at the world before its call is logged. An outcome where it says that it cannot be done."""
    effect = effect_of(tool, arguments)
    if tool.prepare is None:
        return Prepared(tool, arguments, context, effect)
    try:
        evidence = guard(tool.prepare(deepcopy(arguments), context))
    except ToolFailed as error:
        return _refused(FAILED, error.message)
    except (StorageFailed, LeaseLost):
        raise
    except BaseException as error:  # noqa: BLE001 - see `check`
        unless_interrupted(error)
        return _refused(FAILED, f"{tool.name} could not be prepared: {_told(error)}. Nothing was run.")
    return Prepared(tool, arguments, context, effect, evidence)


async def perform(call: Prepared, *, late: Callable[[Outcome], None] | None = None) -> Outcome:
    """Run a call's body, whose tool/call is on disk by now.

    Args:
        late: told, in the body's own thread, how a body ended that was left to itself after it did not stop in time.

    Raises:
        StorageFailed, LeaseLost: the session cannot be written any more.
        asyncio.CancelledError: this task was cancelled; the body was asked to stop and got `GRACE` seconds.
    """
    stop = Cancelled(call.context.cancelled)
    context = replace(call.context, cancelled=stop, evidence=call.evidence)
    loop, moved = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):  # a body that ends after the loop was closed has nobody to wake
            loop.call_soon_threadsafe(moved.set)

    stop.on_set(wake)
    work = _start(call.tool.body, call.arguments, context)
    work.add_done_callback(lambda _: wake())
    why = CANCELLED
    try:
        try:
            async with asyncio.timeout(call.tool.timeout):
                await moved.wait()
        except TimeoutError:
            why = TIMED_OUT
        if not work.done():
            await _stop(work, stop, moved)
    except asyncio.CancelledError:
        if not work.done():
            await _stop(work, stop, moved)
        raise
    finally:
        call.context.cancelled.forget(stop.set)
        if not work.done():
            work.add_done_callback(lambda done: _too_late(call, done, late))
        elif not work.cancelled():
            work.exception()  # seen, also where this task was cancelled and nobody else will look
    if not work.done():
        return _stopped(call, why, running=True)
    return _stopped(call, why, running=False) if work.cancelled() else _ended(call, work)


async def perform_all(
    calls: Sequence[Prepared],
    *,
    done: Callable[[int, Outcome], Awaitable[None] | None] | None = None,
    late: Callable[[int, Outcome], None] | None = None,
    at_once: int = AT_ONCE,
) -> list[Outcome]:
    """Run the calls of one round at once.

    Args:
        done: told of each call as it ends, with its index, so that it can be logged without waiting for the others.
        late: see `perform`.
        at_once: bodies that run at the same time; the others wait.

    Returns:
        The outcomes in the order of the calls.
    """
    gate = asyncio.Semaphore(at_once)

    async def one(index: int, call: Prepared) -> Outcome:
        async with gate:
            outcome = await perform(call, late=None if late is None else lambda outcome: late(index, outcome))
        if done is not None:
            told = done(index, outcome)
            if inspect.isawaitable(told):
                await told
        return outcome

    tasks = [asyncio.ensure_future(one(index, call)) for index, call in enumerate(calls)]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def probe(tool: Tool, arguments: dict[str, Any], evidence: dict[str, Any], context: ToolContext) -> Probed:
    """Ask a tool whether a call whose outcome is unknown has happened. A probe that fails has found out nothing."""
    if tool.probe is None:
        return Probed("unknown", f"{tool.name} has no probe")
    try:
        found = tool.probe(deepcopy(arguments), evidence, context)
        if found.outcome not in get_args(Verdict):
            raise ValueError(f"{found.outcome!r} is no outcome")
        return replace(found, evidence=paired(found.evidence))
    except (StorageFailed, LeaseLost):
        raise
    except BaseException as error:  # noqa: BLE001 - see `check`
        unless_interrupted(error)
        return Probed("unknown", f"the probe failed: {_told(error)}")


# --- a body -----------------------------------------------------------------------------------------------------


Work = asyncio.Task[Any] | Future[Any]
"""A body that runs: as a task, or in a thread. Both are asked in the same words how it went."""


class _Quit(Exception):
    """A body raised, as its cause, what would end a thread or an event loop, and is only how this call ended."""


def unless_interrupted(error: BaseException) -> None:
    """Let a Ctrl-C through; it comes to the main thread alone. All else that a tool's code raises is its own."""
    if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
        raise error


async def _awaited(body: Callable[..., Awaitable[Any]], arguments: dict[str, Any], context: ToolContext) -> Any:
    try:
        return await body(arguments, context)
    except (SystemExit, KeyboardInterrupt) as error:  # which asyncio lets through a task to whoever runs the loop
        unless_interrupted(error)
        raise _Quit from error


def _start(body: Body, arguments: dict[str, Any], context: ToolContext) -> Work:
    if inspect.iscoroutinefunction(body):
        return asyncio.get_running_loop().create_task(_awaited(body, arguments, context))
    future: Future[Any] = Future()
    inherited = contextvars.copy_context()

    def run() -> None:
        try:
            result = inherited.run(body, arguments, context)
        except (SystemExit, KeyboardInterrupt) as error:
            quit_ = _Quit()
            quit_.__cause__ = error
            future.set_exception(quit_)
        except BaseException as error:  # noqa: BLE001 - it is raised where the outcome is asked for
            future.set_exception(error)
        else:
            future.set_result(result)

    # A thread of its own, which does not keep the program from ending as a pool's would.
    threading.Thread(target=run, name=f"onward-tool-{context.call_id}", daemon=True).start()
    return future


async def _stop(work: Work, stop: Cancelled, moved: asyncio.Event) -> None:
    """Ask a body to stop, and wait for it for a while. A task is cancelled; a thread has to look for itself."""
    moved.clear()
    stop.set()
    if isinstance(work, asyncio.Task):
        work.cancel()
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE):
            while not work.done():
                await moved.wait()
                moved.clear()


# --- outcomes ---------------------------------------------------------------------------------------------------


def _refused(code: str, text: str) -> Outcome:
    return Outcome((Text(paired(text)),), is_error=True, code=code, started=False)


def _told(error: BaseException) -> str:
    """What an exception says; those of a tool may say nothing, half a character, or fail at it."""
    if isinstance(error, OnwardError):
        return paired(error.message)
    if isinstance(error, _Quit) and error.__cause__ is not None:
        error = error.__cause__
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - see `check`
        said = ""
    return paired(f"{type(error).__name__}: {said}".removesuffix(": "))


def _unless_read(call: Prepared, code: str) -> str:
    return code if call.effect == "read" else OUTCOME_UNKNOWN


def _stopped(call: Prepared, why: str, *, running: bool) -> Outcome:
    cause = "was cancelled while it ran" if why == CANCELLED else f"did not end within {call.tool.timeout:g} seconds"
    text = f"{call.tool.name} {cause}."
    if running:
        text += " It was asked to stop and did not; it may still be running."
    if call.effect != "read":
        text += " Its outcome is unknown: it may have had all, some or none of its effects. Look before trying again."
    return Outcome((Text(text),), is_error=True, code=_unless_read(call, why))


def _ended(call: Prepared, work: Work) -> Outcome:
    """The outcome of a body that has ended, however it did."""
    error = work.exception()
    match error:
        case None:
            return _output(call, work.result())
        case StorageFailed() | LeaseLost():
            raise error
        case OutcomeUnknown():
            return Outcome((Text(_told(error)),), is_error=True, code=OUTCOME_UNKNOWN)
        case ToolFailed():
            return Outcome((Text(_told(error)),), is_error=True, code=FAILED)
        case asyncio.CancelledError():
            return _stopped(call, CANCELLED, running=False)
        case _:
            return Outcome((Text(f"{call.tool.name} failed: {_told(error)}"),), is_error=True, code=FAILED)


def _output(call: Prepared, given: Any) -> Outcome:
    """What a body gave back, in the form in which it can be stored."""
    output = given if isinstance(given, ToolOutput) else ToolOutput(given)
    try:
        msgspec.convert({"is_error": output.is_error, "code": output.code, "data": output.data}, _Labels, strict=True)
        guard(output.code)
        content = _blocks(output.content)
        data = None if output.data is None else guard(output.data)
        guard(msgspec.to_builtins(content))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError, NotLossless) as error:
        text = f"{call.tool.name} ran, but what it gave back cannot be stored ({_told(error)})."
        if call.effect != "read":
            text += " What it was to do has probably happened. Look before trying again."
        return Outcome((Text(text),), is_error=True, code=_unless_read(call, FAILED))
    if data is not None:
        call.context.seen.take(data)
    return Outcome(tuple(content), output.is_error, output.code, data)


class _Labels(msgspec.Struct):
    """What there is in a `ToolOutput` besides its content, for a check of its types."""

    is_error: bool
    code: str | None
    data: dict[str, Any] | None


def _blocks(given: Any) -> list[ContentBlock]:
    if isinstance(given, str):
        return [Text(paired(given))]
    if given is None:
        return [Text("Done.")]
    if isinstance(given, (list, tuple)) and given and all(isinstance(item, msgspec.Struct) for item in given):
        # Structs do not check what they are made from.
        return msgspec.convert(msgspec.to_builtins(given), list[ContentBlock])
    return [Text(as_json(given))]


def as_json(given: Any) -> str:
    """Data as a model reads it. Not msgspec's JSON: that has null for NaN, which says that nothing is there."""
    plain = msgspec.to_builtins(given, str_keys=True)
    return paired(json.dumps(plain, ensure_ascii=False, separators=(",", ":")))


def _too_late(call: Prepared, work: Work, late: Callable[[Outcome], None] | None) -> None:
    if late is None or work.cancelled() or not isinstance(work.exception(), Exception | None):
        return
    with suppress(StorageFailed, LeaseLost):  # the session's writer has met that itself
        late(_ended(call, work))
