"""Appending to `log.jsonl`: one write a batch, under the guard, checked against the lock before and after.

The guard is a short flock of the log itself. Whoever changes the file holds it, so a writer that was replaced finds
that out before it writes, and what it wrote without being acknowledged it cuts off again.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from errno import ENOSPC
from pathlib import Path
from threading import Lock

from onward.errors import Corrupt, LeaseLost, OnwardError, Poisoned, StorageFailed
from onward.log import files
from onward.log.index import entries_in, extend
from onward.log.jsonl import JsonlReader
from onward.log.lines import LINK
from onward.log.lock import WriterLock, sweep
from onward.log.logfile import CHUNK
from onward.log.protocol import Head, Sync, Torn

GUARD_WAIT = 5.0
"""Seconds that a new writer waits for the guard before it goes on in a copy of the log."""

INDEX_EVERY = 1 << 24
"""Bytes of new lines after which the index is extended without waiting for `close`."""


_NEWLINE = 0x0A
_NOT_YET = 1 << 63


class JsonlWriter(JsonlReader):
    """Holds a session's lock and appends to its log. See `protocol.LogWriter`.

    Args:
        folder: the session's folder.
        session: its id.
        lock: held; the writer releases it, also when this constructor fails.
        sync: when appended lines are brought to the disk.
        anchor: brings the folder's own name to the disk, at the first sync. Raises OSError.
        guard_wait: seconds, see `GUARD_WAIT`.
    """

    _flags = os.O_RDWR | os.O_APPEND

    def __init__(
        self,
        folder: str,
        session: str,
        *,
        lock: WriterLock,
        sync: Sync,
        anchor: Callable[[], None],
        guard_wait: float = GUARD_WAIT,
    ) -> None:
        self._lock = lock
        self._sync: Sync = sync
        self._anchor: Callable[[], None] | None = anchor
        self._dirty = True  # a writer before this one may have left lines that are not on disk
        self._unsettled = False
        self._index_wrong = False
        # Seq of the first line that was written here and is not in the index, and the offsets from it on.
        self._recent: tuple[int, array[int]] = (_NOT_YET, array("Q"))
        self._writing = Lock()
        self.number = lock.number
        try:
            with files.refusing("prepare the session's folder", folder, session=session):
                sweep(folder)
            super().__init__(folder, session)
            with files.refusing("prepare the log", self._path, session=session):
                self._start(guard_wait)
        except BaseException:
            self._let_go()
            raise
        self._index_due = self._head.size + INDEX_EVERY
        self._recent = (self._head.next_seq, array("Q"))

    # --- opening ------------------------------------------------------------------------------------------------

    def _start(self, guard_wait: float) -> None:
        """Get the guard, or go on in a copy; look at the end of the log; set aside what is torn."""
        self._lock.bind(self._identity)
        torn = None
        if not files.flock_within(self._fd, guard_wait):
            torn = self._replace()
            if not files.flock_within(self._fd, guard_wait):
                raise LeaseLost("another writer took over at the same time", session=self._session)
        try:
            self._lock.check()
            size = files.fstat(self._fd).st_size
            self._advance(size)
            if size > self._head.size:
                torn = self._set_aside(size)
                self._lock.check()
                files.ftruncate(self._fd, self._head.size)
                self._seen = self._head.size
            self.torn = torn
        finally:
            files.flock(self._fd, files.LOCK_UN)

    def _set_aside(self, size: int) -> Torn:
        """Copy what lies behind the last whole line to a file of its own, on disk."""
        number = 1
        while True:
            path = f"{self._folder}/log.torn-{number}"
            try:
                fd = files.open_(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, files.FILE_MODE)
                break
            except FileExistsError:
                number += 1
        try:
            self._copy_to(fd, self._head.size, size)
            files.fsync(fd)
        finally:
            files.close(fd)
        files.sync_path(self._folder)
        return Torn(Path(path), size - self._head.size)

    def _copy_to(self, fd: int, start: int, stop: int) -> None:
        while start < stop and (data := self._pread(min(CHUNK, stop - start), start)):
            files.write_all(fd, data)
            start += len(data)

    def _replace(self) -> Torn | None:
        """Somebody keeps the guard: put a copy of the whole lines in the log's place. What they write is lost.

        The copy is there before the lock is checked: a newer writer either is seen by that check or removes the
        copy (`lock.sweep`), so it can never come in place of a log that a newer writer has written to.
        """
        self._advance(files.fstat(self._fd).st_size)
        beside = f"{self._path}.{files.token(8)}"
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL
        fd = files.open_(beside, flags, files.FILE_MODE)
        try:
            self._copy_to(fd, 0, self._head.size)
            if files.fstat(fd).st_size != self._head.size:
                raise OSError(ENOSPC, "the log could not be copied")
            files.fsync(fd)
            torn = self._set_aside(self._seen) if self._seen > self._head.size else None
            self._lock.check()
            try:
                files.rename(beside, self._path)
            except FileNotFoundError:
                raise LeaseLost("another writer took over at the same time", session=self._session) from None
            files.sync_path(self._folder)
        except BaseException:
            files.let_go(fd)
            with suppress(OSError):  # the first failure is the one to report
                files.unlink(beside)
            raise
        head = self._head
        self._let_go_of_file()
        self._fd = fd
        self._adopt()
        self._head = head
        self._lock.bind(self._identity)
        return torn

    # --- appending ----------------------------------------------------------------------------------------------

    def append(self, lines: Sequence[bytes]) -> None:
        """See `LogWriter.append`."""
        if not lines:
            return
        first = lines[0]
        if len(lines) == 1:
            data, broken = first + b"\n", _NEWLINE in first
        else:
            data = b"%b\n" % b"\n".join(lines)
            broken = data.count(b"\n") != len(lines)
        with self._writing:
            if self._dead is not None:
                raise self._dead()
            _, _, size = head = self._head
            if broken or not first.startswith(b'{"seq":%d,' % head.next_seq):
                raise ValueError(f"not the lines from seq {head.next_seq} on")
            end = size + len(data)
            fd, check = self._fd, self._lock.check
            back = size
            try:
                files.flock(fd, files.LOCK_EX)
                try:
                    if self._unsettled:
                        self._cut(size)
                    check()
                    self._unsettled = True
                    done = files.write(fd, data)
                    # The file is open to append, so this is where the write ended: somebody else's bytes show.
                    at = files.lseek(fd, 0, os.SEEK_CUR)
                    if at != end:
                        back = at - done
                        raise self._bad_write(done, len(data), foreign=back != size)
                    check()
                except BaseException:
                    self._leave_guard(back)
                    raise
                self._head = Head(head.next_seq + len(lines), lines[-1][-18:-2], end)
                self._note_offsets(head.next_seq, size, lines)
                self._dirty = True
                self._unsettled = False
                self._leave_guard(end)
            except OSError as error:
                raise files.refusal("append to the log", self._path, error, session=self._session) from error
            except LeaseLost as error:
                self._kill(error)
                raise
            if self._sync == "always":
                self._bring_to_disk()
            if end > self._index_due:
                self._extend_index()

    def _note_offsets(self, seq: int, offset: int, lines: Sequence[bytes]) -> None:
        """Remember where the lines that were just written lie, so that reading one of them back need not search."""
        first, offsets = self._recent
        if first + len(offsets) != seq:  # an interrupt kept some from being noted; those are searched for
            offsets = array("Q")
            self._recent = (seq, offsets)
        for line in lines:
            offsets.append(offset)
            offset += len(line) + 1

    def _leave_guard(self, size: int) -> None:
        """Take back what was written and not acknowledged, give up the guard."""
        try:
            if self._unsettled:
                self._cut(size)
        finally:
            try:
                files.flock(self._fd, files.LOCK_UN)
            except OSError as error:
                raise self._poison("give up the guard", error) from error

    def _bad_write(self, done: int, wanted: int, *, foreign: bool) -> OnwardError:
        if foreign:
            return LeaseLost(
                "something else wrote to the log while this writer held it",
                hint="`onward fsck` tells whether the log is still whole",
                session=self._session,
                path=self._path,
            )
        return StorageFailed(
            f"could not append to the log: {done} of {wanted} bytes were written",
            hint="free some space and try again",
            session=self._session,
            path=self._path,
        )

    def _cut(self, size: int) -> None:
        """Cut the file back to `size`, under the guard."""
        try:
            if files.fstat(self._fd).st_size > size:
                files.ftruncate(self._fd, size)
        except OSError as error:
            raise self._poison("take back an append that failed", error) from error
        self._unsettled = False

    def _poison(self, what: str, error: OSError) -> OnwardError:
        reason = error.strerror or str(error)
        return self._kill(
            Poisoned(
                f"could not {what}: {reason}; this writer is finished, the file is left as it is",
                hint="open the session again: what is in the file then is what counts",
                session=self._session,
                path=self._path,
            )
        )

    # --- syncing ------------------------------------------------------------------------------------------------

    def sync(self) -> None:
        """See `LogWriter.sync`. Other threads run meanwhile, also those that sync other sessions."""
        with self._writing:
            if self._dead is not None:
                raise self._dead()
            if self._sync != "never" and self._dirty:
                self._bring_to_disk()

    def _bring_to_disk(self) -> None:
        try:
            files.fdatasync(self._fd)
            if self._anchor is not None:
                files.sync_path(self._folder)
                self._anchor()
                self._anchor = None
        except OSError as error:
            raise self._poison("sync the log", error) from error
        self._dirty = False
        self._check_lease()

    def _check_lease(self) -> None:
        try:
            self._lock.check()
        except LeaseLost as error:
            self._kill(error)
            raise
        except OSError as error:
            # The lines are in the file, and whether they may be acknowledged cannot be found out.
            raise self._poison("look at the lock", error) from error

    # --- the rest -----------------------------------------------------------------------------------------------

    def truncate(self, next_seq: int) -> None:
        """See `LogWriter.truncate`."""
        with self._writing:
            if self._dead is not None:
                raise self._dead()
            if not self.first_seq <= next_seq < self._head.next_seq:
                return
            offset = self._offset(next_seq)
            link = self._pread(LINK, offset - LINK)[:16]
            try:
                files.flock(self._fd, files.LOCK_EX)
                try:
                    self._check_lease()
                    try:
                        files.ftruncate(self._fd, offset)
                    except OSError as error:
                        raise self._poison("cut the log", error) from error
                    self._head = Head(next_seq, link, offset)
                    self._mark = (next_seq, offset)
                    first, offsets = self._recent
                    self._recent = (min(first, next_seq), offsets[: max(0, next_seq - first)])
                    self._dirty = True
                finally:
                    self._leave_guard(offset)
            except OSError as error:
                raise files.refusal("cut the log", self._path, error, session=self._session) from error

    def renumber(self, number: int) -> None:
        """See `LogWriter.renumber`."""
        with self._writing:
            if self._dead is not None:
                raise self._dead()
            self._check_lease()
            try:
                self._lock.renumber(number)
            except OSError as error:
                raise self._poison("write writer.lock", error) from error
            self.number = number

    def head(self) -> Head:
        """See `LogReader.head`: what this writer has appended is known without looking."""
        if self._dead is not None:
            raise self._dead()
        return self._head

    def _entries(self, first: int, count: int) -> array[int]:
        """The offsets of lines from `first` on: those that are in the index, then those that were written here."""
        start, offsets = self._recent
        if first >= start:
            return offsets[first - start : first - start + count]
        found = super()._entries(first, min(count, start - first))
        if first + len(found) == start:
            found += offsets[: count - len(found)]
        return found

    def _distrust_index(self) -> None:
        self._index_wrong = True
        super()._distrust_index()

    def _extend_index(self) -> None:
        """Bring `log.idx` up to the head. A derived file: when it cannot be written, finding lines is just slower."""
        self._index_due = self._head.size + INDEX_EVERY
        path, count = self._index.path, self._head.next_seq - self.first_seq
        with suppress(OSError, StorageFailed, Corrupt):
            have = entries_in(path)
            keep = 0
            if 0 < have <= count and not self._index_wrong:
                last = self.first_seq + have - 1
                offset = next(iter(super()._entries(last, 1)), 0)
                if offset >= self._body and self._is_at(last, offset):
                    raw = self._line_at(offset, self._head.size)
                    if raw is not None:
                        keep, self._mark = have, (last + 1, offset + len(raw) + 1)
            if keep != count or have != count:
                extend(path, count, keep, self.scan(self.first_seq + keep))
            self._index_wrong = False
            self._recent = (self._head.next_seq, array("Q"))

    def _let_go_of_file(self) -> None:
        super()._let_go()

    def _let_go(self) -> None:
        self._let_go_of_file()
        self._lock.release()

    def _after_fork(self) -> None:
        self._writing = Lock()
        super()._after_fork()

    def close(self) -> None:
        """Release everything, the lock last. Idempotent."""
        with self._writing:
            if self._dead is None:
                self._extend_index()
            super().close()
