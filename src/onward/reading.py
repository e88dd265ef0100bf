"""`View`: one path of a session at one point of its log, to read from. Everything in it is derived."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from os import PathLike
from threading import Lock
from typing import TYPE_CHECKING

from onward.context.projection import Projection, project_surface, steps_of
from onward.context.tokens import estimate
from onward.errors import NotFound
from onward.log.door import Log
from onward.model.event import Event, Header, Origin, given
from onward.model.messages import Message, Text
from onward.model.searchable import searchable
from onward.model.state import State
from onward.model.surface import fold
from onward.model.transcript import Entry, transcript
from onward.model.tree import NONE, Path
from onward.model.turns import Turn, infer_turns
from onward.model.usage import Ledger, ledger, turns_of

if TYPE_CHECKING:
    from onward.calls import Calls
    from onward.context.counting import Count
    from onward.context.past import PastRequest
    from onward.context.reported import Reports
    from onward.context.results import Found, Page, Result
    from onward.context.tokens import Tokenizer
    from onward.evidence.checking import Progress
    from onward.evidence.observation import Observation
    from onward.holding.answer import Holding
    from onward.model.call import Call
    from onward.model.prices import PriceTable

BRACKETED = frozenset({"dsh"})
"""Foreign formats that log where turns begin and end, so that a session without such events has no turns."""

FIRST_FEW = 4
"""Prompts among which the first that asks something is looked for."""

Elsewhere = Callable[[Log, int], str | None]
"""Gives the title that other sessions give to a log's events before a seq, or None."""


