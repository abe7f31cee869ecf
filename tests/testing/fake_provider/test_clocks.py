import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from sceneloom.testing.fake_provider.clocks import HandClock, RunningClock


def noting(notes: list[float], clock: HandClock | RunningClock) -> Callable[[], Awaitable[None]]:
    async def note() -> None:
        notes.append(round(clock.elapsed(), 3))

    return note


async def test_a_hand_clock_stops_at_every_action_on_the_way() -> None:
    clock, notes = HandClock(datetime(2026, 1, 1, tzinfo=UTC)), list[float]()
    for seconds in (5, 2, 9):
        clock.later(seconds, noting(notes, clock))
    await clock.advance(6)
    assert notes == [2, 5]
    assert clock.now() == datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=6)
    await clock.advance(3)
    assert notes == [2, 5, 9]


async def test_who_sleeps_on_a_hand_clock_goes_on_at_the_very_moment() -> None:
    clock, notes = HandClock(), list[float]()

    async def sleep_twice() -> None:
        await clock.sleep(3)
        clock.later(2, noting(notes, clock))
        await clock.sleep(4)
        notes.append(clock.elapsed())

    sleeper = asyncio.create_task(sleep_twice())
    await clock.advance(20)
    await sleeper
    assert notes == [5, 7]


async def test_a_hand_clock_waits_for_what_began_at_once() -> None:
    clock, notes = HandClock(), list[str]()

    async def slow() -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        notes.append("done")

    clock.later(0, slow)
    await clock.advance(0)
    assert notes == ["done"]


async def test_a_sleeper_that_was_cancelled_disturbs_nobody() -> None:
    clock = HandClock()
    sleeper = asyncio.create_task(clock.sleep(1))
    await asyncio.sleep(0)
    sleeper.cancel()
    await clock.advance(2)
    assert sleeper.cancelled()


async def test_a_fast_clock_makes_an_hour_short() -> None:
    clock, notes = RunningClock(36_000), list[float]()
    began = time.perf_counter()
    clock.later(1800, noting(notes, clock))
    await clock.sleep(3600)
    assert 0.1 <= time.perf_counter() - began < 5
    assert notes
    assert notes[0] >= 1800


async def test_a_closed_clock_drops_what_was_to_come() -> None:
    clock, notes = RunningClock(1), list[float]()
    clock.later(3600, noting(notes, clock))
    await clock.close()
    assert notes == []


def test_a_running_clock_must_run() -> None:
    with pytest.raises(ValueError, match="more than 0"):
        RunningClock(0)
