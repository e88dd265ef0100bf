"""Hooks: what an application wants to be asked or told at fixed points of a session's life and of its turns.

A hook can refuse (`Veto`), put a message before the model (`Inject`), or just look. Here hooks are kept and called, and
their failures contained; what a veto or a message means at a point is up to the one who calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, get_args

import msgspec

from onward.errors import Refused, Usage
from onward.model.event import Draft, Event
from onward.model.lossless import guard
from onward.model.messages import Message

Point = Literal[
    "session-created",
    "turn-starting",
    "step-starting",
    "tool-starting",
    "step-ended",
    "compaction-starting",
    "compaction-ended",
    "turn-stopping",
    "session-ended",
]
"""Where hooks are called, in the order in which a session comes by."""

POINTS: tuple[Point, ...] = get_args(Point)

NO_VETO: frozenset[Point] = frozenset({"step-ended", "compaction-ended", "session-ended"})
"""Points where it has happened already, so that a veto is a failure of the hook."""

NO_INJECT: frozenset[Point] = frozenset({"compaction-starting", "compaction-ended", "session-ended"})
"""Points behind which no model is called, or that may lie outside of turns."""

OF_THE_STORE: frozenset[Point] = frozenset({"session-created", "session-ended"})
"""Points that verbs without an `await` come by, whoever calls them, so that their hooks are plain functions."""

FAILED = "hook.failed"
"""The application fact that keeps a failure: {point, hook, error: {message, code}, required?}."""

WHERE_AWAITED = "give a plain function, or run the turn with `AsyncSession.turn`"


class Logging(Protocol):
    """What `Moment.session` is at the least: a session that takes events."""

    @property
    def id(self) -> str:
        """The session's id."""
        ...

    def append_batch(self, drafts: Sequence[Draft], /) -> list[Event]:
        """Append events as one batch."""
        ...


@dataclass(frozen=True, slots=True)
class Moment:
    """What a hook is told.

    Attributes:
        point: where this is.
        session: the session; a hook may read it and append to it.
        turn: seq of the open turn's turn/start, or None outside of turns.
        step: the number of the step in its turn, or None outside of steps.
        call: the tool call that is about to start, at `tool-starting`.
        reason: why it stops or ended, at `turn-stopping` and `session-ended`.
        data: more that the caller has to tell: at `compaction-starting` the plan, at `compaction-ended` what was done.
    """

    point: Point
    session: Any
    turn: int | None = None
    step: int | None = None
    call: Any = None
    reason: str | None = None
    data: Any = None


@dataclass(frozen=True, slots=True)
class Veto:
    """A hook's answer: not so. At `turn-stopping`: the turn goes on."""

    reason: str


@dataclass(frozen=True, slots=True)
class Inject:
    """A hook's answer: put this before the model with its next request.

    Attributes:
        message: text, or a whole message; text becomes a message of role `user`.
        kind: the application's own word for it.
        display: whether front ends should show it to people; the log has it either way.
        data: what the application wants to find again; the model does not see it.
    """

    message: str | Message
    kind: str
    display: bool = True
    data: Any = None


@dataclass(frozen=True, slots=True)
class Supply:
    """A hook's answer at `compaction-starting`: this is the summary."""

    summary: str


