"""Somebody sets the wall clock while tasks run: none is given up early, none waits for the old time."""

from datetime import timedelta

import pytest

from models.errors import ErrorCode
from models.job_events import JobFailed
from sceneloom.workshop.workshop import Workshop
from tests.runner.test_runner import Bench, Tasks, accepted

HOUR = 3600.0


async def a_task_under_way() -> Bench:
    bench = Bench(Tasks(), repeatable=False)
    bench.runner._mind_the_clock()
    bench.runner.take(accepted())
    await bench.run()
    return bench


def set_clock(bench: Bench, seconds: float) -> None:
    """Set the wall clock, while no time passes."""
    bench.clock.advance(seconds)
    bench.set_back -= seconds
    bench.runner._mind_the_clock()


async def passes(bench: Bench, seconds: float) -> None:
    bench.clock.advance(seconds)
    bench.runner._mind_the_clock()
    await bench.run()


async def test_a_task_is_not_given_up_because_the_clock_was_set_forward_but_in_its_own_time() -> None:
    bench = await a_task_under_way()
    set_clock(bench, HOUR)
    await passes(bench, 60)
    assert "poll" in bench.maker.calls
    assert bench.outbox.of(JobFailed) == []

    workshop: Workshop = bench.runner._workshop
    await passes(bench, workshop.deadline(accepted()).total_seconds())

    assert [event.error_code for event in bench.outbox.of(JobFailed)] == [ErrorCode.PROVIDER_TIMEOUT]


async def test_a_task_is_polled_within_a_minute_after_the_clock_was_set_back() -> None:
    bench = await a_task_under_way()
    set_clock(bench, -HOUR)
    polls = bench.maker.calls.count("poll")

    await passes(bench, 61)

    assert bench.maker.calls.count("poll") == polls + 1


@pytest.mark.parametrize("seconds", [0.0, 5.0, -5.0])
async def test_a_clock_that_is_only_corrected_a_little_moves_nothing(seconds: float) -> None:
    bench = await a_task_under_way()
    first = bench.runner.agenda.first
    set_clock(bench, seconds)

    assert bench.runner.agenda.first == first
    assert first is not None
    assert first - bench.clock.now() < timedelta(seconds=15)
