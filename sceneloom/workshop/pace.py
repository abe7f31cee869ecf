"""The pace of one supplier: how many calls at once, how many a minute, and when to leave the provider alone.

It is kept in memory, by each worker for itself: what a restart forgets, the next few calls tell again.
"""

import asyncio
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import structlog
from aiolimiter import AsyncLimiter

from models.breaker import Breaker, BreakerState, is_ill_health
from models.errors import ErrorCode, OutcomeUnknown, ProviderFailure
from models.policy import RETRIES, retry_delay
from models.ports import Clock

LOOKS: Final = 4
"""So many jobs look into the store at once before they are ordered, so that they come up in their order."""

POLLS: Final = 32
"""So many polls of one provider run at once."""

COLLECTIONS: Final = 4
"""So many outputs of one provider are fetched and checked at once: each may need hundreds of megabytes."""

BURST_SHARE: Final = 0.1
"""The share of a minute's calls that may be made at once; after that they are spread evenly."""

SPREAD_SHARE: Final = 0.1
"""Jobs that waited come back over so much of their wait, and not all in one moment."""

PATIENCE: Final = timedelta(hours=1)
"""So long jobs wait for a provider that rests; then they fail, so that a fallback or a person can act."""

Outcome = ProviderFailure | OutcomeUnknown | None
"""How a call ended; None is a success."""

_MOST_LIMITS: Final = RETRIES[ErrorCode.PROVIDER_RATE_LIMITED].calls - 1
_log = structlog.get_logger(__name__)


class Pace:
    """Says when the next call to one supplier may start.

    *heeds* outcomes or does not: a local supplier answers each job by itself, so that one failure says
    nothing about the next. `per_minute` 0 is no limit; *chance* returns numbers from 0 to 1.
    """

    def __init__(
        self,
        *,
        provider: str,
        parallel: int,
        per_minute: int,
        heeds: bool,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.gate = asyncio.Semaphore(parallel)
        self.looks = asyncio.Semaphore(LOOKS)
        self.polls = asyncio.Semaphore(POLLS)
        self.collections = asyncio.Semaphore(COLLECTIONS)
        self._provider = provider
        self._limiter = _limiter(per_minute) if per_minute else None
        self._heeds = heeds
        self._chance = chance
        self._breaker = Breaker()
        self._paused_until: datetime | None = None
        self._limits = 0
        self._trial_of: str | None = None

    def wait_until(self, now: datetime) -> datetime | None:
        """Return when a job should ask again, or None where the next call may start at *now*.

        Raises `ProviderFailure` where it is not worth the wait.
        """
        waits = [self._pause_at(now), self._rest_at(now)]
        until = max((wait for wait in waits if wait is not None), default=None)
        return until and until + (until - now) * SPREAD_SHARE * self._chance()

    def _pause_at(self, now: datetime) -> datetime | None:
        until = self._paused_until
        if until is None or until <= now:
            return None
        if until - now > PATIENCE:
            raise ProviderFailure(ErrorCode.PROVIDER_RATE_LIMITED, f"no calls before {until.isoformat()}")
        return until

    def _rest_at(self, now: datetime) -> datetime | None:
        until, since = self._breaker.next_call(now), self._breaker.ill_since
        if until is not None and since is not None and now - since > PATIENCE:
            raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, f"ill since {since.isoformat()}")
        return until

    async def turn(self, clock: Clock, caller: str) -> datetime | None:
        """Wait for the rate limit; return None where a call of *caller* begins, else when to ask again."""
        until = self.wait_until(clock.now())
        if until is None and self._limiter is not None:
            await self._limiter.acquire()
            until = self.wait_until(clock.now())
        if until is None:
            if self._breaker.state(clock.now()) is BreakerState.HALF_OPEN:
                self._trial_of = caller
            self._breaker = self._breaker.calling(clock.now())
        return until

    def learned(self, outcome: Outcome, now: datetime, caller: str) -> None:
        """Hear how a call of *caller* ended."""
        if not self._heeds:
            return
        if isinstance(outcome, ProviderFailure) and outcome.code is ErrorCode.PROVIDER_RATE_LIMITED:
            self._pause(outcome.retry_after, now)
            self.not_called(caller)
            return
        self._limits = 0
        before = self._breaker
        self._breaker = before.failed(now) if is_ill_health(outcome) else before.answered()
        self._tell_of(before, now)

    def not_called(self, caller: str) -> None:
        """Hear that a call of *caller* tells nothing: if it was the trial, another one may be it."""
        if self._trial_of == caller:
            self._trial_of = None
            self._breaker = self._breaker.unjudged()

    def _pause(self, retry_after: float | None, now: datetime) -> None:
        """Have every job wait, as each would meet the same limit."""
        self._limits = min(self._limits + 1, _MOST_LIMITS)
        code = ErrorCode.PROVIDER_RATE_LIMITED
        seconds = (
            retry_delay(code, self._limits, jitter=self._chance()) if retry_after is None else retry_after
        )
        until = now + timedelta(seconds=seconds or 0.0)
        if self._paused_until is None or until > self._paused_until:
            self._paused_until = until
            _log.warning("pace.paused", provider=self._provider, until=until.isoformat())

    def _tell_of(self, before: Breaker, now: datetime) -> None:
        after = self._breaker
        if after.open_until is not None and after.open_until != before.open_until:
            _log.warning("pace.opened", provider=self._provider, until=after.open_until.isoformat())
        elif before.open_until is not None and after.state(now) is BreakerState.CLOSED:
            _log.info("pace.closed", provider=self._provider)


def _limiter(per_minute: int) -> AsyncLimiter:
    burst = max(1.0, per_minute * BURST_SHARE)
    return AsyncLimiter(burst, time_period=60.0 * burst / per_minute)
