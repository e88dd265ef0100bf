"""Sessions in folders: `<home>/<tenant>/sessions/<project>/<session id>/`, deleted ones in `<home>/<tenant>/trash/`."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from onward.errors import AlreadyExists, InvalidId, Locked, NotFound, Refused
from onward.log import files
from onward.log.backend import Located
from onward.log.blobs import FileBlobs
from onward.log.ids import check_id
from onward.log.inbox import FileInbox
from onward.log.jsonl import JsonlPrefix, JsonlReader
from onward.log.jsonl_writer import GUARD_WAIT, JsonlWriter
from onward.log.lines import seal_header
from onward.log.lock import WriterLock, held
from onward.log.protocol import Sync
from onward.model.event import Header, Project

_NEW = ".new"
"""Below `sessions/`: sessions that are being made. Below `trash/`, `.erased`: what is being erased."""

_ERASED = ".erased"
_SLUG = 60


def project_folder(project: Project) -> str:
    """A folder name for a project: readable, and another one for another project.

    The end of the name is kept when it is long: of a path or an address that is the telling part.
    """
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", project.name).strip("-.")[-_SLUG:].strip("-.") or "project"
    identity = msgspec.json.encode([project.name, project.repo if project.repo is not msgspec.UNSET else None])
    return f"{slug}-{sha256(identity).hexdigest()[:8]}"


class JsonlBackend:
    """One tenant's sessions as files. See `backend.Backend`.

    Args:
        home: the folder of all tenants; made when the first session is.
        tenant: whose sessions.
        guard_wait: seconds that a new writer waits for a write in progress before it goes on in a copy of the log.

    Attributes:
        folder: `<home>/<tenant>`.
    """

    def __init__(self, home: Path, tenant: str = "local", *, guard_wait: float = GUARD_WAIT) -> None:
        if home.exists() and not home.is_dir():
            raise Refused(f"{home} is not a directory", hint="say where the sessions lie with --home or ONWARD_HOME")
        self.home: Path | None = home
        self.tenant = check_id(tenant, "tenant")
        self.folder = home / tenant
        self._sessions = str(self.folder / "sessions")
        self._trash = str(self.folder / "trash")
        self._guard_wait = guard_wait
        self._found: dict[str, str] = {}
        self._anchored: set[str] = set()

    # --- making and opening -------------------------------------------------------------------------------------

    def create(self, header: Header, *, sync: Sync = "barrier") -> JsonlWriter:
        """See `Backend.create`. The folder appears whole, with its header and its lock held."""
        session = check_id(header.id)
        if header.tenant != self.tenant:
            raise Refused(f"the session is of tenant {header.tenant!r}, this store of {self.tenant!r}", session=session)
        line, _ = seal_header(header)
        project = f"{self._sessions}/{project_folder(header.project)}"
        folder = f"{project}/{session}"
        with files.refusing("create the session", folder, session=session):
            files.make_dirs(project)
            with self._alone(session):
                if self._find(session) is not None or files.access(f"{self._trash}/{session}", os.F_OK):
                    raise AlreadyExists("there is a session of this id", hint="choose another id", session=session)
                lock = self._make(session, folder, line + b"\n")
        self._found[session] = folder
        return self._writer(folder, session, lock, sync)

    def _make(self, session: str, folder: str, header: bytes) -> WriterLock:
        """Make the folder under another name, and rename it. Leftovers of crashes are removed on the way."""
        new = f"{self._sessions}/{_NEW}"
        with suppress(FileExistsError):
            files.mkdir(new, files.DIR_MODE)
        with files.scandir(new) as entries:
            leftovers = [entry.path for entry in entries]
        for path in leftovers:
            shutil.rmtree(path)
        beside = f"{new}/{session}"
        files.mkdir(beside, files.DIR_MODE)
        try:
            fd = files.open_(f"{beside}/log.jsonl", os.O_WRONLY | os.O_CREAT | os.O_EXCL, files.FILE_MODE)
            try:
                files.write_all(fd, header)
            finally:
                files.close(fd)
            lock = WriterLock.create(beside, session, final=folder)
            try:
                files.rename(beside, folder)
            except BaseException:
                lock.release()
                raise
        except BaseException:
            # The disk may be full: what is left here would keep the space until the next session is made.
            shutil.rmtree(beside, ignore_errors=True)
            raise
        return lock

    def reader(self, session: str, *, trashed: bool = False, stop: int | None = None) -> JsonlReader:
        """See `Backend.reader`."""
        folder = self._folder(session, trashed=trashed)
        return self._mine(JsonlReader(folder, session) if stop is None else JsonlPrefix(folder, session, stop))

    def writer(self, session: str, *, floor: int, take_over: bool = False, sync: Sync = "barrier") -> JsonlWriter:
        """See `Backend.writer`."""
        folder = self._folder(session)
        # Who may not even read it must not take its lock.
        self.reader(session).close()
        with files.refusing("lock the session", folder, session=session):
            get = WriterLock.take_over if take_over else WriterLock.acquire
            lock = get(folder, session, floor=floor)
        return self._writer(folder, session, lock, sync)

    def held(self, session: str) -> bool:
        """See `Backend.held`."""
        folder = self._folder(session)
        with files.refusing("look at the lock of the session", folder, session=session):
            return held(folder, session)

    def _writer(self, folder: str, session: str, lock: WriterLock, sync: Sync) -> JsonlWriter:
        def anchor() -> None:
            self._anchor(os.path.dirname(folder))  # noqa: PTH120

        return JsonlWriter(folder, session, lock=lock, sync=sync, anchor=anchor, guard_wait=self._guard_wait)

    def _mine(self, reader: JsonlReader) -> JsonlReader:
        if reader.header.tenant != self.tenant:
            reader.close()
            raise NotFound("no such session", session=reader.header.id)
        return reader

    def blobs(self, session: str, *, trashed: bool = False) -> FileBlobs:
        """See `Backend.blobs`."""
        return FileBlobs(self._folder(session, trashed=trashed), session)

    def inbox(self, session: str) -> FileInbox:
        """See `Backend.inbox`."""
        return FileInbox(self._folder(session), session)

    # --- finding ------------------------------------------------------------------------------------------------

    def locate(self, session: str) -> Located:
        """See `Backend.locate`."""
        found = self._located(session, self._folder(session))
        if found is None:
            raise NotFound("no such session", session=session)
        return found

    def sessions(self) -> Iterator[Located]:
        """See `Backend.sessions`."""
        for project in self._names(self._sessions):
            yield from self._below(f"{self._sessions}/{project}")

    def ids(self) -> Iterator[str]:
        """See `Backend.ids`."""
        for project in self._names(self._sessions):
            yield from self._ids(f"{self._sessions}/{project}")

    def trashed(self) -> Iterator[Located]:
        """See `Backend.trashed`."""
        return self._below(self._trash)

    def _below(self, folder: str) -> Iterator[Located]:
        for name in self._ids(folder):
            found = self._located(name, f"{folder}/{name}")
            if found is not None:
                yield found

    def _ids(self, folder: str) -> Iterator[str]:
        for name in self._names(folder):
            try:
                yield check_id(name)
            except InvalidId:
                continue  # not a folder that we made

    def _located(self, session: str, folder: str) -> Located | None:
        path = f"{folder}/log.jsonl"
        with files.refusing("look at the log", path, session=session):
            try:
                state = files.stat(path)
            except (FileNotFoundError, NotADirectoryError):
                return None
        return Located(session, path, state.st_size, state.st_mtime_ns)

    def _names(self, folder: str) -> list[str]:
        with files.refusing("list", folder):
            try:
                with files.scandir(folder) as entries:
                    return [entry.name for entry in entries if entry.name[0] != "."]
            except (FileNotFoundError, NotADirectoryError):
                return []

    def _folder(self, session: str, *, trashed: bool = False) -> str:
        """The session's folder. Raises NotFound, InvalidId."""
        check_id(session)
        folder = self._find(session)
        if folder is None and trashed and files.access(f"{self._trash}/{session}", os.F_OK):
            folder = f"{self._trash}/{session}"
        if folder is None:
            raise NotFound("no such session", session=session)
        return folder

    def _find(self, session: str) -> str | None:
        folder = self._found.get(session)
        if folder is not None and files.access(folder, os.F_OK):
            return folder
        for project in self._names(self._sessions):
            folder = f"{self._sessions}/{project}/{session}"
            if files.access(folder, os.F_OK):
                self._found[session] = folder
                return folder
        self._found.pop(session, None)
        return None

    # --- deleting -----------------------------------------------------------------------------------------------

    def trash(self, session: str) -> Path:
        """See `Backend.trash`."""
        folder = self._folder(session)
        target = f"{self._trash}/{session}"
        with files.refusing("move the session to the trash", folder, session=session):
            files.make_dirs(self._trash)
            with self._alone(session):
                lock = WriterLock.acquire(folder, session, floor=0)
                try:
                    files.rename(folder, target)
                    files.sync_path(self._trash)
                    files.sync_path(os.path.dirname(folder))  # noqa: PTH120
                finally:
                    lock.release()
        self._found.pop(session, None)
        return Path(target)

    def discard(self, session: str) -> None:
        """See `Backend.discard`. It goes back to where it was made; there a crash leaves nothing for good."""
        folder = self._folder(session)
        with files.refusing("take the session back", folder, session=session):
            with suppress(FileExistsError):
                files.mkdir(f"{self._sessions}/{_NEW}", files.DIR_MODE)
            with self._alone(session):
                files.rename(folder, f"{self._sessions}/{_NEW}/{session}")
            shutil.rmtree(f"{self._sessions}/{_NEW}/{session}")
        self._found.pop(session, None)

    def erase(self, session: str) -> None:
        """See `Backend.erase`."""
        check_id(session)
        beside = f"{self._trash}/{_ERASED}"
        with files.refusing("erase the session", f"{self._trash}/{session}", session=session):
            if not files.access(f"{self._trash}/{session}", os.F_OK):
                raise NotFound("no such session in the trash", session=session)
            with suppress(FileExistsError):
                files.mkdir(beside, files.DIR_MODE)
            # Renamed first, so that a crash leaves no half session that still seems to be one.
            doomed = f"{beside}/{session}.{files.token(4)}"
            files.rename(f"{self._trash}/{session}", doomed)
            files.sync_path(self._trash)
            shutil.rmtree(doomed)
            for name in os.listdir(beside):  # noqa: PTH208 - what a crash left; perhaps another process is at it
                shutil.rmtree(f"{beside}/{name}", ignore_errors=True)

    # --- order and durability -----------------------------------------------------------------------------------

    @contextmanager
    def _alone(self, session: str) -> Iterator[None]:
        """Nobody else makes or moves sessions of this tenant meanwhile; so an id is given once. Microseconds."""
        fd = files.open_(self._sessions, os.O_RDONLY)
        try:
            if not files.flock_within(fd, 10.0):
                raise Locked("another process is creating or deleting a session", session=session)
            yield
        finally:
            files.let_go(fd)

    def _anchor(self, folder: str) -> None:
        """Bring a folder's entries to the disk, and its own name, and those above it up to `home`'s. Raises OSError.

        Names above do not go away, so they are synced once a process.
        """
        files.sync_path(folder)
        home = str(self.home)
        while folder not in self._anchored:
            above = os.path.dirname(folder) or "."  # noqa: PTH120
            if folder == home:
                with suppress(PermissionError):  # the folder that holds `home` may not be ours to open
                    files.sync_path(above)
                self._anchored.add(folder)
                return
            files.sync_path(above)
            self._anchored.add(folder)
            folder = above
