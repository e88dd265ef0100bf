"""The pages of a session, asked of their servers: each once, several at once, bounded in number and time."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from queue import Empty, SimpleQueue
from urllib.parse import urlsplit

from onward.evidence import urls
from onward.evidence.judging import Judged
from onward.evidence.observation import Response
from onward.evidence.urls import LATE, Deadline
from onward.evidence.words import counted

MOST = 500
"""Pages that are asked for."""

SECONDS = 60.0
"""For all of them."""

AT_ONCE = 8
"""Pages that are waited for at a time."""

PER_HOST = 2
"""Of one host: a check is no load test."""


@dataclass(slots=True)
class _Page:
    """A page, and by whom it is wanted: numbers of observations, and what the server said then."""

    url: str
    host: str
    wanted: list[tuple[int, Response]] = field(default_factory=list)


def check_pages(
    pages: Sequence[tuple[int, str, Response]],
    *,
    most: int = MOST,
    seconds: float = SECONDS,
    at_once: int = AT_ONCE,
    per_host: int = PER_HOST,
) -> tuple[dict[int, Judged], str | None]:
    """What became of pages; those that were looked at last are asked for first.

    Args:
        pages: the number of an observation, the address as recorded, and what its server said then; in their order.
        most: pages to ask for; the same address counts once.
        seconds: for all of them.
        at_once: pages to wait for at a time.
        per_host: of them, those of one host.

    Returns:
        By number of the observation, what became of it: all numbers are there. And what was left out, in a sentence.
    """
    all_ = _once(pages)
    out = {
        number: _unasked("not asked", f"only the {most:,} pages looked at last are")
        for page in all_[most:]
        for number, _ in page.wanted
    }
    late = _asked(all_[:most], seconds, at_once, per_host, out)
    said = []
    if late:
        said.append(f"{counted(late, 'page')} could not be asked for within {seconds:g} seconds")
    if len(all_) > most:
        said.append(f"{counted(len(all_) - most, 'page')} beyond the {most:,} looked at last were not asked for")
    return out, "; ".join(said) or None


def _once(pages: Sequence[tuple[int, str, Response]]) -> list[_Page]:
    """Each page once, those that were looked at last first."""
    found: dict[str, _Page] = {}
    for number, url, then in reversed(pages):
        sent = url.partition("#")[0]  # a fragment is never sent
        if sent not in found:
            found[sent] = _Page(sent, _host(sent))
        found[sent].wanted.append((number, then))
    return list(found.values())


def _host(url: str) -> str:
    """Whose page it is; empty for what is no address: asking for that says so."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _unasked(now: str, note: str) -> Judged:
    return Judged("unverifiable", now, note)


def _asked(pages: Sequence[_Page], seconds: float, at_once: int, per_host: int, out: dict[int, Judged]) -> int:
    """Ask for pages, and put what became of them into `out`.

    The threads are daemons, and none is waited for: an interrupt ends this at once, and nothing keeps the process.

    Returns:
        How many were not asked for, because the time was up.
    """
    until = time.monotonic() + seconds
    waiting = list(pages)
    running: dict[int, tuple[_Page, Deadline]] = {}
    done: SimpleQueue[tuple[int, list[Judged] | BaseException]] = SimpleQueue()
    started = count()
    try:
        while waiting or running:
            left = until - time.monotonic()
            while left > 0 and (page := _next(waiting, [one for one, _ in running.values()], at_once, per_host)):
                waiting.remove(page)
                which, deadline = next(started), Deadline(min(urls.SECONDS, left))
                running[which] = page, deadline
                threading.Thread(
                    target=_ask, args=(which, page, deadline, done), name="onward-page", daemon=True
                ).start()
            try:
                which, got = done.get(timeout=max(0.0, left))
            except Empty:
                break
            page, _ = running.pop(which)
            if isinstance(got, BaseException):
                raise got
            out.update({number: judged for (number, _), judged in zip(page.wanted, got, strict=True)})
    finally:
        for _, deadline in running.values():
            deadline.end()
    for page, _ in running.values():
        out.update({number: _unasked("no answer", LATE) for number, _ in page.wanted})
    for page in waiting:
        out.update({number: _unasked("not asked", "there was no time left for it") for number, _ in page.wanted})
    return len(waiting)


def _next(waiting: Sequence[_Page], running: Sequence[_Page], at_once: int, per_host: int) -> _Page | None:
    """The page to ask for now; None where enough are waited for."""
    if len(running) >= at_once:
        return None
    busy = Counter(page.host for page in running)
    return next((page for page in waiting if busy[page.host] < per_host), None)


def _ask(
    which: int, page: _Page, deadline: Deadline, done: SimpleQueue[tuple[int, list[Judged] | BaseException]]
) -> None:
    try:
        with deadline:
            done.put((which, urls.ask(page.url, [then for _, then in page.wanted], deadline)))
    except BaseException as error:  # noqa: BLE001 - it is raised where the answer is waited for
        done.put((which, error))
