"""`Calls`: the tool calls of one path, and what each gave back."""

from __future__ import annotations

from onward.context.results import Result
from onward.errors import BlobMissing, NotFound
from onward.log.calls import journal_nodes
from onward.log.door import Log
from onward.model.call import Call, find_call
from onward.model.journal import journal
from onward.model.transcript import text_of
from onward.model.tree import Path

RECENT = 5_000
"""Events among which a call is looked for before the whole path is."""


class Calls:
    """The tool journal of a path: its calls, in the order in which they were asked for, and what became of them.

    Approvals expire by the log's clock. What results say is read for `result` only.

    Args:
        log: the opened log.
        path: the path.
        end: seq behind the last event that is looked at.
        stale_before: as `Log.stale_before`.
    """

    def __init__(self, log: Log, path: Path, end: int, stale_before: int) -> None:
        self._log = log
        self._path = path
        self._end = end
        self._stale_before = stale_before

    def since(self, start: int) -> list[Call]:
        """The calls of the path's nodes from seq `start` on."""
        chain = self._log.chain
        return journal(
            journal_nodes(chain, self._path, start),
            owner=lambda seq: chain.owner(seq).session,
            first_own=chain.first_own,
            stale_before=self._stale_before,
            now=self._log.now(),
        )

    def find(self, call: int | str) -> Call:
        """The call that a seq or an id means; see `model.call.find_call`.

        Raises:
            NotFound: no such call on this path.
            Refused: the seq is of a message that asks for several calls.
        """
        if isinstance(call, str):
            # Mostly it is one of the last; a call that was asked for in there is the same in the whole path.
            recent = self.since(max(0, self._end - RECENT))
            if any(one.call_id == call for one in recent):
                found = find_call(recent, call)
                if found.advertised is not None:
                    return found
        return find_call(self.since(0), call)

    def result(self, call: int | str) -> Result:
        """What a call gave back, as it was recorded.

        Args:
            call: as for `View.find_result`.

        Raises:
            NotFound, Refused: as for `find`; also where the call has no result.
            BlobMissing: the archived result is unavailable.
        """
        found = self.find(call)
        session = self._log.session
        seq = call if isinstance(call, int) and call in found.late else found.result
        if seq is None:
            raise NotFound(f"the call {found.call_id!r} has no result", session=session, seq=found.seq)
        try:
            event = self._log.chain.event(seq)
        except BlobMissing as error:
            raise BlobMissing(
                f"the archived result of the call {found.call_id!r} is unavailable: {error.message}",
                hint="`onward fsck` says what else is lost; a backup of the session's blobs brings it back",
                session=session,
                seq=seq,
            ) from error
        return Result(found.call_id, seq, text_of(event))