Answer = Veto | Inject | Supply | None
Hook = Callable[[Moment], Answer | Awaitable[Answer]]
H = TypeVar("H", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class HookFailure:
    """A hook that raised, or gave what is no answer.

    Attributes:
        hook: the hook's name, with its module.
        error: what it raised.
        required: the failure counts as a veto.
        logged: the session has a `hook.failed` of it.
    """

    point: Point
    hook: str
    error: Exception
    required: bool
    logged: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the hooks of a point said together: the first veto, every message, every failure, in the order called; and
    the first summary."""

    veto: Veto | None = None
    injected: tuple[Inject, ...] = ()
    failures: tuple[HookFailure, ...] = ()
    supplied: Supply | None = None


_NOTHING = Outcome()


@dataclass(frozen=True, slots=True)
class _Registered:
    hook: Hook
    required: bool

    @property
    def name(self) -> str:
        """`module.qualified_name`, or what there is of it."""
        of = self.hook if hasattr(self.hook, "__qualname__") else type(self.hook)
        return f"{of.__module__}.{of.__qualname__}"

    @property
    def is_async(self) -> bool:
        """Whether it is known to give something to be awaited."""
        return inspect.iscoroutinefunction(self.hook) or inspect.iscoroutinefunction(type(self.hook).__call__)


class Hooks:
    """Hooks by point. Those of `parent` (a store's, for a session's) are called first, then these, as registered.

    ```python
    @session.hooks.on("tool-starting")
    def no_force(moment):
        if "--force" in str(moment.call.arguments):
            return Veto("not with --force")
    ```

    All hooks of a point are called, also after a veto; the first veto counts. A hook that raises an `Exception` is
    contained: it is logged as `hook.failed` and the run goes on; with `required=True` it counts as a veto. Errors of
    the session's own storage, and what is no `Exception` (KeyboardInterrupt), go through.
    """

    def __init__(self, parent: Hooks | None = None) -> None:
        self._parent = parent
        self._own: dict[Point, tuple[_Registered, ...]] = {}

    def on(self, point: Point, *, required: bool = False) -> Callable[[H], H]:
        """A decorator that registers a hook, a plain or an `async` function of a `Moment`, and gives it back.

        Args:
            required: a failure of the hook counts as a veto (not at points where nothing can be refused).

        Raises:
            Usage: no such point; or, from the decorator, an `async` function at a point that is never awaited.
        """
        if point not in POINTS:
            raise Usage(f"there is no point {point!r} for hooks", hint=f"the points are {', '.join(POINTS)}")
        if required and point in NO_VETO:
            raise Usage(f"a hook cannot be required at {point}: it has happened, and nothing can be refused")

        def register(hook: H) -> H:
            registered = _Registered(hook, required)
            if point in OF_THE_STORE and registered.is_async:
                raise Usage(
                    f"{registered.name} is async, and hooks of {point} are not awaited", hint="give a plain function"
                )
            self._own[point] = (*self._own.get(point, ()), registered)
            return hook

        return register

    def check_plain(self) -> None:
        """See that a turn without `await` can call every hook; called before such a turn begins.

        Raises:
            Usage: naming the `async` hook and its point.
        """
        if self._parent is not None:
            self._parent.check_plain()
        for point, hooks in self._own.items():
            for registered in hooks:
                if registered.is_async:
                    raise Usage(
                        f"the hook {registered.name} of {point} is async, and this turn is not", hint=WHERE_AWAITED
                    )

    def call(self, moment: Moment) -> Outcome:
        """Call the hooks of `moment.point`, one after the other.

        Raises:
            StorageFailed, LeaseLost: a failure could not be logged because the session cannot be written.
        """
        if not self.has(moment.point):
            return _NOTHING
        answers = _Answers(moment)
        for registered in self._at(moment.point):
            try:
                answers.take(_plain(registered.hook(moment)))
            except Exception as error:  # noqa: BLE001 - whatever a hook raises is contained
                answers.fail(registered, error, _log(moment, registered, error))
        return answers.outcome()

    async def call_async(self, moment: Moment) -> Outcome:
        """As `call`, awaiting what hooks give; a failure is logged in a worker thread, for that may sync."""
        from asyncio import to_thread

        answers = _Answers(moment)
        for registered in self._at(moment.point):
            try:
                answer = registered.hook(moment)
                answers.take(await answer if inspect.isawaitable(answer) else answer)
            except Exception as error:  # noqa: BLE001 - whatever a hook raises is contained
                answers.fail(registered, error, await to_thread(_log, moment, registered, error))
        return answers.outcome()

    def has(self, point: Point) -> bool:
        """Whether a hook is registered for a point."""
        return point in self._own or (self._parent is not None and self._parent.has(point))

    def _at(self, point: Point) -> Iterator[_Registered]:
        if self._parent is not None:
            yield from self._parent._at(point)
        yield from self._own.get(point, ())


class _Answers:
    """The answers of the hooks of one moment, as they come."""

    def __init__(self, moment: Moment) -> None:
        self._point = moment.point
        self._veto: Veto | None = None
        self._injected: list[Inject] = []
        self._failures: list[HookFailure] = []
        self._supplied: Supply | None = None

    def take(self, answer: object) -> None:
        """Take what a hook gave. Raises Usage if it is no answer at this point, NotLossless if no log can hold it."""
        if isinstance(answer, Supply) and not isinstance(answer.summary, str):
            raise Usage(f"Supply takes the summary as text, not {type(answer.summary).__name__}")
        if isinstance(answer, (Veto, Inject, Supply)):
            guard(msgspec.to_builtins(answer))
        match answer:
            case None:
                return
            case Veto() if self._point not in NO_VETO:
                self._veto = self._veto or answer
            case Inject() if self._point not in NO_INJECT:
                self._injected.append(answer)
            case Supply() if self._point == "compaction-starting":
                self._supplied = self._supplied or answer
            case Veto() | Inject() | Supply():
                raise Usage(f"{type(answer).__name__} is no answer at {self._point}")
            case _:
                raise Usage(f"a hook gives None, Veto or Inject, not {type(answer).__name__}")

    def fail(self, registered: _Registered, error: Exception, logged: bool) -> None:
        """Note that a hook failed."""
        self._failures.append(HookFailure(self._point, registered.name, error, registered.required, logged))
        if registered.required:
            self._veto = self._veto or Veto(f"the hook {registered.name}, which is required, failed: {_text(error)}")

    def outcome(self) -> Outcome:
        """What they said together."""
        return Outcome(self._veto, tuple(self._injected), tuple(self._failures), self._supplied)


def _plain(answer: object) -> object:
    """What a hook gave, in a turn that awaits nothing."""
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise Usage("the hook gave something to be awaited, and this turn is not", hint=WHERE_AWAITED)
    return answer


def _log(moment: Moment, registered: _Registered, error: Exception) -> bool:
    """Keep a failure in the session; whether it took it. A session whose storage fails raises."""
    failure = {"message": _text(error), "code": type(error).__name__}
    data: dict[str, Any] = {"point": moment.point, "hook": registered.name, "error": failure}
    if registered.required:
        data["required"] = True
    session: Logging = moment.session
    try:
        session.append_batch([Draft(type=FAILED, data=data, fact=True, ignorable=True)])
    except Refused:
        return False  # a session that was opened to read, say; the failure is in the outcome all the same
    return True


def _text(error: Exception) -> str:
    """What an error says, as text that a log can hold."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - an error whose own text raises
        text = ""
    return text.encode("utf-8", "backslashreplace").decode() or type(error).__name__
