"""The inbox in files: `inbox/<13-digit Unix ms>-<uuid>.json`, left by any process, taken by the holder of the lock."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from typing import Any

import msgspec

from onward.errors import InvalidId, Refused
from onward.log import files
from onward.log.ids import new_id
from onward.model.event import Draft
from onward.model.vocabulary import INBOX_TYPES, VOCABULARY

NAME = re.compile(r"([0-9]{13})-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.json")
"""The name of a document: Unix milliseconds and a UUID."""

LATEST = 10**13 - 1
"""The last millisecond that fits a name (in the year 2286)."""


def document_name(time: int) -> str:
    """A new name for a document of this time (Unix milliseconds); names of one process sort in the order made."""
    if not 0 <= time <= LATEST:
        raise Refused(f"{time} is no time for an inbox document", hint="Unix milliseconds, 13 digits at most")
    return f"{time:013d}-{new_id(time)}.json"


def time_of(name: str) -> int:
    """The Unix milliseconds in a document's name. Raises InvalidId if it is no such name."""
    match = NAME.fullmatch(name)
    if match is None:
        raise InvalidId(f"{name!r} is not the name of an inbox document")
    return int(match[1])


class InboxDocument(msgspec.Struct, forbid_unknown_fields=True):
    """What a process without the lock may drop: a fact. `time` is its own, in Unix milliseconds."""

    type: str
    data: Any = None
    about: int | None = None
    time: int | None = None
    fact: bool = False
    ignorable: bool = False


def draft_of(name: str, dropped_at: int, document: bytes) -> Draft:
    """The fact in a document of that name. Raises Refused when it is none, or none that may come this way."""
    try:
        found = msgspec.json.decode(document, type=InboxDocument)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(f"not a fact that the inbox takes: {error}") from None
    if found.type not in INBOX_TYPES and (found.type in VOCABULARY or not found.fact):
        raise Refused(f"{found.type} cannot come through the inbox")
    return Draft(
        type=found.type,
        data={} if found.data is None else found.data,
        about=found.about,
        time=dropped_at if found.time is None else found.time,
        fact=found.fact,
        ignorable=found.ignorable,
        key=f"inbox:{name}",
    )


class FileInbox:
    """A session's inbox. See `backend.Inbox`.

    Args:
        folder: the session's folder.
        session: its id, for messages.
    """

    def __init__(self, folder: str, session: str) -> None:
        self._session_folder = folder
        self._folder = folder + "/inbox"
        self._session = session
        self._seen = -1

    def drop(self, document: bytes, *, time: int) -> str:
        """See `Inbox.drop`."""
        name = document_name(time)
        path = f"{self._folder}/{name}"
        with files.refusing("leave a document in the inbox", path, session=self._session):
            if not files.access(self._folder, os.F_OK):
                # Not `make_dirs`: a session that was deleted meanwhile must not come back as an empty folder.
                with suppress(FileExistsError):
                    files.mkdir(self._folder, files.DIR_MODE)
                files.sync_path(self._session_folder)
            files.write_beside(path, document, sync=True)
            files.sync_path(self._folder)
        return name

    def changed(self) -> bool:
        """See `Inbox.changed`. One system call.

        Leaving a document changes the folder's timestamp. That the timestamp is still the one of the last `pending`
        says "nothing new" only if it was old enough then (`files.settled`); before that the answer is yes.
        """
        if not files.access(self._folder, os.F_OK):
            return False
        try:
            return self._seen < 0 or files.stat(self._folder).st_ctime_ns != self._seen
        except OSError:  # let `pending` say what is wrong
            return True

    def pending(self) -> list[tuple[str, int, bytes]]:
        """See `Inbox.pending`. Files with other names are left alone."""
        found: list[tuple[str, int, bytes]] = []
        with files.refusing("read the inbox", self._folder, session=self._session):
            try:
                stamp = files.stat(self._folder).st_ctime_ns
                telling = files.settled(stamp)
                with files.scandir(self._folder) as entries:
                    names = sorted(entry.name for entry in entries if NAME.fullmatch(entry.name))
            except FileNotFoundError:
                return []
            for name in names:
                with suppress(FileNotFoundError):  # another writer that took over has done it
                    found.append((name, time_of(name), self._document(name)))
            self._seen = stamp if telling else -1
        return found

    def _document(self, name: str) -> bytes:
        path = f"{self._folder}/{name}"
        if not stat.S_ISREG(files.stat(path).st_mode):
            return b""  # a folder or a pipe is no document; the door refuses this, and it is put aside
        return files.read_file(path)

    def done(self, name: str) -> None:
        """See `Inbox.done`."""
        path = self._path_of(name)
        with files.refusing("remove a document from the inbox", path, session=self._session), _gone_is_fine():
            files.unlink(path)

    def refuse(self, name: str, reason: str) -> None:
        """See `Inbox.refuse`."""
        path = self._path_of(name)
        refused = self._folder + "/refused"
        with files.refusing("put a document of the inbox aside", path, session=self._session), _gone_is_fine():
            with suppress(FileExistsError):
                files.mkdir(refused, files.DIR_MODE)
            files.write_beside(f"{refused}/{name}.reason", reason.encode() + b"\n", sync=False)
            files.rename(path, f"{refused}/{name}")

    def _path_of(self, name: str) -> str:
        time_of(name)
        return f"{self._folder}/{name}"


def _gone_is_fine() -> suppress:
    return suppress(FileNotFoundError)