class View:
    """A path of a session: to a branch's leaf, or to a node, in the log as it is or as it was after some seq.

    Attributes:
        log: the opened log that this looks into.
        state: the fold up to the view's point.
        branch: the branch that was asked for.
        leaf: seq of the path's last node, or None for an empty path.
    """

    def __init__(self, log: Log, state: State, branch: str, leaf: int, elsewhere: Elsewhere | None = None) -> None:
        self.log = log
        self._state = state
        self._branch = branch
        self._leaf = leaf
        self._elsewhere = elsewhere
        self._counting = Lock()
        self._reports: Reports | None = None

    @property
    def id(self) -> str:
        """The session's id."""
        return self.log.session

    @property
    def header(self) -> Header:
        """The session's header."""
        return self.log.chain.own.header

    @property
    def state(self) -> State:
        """The fold up to the view's point."""
        return self._state

    @property
    def branch(self) -> str:
        """The branch that is looked at."""
        return self._branch

    def branches(self) -> dict[str, int]:
        """Name -> leaf of every branch (`tree.NONE` for an empty one)."""
        with self.log.still():
            return dict(self.state.branches.leaves)

    @property
    def leaf(self) -> int | None:
        """Seq of the path's last node; None when there is none."""
        with self.log.still():
            leaf = self._at()
        return None if leaf == NONE else leaf

    def _at(self) -> int:
        return self._leaf

    # --- events -------------------------------------------------------------------------------------------------

    def event(self, seq: int) -> Event:
        """One event, inherited or own, blobs fetched. Raises NotFound when the view does not reach it."""
        if not 0 <= seq < self.state.next_seq:
            raise NotFound(f"there is no event {seq}", session=self.id)
        return self.log.chain.event(seq)

    def events(self, start: int = 0, stop: int | None = None) -> Iterator[Event]:
        """All events start <= seq < stop of the log (not only of this path), in order."""
        with self.log.still():
            end = self.state.next_seq if stop is None else min(stop, self.state.next_seq)
        return self.log.chain.events(start, end)

    @property
    def path(self) -> Path:
        """The seqs of this path's nodes."""
        with self.log.still():
            return self.state.path(self._at())

    def nodes(self) -> list[Event]:
        """The events of this path's nodes, root first."""
        return self.read(list(self.path))

    @property
    def surface(self) -> list[int]:
        """The seqs of the nodes that the model sees, in order."""
        with self.log.still():
            return self.state.surface(self._at())

    def read(self, seqs: Sequence[int]) -> list[Event]:
        """Some events of the log, in the order asked for, blobs fetched."""
        found = self.log.chain.read(seqs)
        return [found[seq] for seq in seqs]

    def open_partials(self) -> list[Event]:
        """The streamed text of the open turn of this path that belongs to its nodes."""
        with self.log.still():
            start = self.state.open_brackets(self._at()).get("turn")
        if start is None:
            return []
        path = self.path
        return [
            event
            for event in self.events(start)
            if event.type == "assistant/partial" and isinstance(event.about, int) and event.about in path
        ]

    def count_turns(self) -> int:
        """How many turns this path has: its `turn/start` events, else (if its format has none) a person's prompts."""
        origin = self.header.origin
        bracketed = isinstance(origin, Origin) and origin.format in BRACKETED
        return self.state.count_turns(self.path, bracketed=bracketed)

    # --- facts --------------------------------------------------------------------------------------------------

    def facts(self, type_: str) -> list[Event]:
        """The facts of a type that this path sees, oldest first."""
        with self.log.still():
            seqs, path = list(self.state.facts.get(type_, ())), self.path
        events = self.read(seqs)
        return [event for event in events if not isinstance(event.about, int) or event.about in path]

    def latest(self, type_: str) -> Event | None:
        """The fact of a type that counts: the last one that this path sees."""
        with self.log.still():
            seqs, path = list(self.state.facts.get(type_, ())), self.path
        for seq in reversed(seqs):
            event = self.event(seq)
            if not isinstance(event.about, int) or event.about in path:
                return event
        return None

    def own_latest(self, type_: str) -> Event | None:
        """The last fact of a type that the session itself logged: a fork has its parent's past, not its status."""
        with self.log.still():
            seqs = self.state.facts.get(type_, ())
            seq = seqs[-1] if seqs else -1
        return self.event(seq) if seq >= self.log.chain.first_own else None

    def labels(self) -> dict[int, str]:
        """Node -> label, for every node of the log that has one."""
        out: dict[int, str] = {}
        with self.log.still():
            seqs = list(self.state.facts.get("label", ()))
        for event in self.read(seqs):
            if isinstance(event.about, int):
                out[event.about] = event.data.get("label", "")
        return {seq: label for seq, label in out.items() if label}

    @property
    def title(self) -> str | None:
        """The session's title, or None: its own, else the one that another session gives to an event in this one.

        A title that was taken away is not looked for elsewhere.
        """
        own = self.own_title
        return self._title_elsewhere() if own is None else own or None

    @property
    def own_title(self) -> str | None:
        """The title that the session's own log gives; empty where it was taken away, None where there never was one."""
        event = self.latest("title")
        return (event.data.get("title") or "") if event is not None else None

    def _title_elsewhere(self) -> str | None:
        return None if self._elsewhere is None else self._elsewhere(self.log, self.state.next_seq)

    @property
    def first_prompt(self) -> str | None:
        """What a person asked first on this path, without `<private>` spans, or None.

        A command of the agent (`/model`) asks nothing yet.
        """
        with self.log.still():
            path, prompts = self.path, self.state.prompts
            seqs = list(islice((seq for seq in prompts if seq in path), FIRST_FEW))
        texts = [text for event in self.read(seqs) if (text := searchable(event.type, event.data).strip())]
        return next((text for text in texts if not text.startswith("/")), texts[0] if texts else None)

    # --- projections --------------------------------------------------------------------------------------------

    def context(
        self, *, budget: int | None = None, check: bool = False, root: str | PathLike[str] | None = None
    ) -> Projection:
        """What the model sees here: messages, and a manifest that explains every node.

        Args:
            budget: tokens that the messages may take; None = no limit.
            check: look whether what was looked at still holds, and where it does not, say so in one last message.
            root: for `check`, as there.
        """
        told = self.check(root).notice if check else None
        notice = None if told is None else Message("user", [Text(told)])
        with self.log.still():
            leaf = self._at()
            surface = self.state.surface(leaf)
        if notice is not None and budget is not None:
            budget = max(1, budget - estimate(notice))
        out = project_surface(self.read(surface), self.carriers(leaf), budget=budget)
        if notice is not None:
            out.add(notice)
        return out

    def check(
        self,
        root: str | PathLike[str] | None = None,
        *,
        allow_outside: bool = False,
        urls: bool = False,
        cached: bool = True,
        progress: Progress | None = None,
    ) -> Holding:
        """Whether what was looked at on this path is still so, and what was concluded from it. Nothing is run again.

        Args:
            root: the directory that stands for the session's own now; None = the session's own.
            allow_outside: also look at files outside of it, by their recorded paths on this machine.
            urls: also ask servers whether pages have changed.
            cached: keep what files were beside the catalogue, so that unchanged ones are not read again.
            progress: told how many of how many files were looked at.

        Raises:
            NotFound: there is no directory `root`.
        """
        from onward.holding.checking import check

        return check(self, root, allow_outside=allow_outside, urls=urls, cached=cached, progress=progress)

    def carriers(self, leaf: int) -> Callable[[], list[Event]]:
        """Reads, when it is called, the nodes of the path to `leaf` that carry a surface, in path order."""

        def read() -> list[Event]:
            with self.log.still():
                seqs = list(self.state.path(leaf).marked(self.state.surfaces.carries))
            return self.read(seqs)

        return read

    def request(self, seq: int) -> PastRequest:
        """A model request as it was made: its messages, rebuilt exactly, whatever happened to the context since.

        Args:
            seq: of the request/header.

        Raises:
            NotFound: there is no request/header.
            Corrupt: what is there now is not what the request was made of, by its digest.
        """
        from onward.context.past import past_request

        event = self.event(seq)
        if event.type != "request/header":
            raise NotFound(f"{seq} is no request/header but a {event.type}", session=self.id)
        leaf = event.data.get("leaf")
        with self.log.still():
            leaf = self.state.tree.parent(seq) if leaf is None else leaf
            surface = self.state.surface(leaf)
        return past_request(event, self.read(surface), self.carriers(leaf), self.header)

    def calls(self) -> list[Call]:
        """The tool journal of this path: its calls, in the order in which they were asked for, and what became of them.

        Approvals expire by the store's clock. What results say is not read: `read_result` does that.
        """
        return self._calls().since(0)

    def _calls(self) -> Calls:
        from onward.calls import Calls

        with self.log.still():
            return Calls(self.log, self.path, self.state.next_seq, self.log.stale_before)

    def find_result(self, call: int | str) -> Result:
        """What a call of this path gave back, as it was recorded, whatever has taken its place for the model since.

        Args:
            call: a seq of the call (see `model.call.find_call`), or its id: then the last call of that id. The seq of
                a late result means that one, any other the answer.

        Raises:
            NotFound: no such call on this path, or it has no result.
            Refused: the seq is of a message that asks for several calls.
            BlobMissing: the archived result is unavailable.
        """
        return self._calls().result(call)

    def tool_result_text(self, call: int | str) -> str:
        """The whole text of what a call gave back. See `find_result`."""
        return self.find_result(call).text

    def read_result(self, call: int | str, offset: int = 0, limit: int = -1, *, cap: int | None = None) -> Page:
        """A piece of what a call gave back, in code points. See `find_result` and `context.results.page`."""
        from onward.context.results import page

        return page(self.find_result(call).text, offset, limit, cap=cap)

    def search_result(
        self, call: int | str, query: str, offset: int = 0, limit: int = -1, *, cap: int | None = None
    ) -> Found:
        """Places in what a call gave back. See `find_result` and `context.results.search`."""
        from onward.context.results import search

        return search(self.find_result(call).text, query, offset, limit, cap=cap)

    def observations(self) -> tuple[Observation, ...]:
        """What this path looked at and changed: what its `observation` facts say, and what its tools' results tell.

        The results of any time count, whatever has taken their place for the model since.
        """
        from onward.evidence.derived.deriving import CONTEXTS, observed

        facts = [fact for type_ in ("observation", *sorted(CONTEXTS)) for fact in self.facts(type_)]
        return observed(self.nodes(), facts, given(self.header.cwd))

    def turns(self) -> list[Turn]:
        """The turns of this path; inferred where the format has no brackets."""
        return infer_turns(self.nodes())

    def transcript(self) -> list[Entry]:
        """The path for people: its nodes as they were appended, so that no compaction hides anything."""
        nodes = self.nodes()
        _, taken_by = fold(steps_of(nodes))
        return transcript(nodes, set(self.surface), set(taken_by.values()))

    def usage(self, *, path_only: bool = False, prices: PriceTable | None = None) -> Ledger:
        """What this session's own requests took up to the view's point, on every branch or on this path alone.

        Args:
            path_only: only those of this path.
            prices: what requests cost that reported no cost (see `pricing`); None = that is not asked.
        """
        return ledger(self.reports(path_only=path_only), turns_of(self.nodes()), prices)

    def reports(self, *, path_only: bool = False) -> list[Event]:
        """The session's own events that report usage, as for `usage`, in order."""
        with self.log.still():
            seqs = [seq for seq in self.state.usage if seq >= self.log.chain.first_own]
        events = self.read(seqs)
        if path_only:
            path = self.path
            events = [event for event in events if (event.about if isinstance(event.about, int) else event.seq) in path]
        return events

    def count(self, *, model: str | None = None, tokenizer: Tokenizer | None = None) -> Count:
        """How many tokens the context takes as a prompt: by the newest report of usage, what follows it estimated.

        What was counted is kept: counting again costs what is new.

        Args:
            model: name of the model that will be asked; others' reports do not count. None = the last to report.
            tokenizer: counts text exactly (see `context.tokenizers`); None = it is estimated by script.
        """
        from onward.context.reported import Reports, plan_count

        with self.log.still():
            plan = plan_count(self.state, self._at())
        with self._counting:
            reports, self._reports = self._reports, None  # what fails half way is not gone on with
            if reports is None or reports.tokenizer is not tokenizer:
                reports = Reports(tokenizer)
            got = reports.count(plan, self.read, self.state.tree.parent, model=model)
            self._reports = reports
        return got

    def blob(self, sha256: str) -> bytes:
        """The bytes of a blob that this session refers to. Raises BlobMissing."""
        return self.log.chain.blob(sha256)
