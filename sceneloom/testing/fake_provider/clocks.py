"""The time of the fake provider: real, faster than real, or moved by hand."""

import asyncio
import heapq
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Protocol

Action = Callable[[], Awaitable[None]]


class Time(Protocol):
    """Everything of the fake provider that takes time asks here. Seconds are the scenario's seconds."""

    def now(self) -> datetime:
        """Return the time that stamps carry, in UTC: clients compare it with their own clock."""
        ...

    def elapsed(self) -> float:
        """Return the scenario's seconds since the start."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return when *seconds* of the scenario have passed."""
        ...

    def later(self, seconds: float, action: Action) -> None:
        """Run *action* when *seconds* of the scenario have passed; 0 means now, on its own."""
        ...

    async def close(self) -> None:
        """Drop what is still to come."""
        ...


class _Errands:
    """Actions that run on their own and must not outlive their clock."""

    def __init__(self) -> None:
        self._running: set[asyncio.Future[None]] = set()

    def start(self, action: Action) -> None:
        errand = asyncio.ensure_future(action())
        self._running.add(errand)
        errand.add_done_callback(self._running.discard)

    async def settle(self) -> None:
        while self._running:
            await asyncio.wait(set(self._running))

    async def drop(self) -> None:
        for errand in self._running:
            errand.cancel()
        await self.settle()


class RunningClock:
    """Runs *speed* times as fast as real time; stamps stay real, because clients have clocks too."""

    def __init__(self, speed: float = 1.0) -> None:
        if speed <= 0:
            raise ValueError("the speed of a running clock is more than 0")
        self.speed = speed
        self._errands = _Errands()
        self._start = time.monotonic()

    def now(self) -> datetime:
        """Return the real time."""
        return datetime.now(UTC)  # noqa: TID251 -- this is a Clock

    def elapsed(self) -> float:
        """Return the scenario's seconds since the start."""
        return (time.monotonic() - self._start) * self.speed

    async def sleep(self, seconds: float) -> None:
        """Return when *seconds* of the scenario have passed."""
        if seconds > 0:
            await asyncio.sleep(seconds / self.speed)

    def later(self, seconds: float, action: Action) -> None:
        """Run *action* when *seconds* of the scenario have passed."""
        self._errands.start(partial(self._wait_and_act, seconds, action))

    async def _wait_and_act(self, seconds: float, action: Action) -> None:
        await self.sleep(seconds)
        await action()

    async def close(self) -> None:
        """Drop what is still to come."""
        await self._errands.drop()


class HandClock:
    """Stands still until it is moved; stamps move with it."""

    def __init__(self, start: datetime | None = None) -> None:
        self._start = start or datetime.now(UTC)  # noqa: TID251 -- this is a Clock
        self._elapsed = 0.0
        self._due: list[tuple[float, int, Action]] = []
        self._order = count()
        self._errands = _Errands()

    def now(self) -> datetime:
        """Return the time to which this clock was moved."""
        return self._start + timedelta(seconds=self._elapsed)

    def elapsed(self) -> float:
        """Return by how many seconds this clock was moved."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Return when this clock has been moved by *seconds*."""
        if seconds <= 0:
            return
        woken = asyncio.Event()
        self.later(seconds, partial(_set, woken))
        await woken.wait()

    def later(self, seconds: float, action: Action) -> None:
        """Run *action* when this clock has been moved by *seconds*."""
        if seconds <= 0:
            self._errands.start(action)
        else:
            heapq.heappush(self._due, (self._elapsed + seconds, next(self._order), action))

    async def advance(self, seconds: float) -> None:
        """Move by *seconds*, stop at every action on the way, and return when all of them are done."""
        target = self._elapsed + seconds
        await self._settle()
        while self._due and self._due[0][0] <= target:
            self._elapsed, _, action = heapq.heappop(self._due)
            await action()
            await self._settle()
        self._elapsed = target

    async def _settle(self) -> None:
        # A request that slept goes on in the loop's next turns, and may plan something for this very moment.
        for _ in range(3):
            await asyncio.sleep(0)
        await self._errands.settle()

    async def close(self) -> None:
        """Drop what is still to come."""
        self._due.clear()
        await self._errands.drop()


async def _set(event: asyncio.Event) -> None:
    event.set()
