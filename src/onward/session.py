"""`Session`: the verbs on one session. It is also a `View` of its active branch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from onward.log.door import Drafts, Log
from onward.log.follow import follow
from onward.model.event import APPEND, MAIN, Draft, Event, Source, Surface, SurfaceOp, given
from onward.model.messages import Message, Model, Text, Usage, spoken
from onward.model.state import State
from onward.model.tree import NONE
from onward.reading import View
from onward.running.attended import Attended
from onward.running.branching import Branching
from onward.running.compactable import Compactable
from onward.running.durable import Durable
from onward.selecting import select

if TYPE_CHECKING:
    from onward.evidence.observation import Action, Fingerprint
    from onward.explain.explanation import Explanation
    from onward.holding.answer import Holding
    from onward.keeper import Keeper
    from onward.running.hooks import Hooks
    from onward.running.turn import Turn


class Session(Attended, Branching, Compactable, Durable):
    """One session, opened to read or to write.

    Use it as a context manager. A handle is thread-safe; it does not survive `os.fork()`.
    """

    def __init__(self, store: Keeper, log: Log) -> None:
        super().__init__(log, log.state, MAIN, NONE, store.title_elsewhere)
        self._store = store

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session {self.id} {'w' if self.writable else 'r'} next_seq={self.state.next_seq}>"

    @property
    def state(self) -> State:
        """The fold of the whole log."""
        return self.log.state

    @property
    def branch(self) -> str:
        """The active branch: the one last written or moved."""
        return self.log.state.branches.active

    def _at(self) -> int:
        return self.log.state.leaf()

    @property
    def writable(self) -> bool:
        """Whether this handle may append."""
        return self.log.writer is not None

    @property
    def next_seq(self) -> int:
        """The seq that the next event gets."""
        return self.log.state.next_seq

    def steady(self) -> int:
        """The latest time that the store's clock has shown, Unix milliseconds."""
        return self._store.steady()

    def _shared_hooks(self) -> Hooks:
        return self._store.hooks

    # --- other points of view -----------------------------------------------------------------------------------

    def view(self, branch: str | None = None, *, at: int | None = None, node: int | None = None) -> View:
        """Look at another branch, at the log as it was after seq `at`, or at the path to `node`.

        Raises:
            NotFound: no such branch, seq or node.
        """
        return select(self.log, branch=branch, at=at, node=node, elsewhere=self._elsewhere)

    def at(self, seq: int) -> View:
        """The log as it was after seq `seq`."""
        return self.view(at=seq)

    def node(self, seq: int) -> View:
        """The path that ends at a node, with the node facts of that path."""
        return self.view(node=seq)

    def why(
        self,
        text: str | None = None,
        *,
        event: int | None = None,
        call: str | None = None,
        budget: int | None = None,
        check: bool | None = None,
        branch: str | None = None,
        at: int | None = None,
        node: int | None = None,
    ) -> Explanation:
        """Why the model does not know something: whether it is in the log, and if so where it went.

        It reads the log line by line, in bounded memory: seconds for a million events.

        Args:
            text: what the model should know; case, layout and quoting need not fit. `#12` is the event 12.
            event: the seq of an event, instead of a text.
            call: the id of a tool call, instead of a text.
            budget: tokens that the context may take; None = those of the newest recorded request, if it had a limit.
            check: whether to look at files, if the source of the text has changed; None = unless the log is long.
            branch, at, node: the path to look at, as for `view`.

        Raises:
            NotFound: no such branch, seq or node.
            Usage: not exactly one of text, event and call, or an empty text.
            Corrupt: a line of the log is damaged.
        """
        from onward.explain.why import why

        point = [
            str(word)
            for name, value in (("--branch", branch), ("--at", at), ("--node", node))
            if value is not None
            for word in (name, value)
        ]
        view = self.view(branch, at=at, node=node)
        return why(view, text, self._store, event=event, call=call, budget=budget, point=point, check=check)

    def check(
        self,
        root: str | PathLike[str] | None = None,
        *,
        branch: str | None = None,
        at: int | None = None,
        node: int | None = None,
        **how: Any,
    ) -> Holding:
        """Whether what was looked at is still so, as `View.check`, which says what else may be given.

        Args:
            root: the directory that stands for the session's own now; None = the session's own.
            branch, at, node: the path to look at, as for `view`.

        Raises:
            NotFound: no such branch, seq or node, or no directory `root`.
        """
        if branch is None and at is None and node is None:
            return super().check(root, **how)
        return self.view(branch, at=at, node=node).check(root, **how)

    def refresh(self) -> None:
        """For a handle opened to read: see what was appended since."""
        self.log.refresh()

    def follow(self, start: int | None = None, *, poll: float = 0.05, stop: Any = None) -> Iterator[Event]:
        """Every own event from `start` (default: from now) on, once and in order, as it is appended.

        Args:
            poll: seconds between two looks at the file.
            stop: a `threading.Event` or a function; the iteration ends when it is set or true.
        """
        first = self.next_seq if start is None else start
        for line in follow(self.log.chain.own, first, poll=poll, stop=stop):
            yield self.log.chain.own_event(line)

    # --- appending ----------------------------------------------------------------------------------------------

    def append(self, *drafts: Draft, expect_leaf: int | None = None) -> list[Event]:
        """Append events as one batch: all or none.

        Args:
            expect_leaf: the seq of the leaf that the first draft's branch must have.

        Raises:
            Refused: a rule is broken (also LeafMoved, Conflict, NotLossless, ReadOnly); nothing was changed.
            StorageFailed, LeaseLost: the write failed; nothing was acknowledged.
        """
        return self.append_batch(drafts, expect_leaf=expect_leaf)

    def append_batch(self, drafts: Drafts, *, expect_leaf: int | None = None) -> list[Event]:
        """Like `append`, for a sequence or for a function from the first seq to the drafts."""
        events = self.log.append(drafts, expect_leaf=expect_leaf)
        for event in events:
            if event.type == "turn/end":
                self._store.note_turn_end(self.log)
        return events

    def sync(self) -> None:
        """A durability point: on return, everything accepted so far is on disk."""
        self.log.sync()

    def system(self, text: str, **fields: Any) -> Event:
        """Append a system message. `fields` are those of `Draft` (branch, parent, key, …)."""
        return self._one("system/message", {"message": spoken("system", text)}, APPEND, fields)

    def user(self, content: str | Message, *, source: str = "user", **fields: Any) -> Event:
        """Append a user message; `source` other than `user` marks what a program put in.

        Raises:
            NotActive: a person's message, and the session is paused, expired or ended.
        """
        if source == "user":
            self.check_active()
        return self._one("user/message", {"message": spoken("user", content), "source": source}, APPEND, fields)

    def assistant(
        self,
        content: str | Message,
        *,
        model: Model | None = None,
        usage: Usage | None = None,
        stop: str | None = None,
        **fields: Any,
    ) -> Event:
        """Append a model's reply with the model that gave it, its usage and its stop reason."""
        data: dict[str, Any] = {"message": spoken("assistant", content)}
        for name, value in (("model", model), ("usage", usage)):
            if value is not None:
                data[name] = msgspec.to_builtins(value)
        if stop is not None:
            data["stop"] = stop
        return self._one("assistant/message", data, APPEND, fields)

    def tool_result(
        self,
        call_id: str,
        content: str | Sequence[Any],
        *,
        name: str | None = None,
        is_error: bool = False,
        call: int | None = None,
        **fields: Any,
    ) -> Event:
        """Append what a tool call gave back. `call` = seq of its tool/call event, cited as a source."""
        blocks = [Text(content)] if isinstance(content, str) else list(content)
        data: dict[str, Any] = {"call_id": call_id, "content": msgspec.to_builtins(blocks), "is_error": is_error}
        if name is not None:
            data["name"] = name
        if call is not None:
            data["call"] = call
            fields.setdefault("sources", (call,))
        return self._one("tool/result", data, APPEND, fields)

    def summary(self, text: str, surface: SurfaceOp, sources: Sequence[Source], **fields: Any) -> Event:
        """Put a summary on the surface in the place of what `surface` takes off; `sources` cites that."""
        return self._one("compaction/summary", {"summary": text}, surface, {**fields, "sources": sources})

    def edit(self, target: int, message: Message | None, **fields: Any) -> Event:
        """From here on the model sees `message` (None = nothing) instead of the node `target`."""
        data = {"target": target, "message": None if message is None else msgspec.to_builtins(message)}
        fields.setdefault("sources", (target,))
        return self._one("context/edit", data, SurfaceOp(replace=(target, target)), fields)

    def label(self, node: int, text: str) -> Event:
        """Bookmark a node; an empty text takes the bookmark away."""
        return self._one("label", {"label": text}, None, {"about": node})

    def note(self, text: str, *, about: int | None = None, title: str | None = None) -> Event:
        """Keep a note on a node (default: the active leaf)."""
        node = self.leaf if about is None else about
        data = {"text": text} if title is None else {"text": text, "title": title}
        return self._one("note", data, None, {"about": node})

    def observe(
        self,
        subject: str,
        method: str,
        then: Fingerprint | None = None,
        *,
        action: Action = "looked",
        covered: str = "",
        not_covered: str = "",
        call: int | None = None,
        cwd: str | None = None,
        about: int | None = None,
    ) -> Event:
        """Note that a source was looked at or changed, so that it can be asked later whether it is still so.

        Args:
            subject: `file:src/a.py`, `directory:…`, `url:…`, `query:…`, `command:…`, or an application's own.
            method: how, in words.
            then: what is known of it now (see `onward.evidence.making`); None = look at all of it: a file or directory
                below the root of the session's directory.
            action: what was done with it.
            covered, not_covered: what of it, in words; empty = what `then` says.
            call: seq of the tool/call behind it.
            cwd: the directory that a relative path is meant from; None = the session's.
            about: the node that it belongs to; None = the active leaf.

        Raises:
            NotFound, Refused: what is there is to be looked at, and the session's directory is not here (any more).
        """
        from onward.evidence.facts import fact_of
        from onward.evidence.noting import fingerprint_now
        from onward.evidence.observation import Observation, Subject
        from onward.evidence.rooting import scope_of

        source = Subject.parse(subject, cwd)
        if then is None:
            then = fingerprint_now(source, scope_of(given(self.header.cwd), self.header.project, live=True).scope)
        seen = Observation(self.next_seq, source, action, method, then, covered, not_covered, call=call)
        return self._one("observation", fact_of(seen), None, {"about": self.leaf if about is None else about})

    def set_title(self, text: str) -> Event:
        """Give the session a title; an empty one takes it away."""
        return self._one("title", {"title": " ".join(text.split())}, None, {})

    def _one(self, type_: str, data: Any, surface: Surface | None, fields: dict[str, Any]) -> Event:
        expect_leaf = fields.pop("expect_leaf", None)
        return self.append(Draft(type=type_, data=data, surface=surface, **fields), expect_leaf=expect_leaf)[0]

    # --- running ------------------------------------------------------------------------------------------------

    def turn(
        self,
        content: str | Message | None = None,
        *,
        source: str = "user",
        run: str | None = None,
        resumes: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Turn:
        """A turn on the active branch; it begins when it is entered: `with session.turn("Fix it") as turn`.

        Args:
            content: what the user says; None where the turn goes on with what is there.
            source: `user`, or what marks the input as a program's.
            run: the run's id; None = that of the turn that is resumed, or a new one.
            resumes: seq of the turn/start of the same run that this turn goes on with.
            options: how the run was begun, for the program that goes on with it (`runtime.position.run_options`).
        """
        from onward.running.turn import Turn

        return Turn(self, content, source=source, run=run, resumes=resumes, options=options)

    # --- forks --------------------------------------------------------------------------------------------------

    def fork(
        self,
        *,
        at: int | None = None,
        node: int | None = None,
        branch: str | None = None,
        detach: bool = False,
        id: str | None = None,
        cwd: str | Path | None = None,
    ) -> Session:
        """A new session that inherits this one's log up to a point, by reference.

        Args:
            at: the last seq to inherit. Default: the last completed turn of the branch.
            node: where the child's `main` begins, instead of the branch's leaf at that point.
            branch: whose turns and leaf count; default the active branch.
            detach: copy the events instead of referring to them.
            id: the child's id.
            cwd: the directory that it works in, which decides its project; default: those of this session.

        Returns:
            The child, opened to write.

        Raises:
            NotFound: no such seq, node or branch at that point.
            AlreadyExists: there is a session of that id.
        """
        return self._store.fork(self, at=at, node=node, branch=branch, detach=detach, id=id, cwd=cwd)

    # --- the rest -----------------------------------------------------------------------------------------------

    def put_blob(self, data: bytes) -> str:
        """Store bytes for an image or file block; returns their sha256."""
        return self.log.put_blob(data)

    def close(self) -> None:
        """Save a snapshot, release the lock and every file. Idempotent."""
        try:
            self._store.closing(self.log)
        finally:
            self.log.close()
