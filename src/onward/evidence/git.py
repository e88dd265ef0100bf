"""What a repository below a root knows of its checkout. Its files are read here: git is not run, so that nothing of a
hostile repository is, and nothing is opened outside: no alternates, includes, or directories that it only points to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from onward.evidence import gitobjects
from onward.evidence.files import Missing, Parts, Skipped, Tree, read

LARGEST_INDEX = 128 << 20
"""Bytes of an index that is read: about a million files."""

LARGEST_TEXT = 1 << 20
"""Bytes of a small file of git's."""

PATHS = 100
"""Paths of one blob that are given."""

_SHA256 = re.compile(rb"^\s*objectformat\s*=\s*\"?sha256\b", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Repository:
    """Where a repository's files are: the checkout's own in `own`, what all its checkouts share in `common`."""

    tree: Tree
    own: Parts
    common: Parts


def paths_of(root: str, blobs: Collection[str]) -> dict[str, list[str]]:
    """Where git's index has blobs: id -> paths relative to `root`, at most a hundred each. Empty without a repository.

    Args:
        root: the top of a checkout.
        blobs: ids, in hexadecimal digits.
    """
    out: dict[str, list[str]] = {}
    repository = _repository(root) if blobs else None
    if repository is None:
        return out
    index = _read(repository.tree, (*repository.own, "index"), LARGEST_INDEX)
    config = _read(repository.tree, (*repository.common, "config"), LARGEST_TEXT)
    wanted = {bytes.fromhex(id_) for id_ in blobs if _is_id(id_)}
    for id_, path in _entries(index or b"", 32 if _SHA256.search(config or b"") else 20):
        if id_ in wanted:
            found = out.setdefault(id_.hex(), [])
            if len(found) < PATHS:
                found.append(os.fsdecode(path))
    return out


def blob(root: str, id_: str) -> bytes | None:
    """The bytes of a blob that the repository has; None where it has not, or where they are more than 4 MiB."""
    repository = _repository(root) if _is_id(id_) else None
    if repository is None:
        return None
    return gitobjects.blob(repository.tree, (*repository.common, "objects"), id_)


def _is_id(text: str) -> bool:
    return len(text) in (40, 64) and not set(text) - set("0123456789abcdef")


def _repository(root: str) -> _Repository | None:
    """The repository of a checkout: the one below the root, or the one that says itself that the root is a worktree
    of it. What a root alone points to is not followed: it may be anybody's."""
    tree = Tree(root)
    pointer = _read(tree, (".git",), LARGEST_TEXT)
    if pointer is None:
        return _Repository(tree, (".git",), (".git",))
    at = os.path.normpath(os.path.join(tree.root, os.fsdecode(pointer.removeprefix(b"gitdir:").strip())))  # noqa: PTH118
    worktrees, name = os.path.split(at)
    common = os.path.dirname(worktrees)  # noqa: PTH120
    if os.path.basename(worktrees) != "worktrees" or "\0" in at:  # noqa: PTH119
        return None
    main = Tree(common)
    answer = os.fsdecode(_read(main, ("worktrees", name, "gitdir"), LARGEST_TEXT) or b"\0").strip()
    if "\0" in answer or os.path.realpath(os.path.join(at, answer)) != os.path.join(tree.root, ".git"):  # noqa: PTH118
        return None
    return _Repository(main, ("worktrees", name), ())


def _read(tree: Tree, parts: Parts, largest: int) -> bytes | None:
    """A small file; None where there is none that may be read."""
    try:
        with tree.directory(parts[:-1]) as fd:
            return read(fd, parts[-1], largest)[0]
    except (Missing, Skipped):
        return None


def _entries(index: bytes, length: int) -> Iterator[tuple[bytes, bytes]]:
    """The ids and paths in an index, as far as it is one. Format: gitformat-index in git's documentation.

    Args:
        length: bytes of an id.
    """
    version, total = int.from_bytes(index[4:8]), int.from_bytes(index[8:12])
    if index[:4] != b"DIRC" or version not in (2, 3, 4):
        return
    at, path = 12, b""
    for _ in range(total):
        id_, flags = index[at + 40 : at + 40 + length], at + 40 + length
        begin = flags + (4 if len(index) > flags and index[flags] & 0x40 else 2)
        if version == 4:
            stripped, begin = _number(index, begin)
            path = path[: max(0, len(path) - stripped)]
        end = index.find(b"\0", begin)
        if end < 0:
            return
        path = path + index[begin:end] if version == 4 else index[begin:end]
        if len(path) > 4_096:
            return  # no path; they could grow with each
        yield id_, path
        at = end + 1 if version == 4 else at + ((end - at) // 8 + 1) * 8


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number in git's encoding of offsets, and where it ends."""
    value = -1
    while at < len(data):
        value = (value + 1) << 7 | data[at] & 127
        at += 1
        if data[at - 1] < 128 or value > 1 << 32:
            break
    return value, at
