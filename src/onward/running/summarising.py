"""Who writes the summary of a compaction: a model, or nobody, and then it is picked from the events."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import msgspec

from onward.context.model import ModelClient
from onward.context.summaries.extract import extract
from onward.context.summaries.summary import Source, Summary
from onward.context.windows import window_of
from onward.model.messages import Model
from onward.reading import View

if TYPE_CHECKING:
    from onward.running.compacting import AsyncWriter, Writer

SPEAKING = ("assistant/message", "request/header")
"""Types of events that name the model of a path."""


def model_of(view: View) -> Model | None:
    """The model that a path was last worked on with, or None."""
    path = view.path
    for low, high in reversed(path.ranges):
        for seq in range(high, low - 1, -1):
            if seq in path and view.state.tree.has_node(seq):
                event = view.log.chain.stored(seq)
                found = event.data.get("model") if event.type in SPEAKING and isinstance(event.data, dict) else None
                if isinstance(found, dict) and found.get("name"):
                    return msgspec.convert(found, Model)
    return None


def known_window(view: View) -> int | None:
    """The window of a path's model in tokens, or None where it is not known."""
    return window_of(model_of(view))


def async_writer_of(client: ModelClient | None, window: int | None) -> AsyncWriter:
    """A writer that asks a model, or without one picks."""

    async def write(source: Source) -> Summary:
        if client is None:
            return extract(source)
        from onward.context.summaries.asking import summarise

        return await summarise(client, source, window=window)

    return write


def writer_of(client: ModelClient | None, window: int | None) -> Writer:
    """The same for programs without an event loop; where one runs in this thread, another thread waits."""

    def write(source: Source) -> Summary:
        if client is None:
            return extract(source)
        return _alone(client, source, window)

    return write


def _alone(client: ModelClient, source: Source, window: int | None) -> Summary:
    async def work() -> Summary:
        try:
            return await async_writer_of(client, window)(source)
        finally:
            close = getattr(client, "aclose", None)
            if close is not None:
                await close()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    out: list[Summary | BaseException] = []

    def run() -> None:
        try:
            out.append(asyncio.run(work()))
        except BaseException as error:  # noqa: BLE001 - raised again below
            out.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(out[0], BaseException):
        raise out[0]
    return out[0]
