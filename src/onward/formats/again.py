"""Importing many files, most of which were imported before: those that are as they were are not opened."""

from __future__ import annotations

from collections.abc import Sequence
from os import stat_result
from pathlib import Path

import msgspec

from onward.formats.importing import Imported, Progress, import_file
from onward.formats.known import FORMATS
from onward.formats.protocol import Format
from onward.log.sources import Source
from onward.store import Store


class Again:
    """One run over many files.

    Args:
        store: where to.
        formats: the formats that the files may have.
    """

    def __init__(self, store: Store, formats: Sequence[Format] = FORMATS) -> None:
        self._store = store
        self._formats = formats
        self._names = {format_.name for format_ in formats}
        self._logs = {row.session: (row.size, row.mtime_ns) for row in store.sessions()}
        self._sources = {
            path: source for path, source in store.catalogue.sources.all().items() if source.session in self._logs
        }

    def known(self, path: Path) -> Source | None:
        """What is remembered of a file, by its real path; None when it was not imported."""
        return self._sources.get(str(path))

    def unchanged(self, path: Path, size: int, mtime_ns: int) -> bool:
        """Whether a file, by its real path, is as it was when it was imported."""
        known = self.known(path)
        return known is not None and (known.size, known.mtime_ns) == (size, mtime_ns)

    def import_file(self, path: Path, *, progress: Progress | None = None) -> Imported:
        """As `importing.import_file`, but a file that is as it was is not read."""
        real = path.resolve()
        try:
            stat = real.stat()
        except OSError:
            return import_file(self._store, path, self._formats, progress=progress)  # says what is wrong with it
        known = self.known(real)
        if known is not None and known.format in self._names and _same(known, stat):
            found = self._store.backend.locate(known.session)
            if (found.size, found.mtime_ns) == (known.log_size, known.log_mtime_ns):
                version = msgspec.json.decode(known.version)
                return Imported(
                    str(real), known.session, known.format, version, known.events, known.messages, known.branches, 0, []
                )
        imported = import_file(self._store, path, self._formats, progress=progress)
        self.remember(imported, stat)
        return imported

    def remember(self, imported: Imported, stat: stat_result) -> None:
        """Keep in the catalogue what came of a file.

        Args:
            imported: what came of it.
            stat: of the file, from before it was read.
        """
        found = self._store.backend.locate(imported.session)
        source = Source(
            path=imported.path,
            session=imported.session,
            format=imported.format,
            version=msgspec.json.encode(imported.version).decode(),
            size=stat.st_size,
            mtime_ns=stat.st_mtime_ns,
            inode=stat.st_ino,
            log_size=found.size,
            log_mtime_ns=found.mtime_ns,
            events=imported.events,
            messages=imported.messages,
            branches=imported.branches,
        )
        self._store.catalogue.sources.put([source])
        self._sources[source.path] = source


def _same(known: Source, stat: stat_result) -> bool:
    return (known.size, known.mtime_ns, known.inode) == (stat.st_size, stat.st_mtime_ns, stat.st_ino)
