"""Which failed model requests are tried again, when, and how often. The clock, the sleep and the chance are given.

Waits grow from one attempt to the next, with chance in them so that many clients do not come back at once; a provider
that says how long to wait is obeyed. Overflow is not tried again here: the same request will not fit later either.
"""

from __future__ import annotations

import asyncio
import random as chance
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from onward.context.model import (
    RETRYABLE,
    FailureKind,
    ModelClient,
    ModelFailed,
    ModelReply,
    ModelRequest,
    Piece,
    reply_of,
)


@dataclass(frozen=True, slots=True)
class Retrying:
    """A policy.

    Attributes:
        attempts: requests in all, the first one counted.
        kinds: of failures that are tried again, where the failure says itself that this may help.
        first: seconds before the second attempt; each later wait is `factor` times as long, `longest` at most.
        jitter: the share of a wait that is left to chance: 0.5 = between half of it and all.
        patience: seconds; a provider that asks for a longer wait than this is not waited for.
        within: seconds from the beginning of the first attempt; no attempt begins later. None = no such limit.
    """

    attempts: int = 4
    kinds: frozenset[FailureKind] = RETRYABLE
    first: float = 1.0
    factor: float = 2.0
    longest: float = 30.0
    jitter: float = 0.5
    patience: float = 120.0
    within: float | None = None

    def wait(self, failed: ModelFailed, attempt: int, *, elapsed: float = 0.0, draw: float = 1.0) -> float | None:
        """How long to wait before the next attempt.

        Args:
            failed: how the last one failed.
            attempt: its number, from 1.
            elapsed: seconds since the first attempt began.
            draw: a random number from 0 to 1.

        Returns:
            Seconds; None = do not try again.
        """
        if attempt >= self.attempts or not failed.retryable or failed.kind not in self.kinds:
            return None
        # A run that is told to try for ever must not compute a power that no float holds.
        own = min(self.first * self.factor ** min(attempt - 1, 64), self.longest)
        wait = own * (1 - self.jitter + self.jitter * draw)
        if failed.retry_after is not None:
            if failed.retry_after > self.patience:
                return None
            # Not before the time that was asked for, and not all clients at that time.
            wait = failed.retry_after + self.jitter * draw * min(self.first, failed.retry_after)
        if self.within is not None and elapsed + wait > self.within:
            return None
        return wait


NEVER = Retrying(attempts=1)
"""The policy that tries nothing again."""

Failed = Callable[[ModelFailed, int, float | None], None]
"""Told of each failed attempt: how, its number, and the seconds before the next one (None = it was the last)."""


async def reply_with_retries(
    client: ModelClient,
    request: ModelRequest,
    policy: Retrying,
    *,
    on_piece: Callable[[Piece], None] | None = None,
    on_failed: Failed | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    random: Callable[[], float] = chance.random,
    clock: Callable[[], float] = time.monotonic,
) -> ModelReply:
    """Ask a model, again where the policy says so, and wait for the reply.

    Args:
        client: the model.
        request: what is asked, the same each time.
        policy: see `Retrying`.
        on_piece: is given each piece as it comes. After a failure those of the attempt before it are void.
        on_failed: is told of each failed attempt before the wait, so that it can be logged. What it raises ends this.
        sleep, random, clock: seconds to wait, a number from 0 to 1, seconds that only grow.

    Raises:
        ModelFailed: the last attempt's failure.
    """
    began = clock()
    attempt = 1
    while True:
        try:
            return await reply_of(client, request, on_piece)
        except ModelFailed as failed:
            wait = policy.wait(failed, attempt, elapsed=clock() - began, draw=random())
            if on_failed is not None:
                on_failed(failed, attempt, wait)
            if wait is None:
                raise
        await sleep(wait)
        attempt += 1
