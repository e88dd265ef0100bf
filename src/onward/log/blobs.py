"""Blobs in files: `blobs/<sha256>`, compressed with zlib."""

from __future__ import annotations

import re
import zlib
from contextlib import suppress
from hashlib import sha256 as _sha256

from onward.errors import BlobMissing
from onward.log import files

_NAME = re.compile(r"[0-9a-f]{64}")


class FileBlobs:
    """A session's blobs. See `backend.Blobs`.

    Args:
        folder: the session's folder.
        session: its id, for messages.
    """

    def __init__(self, folder: str, session: str) -> None:
        self._session_folder = folder
        self._folder = folder + "/blobs"
        self._session = session
        self._pending: set[str] = set()
        self._durable: set[str] = set()

    def put(self, data: bytes) -> str:
        """See `Blobs.put`. The bytes are written beside and renamed, so a blob is never seen half."""
        name = _sha256(data).hexdigest()
        if name in self._pending or name in self._durable:
            return name
        path = f"{self._folder}/{name}"
        with files.refusing("store a blob", path, session=self._session):
            # One that is there may have lost its bytes in a power failure before it was ever referred to.
            if self._read(path, name) is None:
                files.make_dirs(self._folder)
                files.write_beside(path, zlib.compress(data, 6), sync=False)
        self._pending.add(name)
        return name

    def get(self, sha256: str) -> bytes:
        """See `Blobs.get`."""
        path = f"{self._folder}/{sha256}"
        data = None
        if _NAME.fullmatch(sha256):
            with files.refusing("read a blob", path, session=self._session):
                data = self._read(path, sha256)
        if data is None:
            raise BlobMissing(f"the blob {sha256} is not there or damaged", session=self._session, path=path)
        return data

    def sync(self) -> None:
        """See `Blobs.sync`."""
        if not self._pending:
            return
        with files.refusing("sync the blobs", self._folder, session=self._session):
            names = sorted(self._pending)
            for name in names:
                files.sync_path(f"{self._folder}/{name}")
            files.sync_path(self._folder)
            files.sync_path(self._session_folder)
        self._durable.update(names)
        self._pending.difference_update(names)

    def _read(self, path: str, name: str) -> bytes | None:
        """The blob's bytes, None if it is absent or not what its name promises."""
        with suppress(FileNotFoundError, zlib.error):
            data = zlib.decompress(files.read_file(path))
            if _sha256(data).hexdigest() == name:
                return data
        return None
