"""Work that waits for a disk or a lock, done in a thread that is never left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def through(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do something in a thread and wait until it is done, also when this task is cancelled meanwhile."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:
                continue  # once more: the line is still being written
        if not task.cancelled():
            task.exception()  # seen; the cancellation goes before it
        raise
