"""Following many files: what is new in any of them is appended to its session, new files become sessions.

Files are looked at by name, size and time of change; nothing but Python is needed for it, and it works on every kind
of file system. The clock is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from onward.errors import BadSource, FormatUnsupported, NotFound, OnwardError
from onward.formats.again import Again
from onward.formats.growing import NotFollowed
from onward.formats.importing import Imported
from onward.formats.known import FORMATS
from onward.formats.live import Live
from onward.formats.places import Found
from onward.formats.protocol import Format
from onward.store import Store

QUIET = 10.0
"""Seconds without growth after which an import is closed."""

LONGEST = 60.0
"""Seconds after which it is closed although the file goes on growing."""

IDLE = 600.0
"""Seconds without growth after which a file's reading is given up; when it grows again it is read from its start."""

_FINAL = (BadSource, FormatUnsupported, NotFound)
"""What will be so until the file changes. Anything else (a session that somebody writes) is tried again."""


@dataclass(slots=True)
class _Followed:
    """A file that grows: its reading, when it grew (first since the import was closed, and last), whether it rests."""

    live: Live
    since: float
    last: float
    rests: bool = False


class Watch:
    """Follows files.

    Args:
        store: where to.
        look: lists the files there are now.
        formats: the formats that they may have.
        tell: called for everything that was imported; `new` is what came in just now.

    Attributes:
        imported: by path, what each file has become; `new` is all that came in since the watch began.
        failed: by path, why a file could not be imported when it was last tried.
    """

    def __init__(
        self,
        store: Store,
        look: Callable[[], Iterable[Found]],
        formats: Sequence[Format] = FORMATS,
        *,
        tell: Callable[[Imported], None] = lambda _: None,
    ) -> None:
        self._store, self._look, self._tell = store, look, tell
        self._formats = {format_.name: format_ for format_ in formats}
        self._again = Again(store, formats)
        self._seen: dict[Path, tuple[int, int]] = {}
        self._followed: dict[Path, _Followed] = {}
        self.imported: dict[Path, Imported] = {}
        self.failed: dict[Path, OnwardError] = {}

    def round(self, now: float) -> None:
        """Look at every file once.

        Args:
            now: seconds on a clock that never goes back.
        """
        for file in self._look():
            mark = (file.size, file.mtime_ns)
            if self._seen.get(file.path) == mark:
                continue
            if file.path not in self._seen and self._again.unchanged(file.path, *mark):
                self._seen[file.path] = mark
                continue
            try:
                self._advance(file.path, now)
            except OnwardError as error:
                self.failed[file.path] = error
                if isinstance(error, _FINAL):
                    self._seen[file.path] = mark
            else:
                self.failed.pop(file.path, None)
                self._seen[file.path] = mark
        for path, followed in list(self._followed.items()):
            quiet = now - followed.last >= QUIET
            if not followed.rests and (quiet or now - followed.since >= LONGEST):
                followed.since = now
                followed.rests = self._settle(path, followed) and quiet
            if followed.rests and now - followed.last >= IDLE:
                self._followed.pop(path, None)

    def close(self) -> None:
        """Close what is open: after it every session says how far its file was imported."""
        for path, followed in list(self._followed.items()):
            self._settle(path, followed)
        self._followed.clear()

    # --- one file -----------------------------------------------------------------------------------------------

    def _advance(self, path: Path, now: float) -> None:
        followed = self._followed.get(path) or self._begin(path, now)
        if followed is None:
            self._import(path)
            return
        try:
            new = followed.live.take()
        except (NotFollowed, FileNotFoundError):
            self._give_up(path, followed)
            self._import(path)
            return
        except BaseException:
            # What part of it is in the log is only known by looking; a reading cannot go back.
            if followed.live.broken:
                self._followed.pop(path, None)
            raise
        if followed.rests or followed.live.unsettled == new:
            followed.since = now
        followed.last, followed.rests = now, False
        if new:
            self._count(path, self.imported[path]._replace(new=new, warnings=[]))

    def _begin(self, path: Path, now: float) -> _Followed | None:
        """A reading for a file that has grown since it was imported; None for one that has to be read at once."""
        known = self._again.known(path)
        if path not in self.imported or known is None:
            return None
        format_ = self._formats[known.format]
        try:
            if path.stat().st_ino != known.inode or not Live.can_follow(format_):
                return None
            self._followed[path] = _Followed(Live(self._store, known.session, format_, path), now, now)
        except OSError:
            return None  # the import says what is wrong
        return self._followed[path]

    def _import(self, path: Path) -> None:
        self._count(path, self._again.import_file(path))

    def _settle(self, path: Path, followed: _Followed) -> bool:
        """Close a file's import; whether that could be done."""
        try:
            try:
                imported = followed.live.settle()
            except (NotFollowed, FileNotFoundError):
                self._give_up(path, followed)
                self._import(path)
                return True
            if imported is not None:
                self.imported[path] = imported._replace(new=self.imported[path].new)
                stat = path.stat()
                if followed.live.read_all(stat):
                    self._again.remember(imported, stat)
        except (OnwardError, FileNotFoundError) as error:
            gone = NotFound("no such file any more", path=str(path))
            self.failed[path] = error if isinstance(error, OnwardError) else gone
            return False
        self.failed.pop(path, None)
        return True

    def _give_up(self, path: Path, followed: _Followed) -> None:
        """End a reading; what it appended is closed first, for the file may no longer have it."""
        with suppress(NotFollowed):
            followed.live.close_import()
        self._followed.pop(path, None)

    def _count(self, path: Path, imported: Imported) -> None:
        before = self.imported.get(path)
        self.imported[path] = imported._replace(new=imported.new + (0 if before is None else before.new))
        if imported.new or before is None:
            self._tell(imported)
