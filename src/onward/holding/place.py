"""Where it is kept what checks came to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from onward.evidence.cache import Cache

FILE = "evidence.db"
"""Beside the catalogue: what files were when they were last hashed, and what checks came to. Derived."""


@contextmanager
def cache_of(home: Path | None, tenant: str) -> Iterator[Cache | None]:
    """What is kept for a tenant. None where nothing is to be, or a back end has no home."""
    if home is None:
        yield None
        return
    cache = Cache(home / tenant / FILE)
    try:
        yield cache
    finally:
        cache.close()


def forget(home: Path | None, tenant: str, sessions: Sequence[str]) -> None:
    """Let nothing be kept of sessions that were erased. `home`: of the back end; None = it has none."""
    if home is None:
        return
    for aside in (home / tenant).glob(f"{FILE}.damaged-*"):  # of an older version, or unreadable: it may have anything
        aside.unlink(missing_ok=True)
    if (home / tenant / FILE).exists():
        with cache_of(home, tenant) as cache:
            assert cache is not None
            cache.shelf.drop(sessions)
