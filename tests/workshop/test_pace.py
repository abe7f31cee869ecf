"""The pace of one supplier, on a moved clock."""

import asyncio
from collections.abc import MutableMapping
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from models.errors import ErrorCode, OutcomeUnknown, ProviderFailure
from sceneloom.workshop.pace import Pace
from tests.fakes import START, MovedClock

DOWN = ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE)
BUSY = ProviderFailure(ErrorCode.PROVIDER_RATE_LIMITED)


def a_pace(*, per_minute: int = 0, heeds: bool = True, chance: float = 0.0) -> Pace:
    return Pace(provider="house", parallel=4, per_minute=per_minute, heeds=heeds, chance=lambda: chance)


def seconds_to_wait(pace: Pace, clock: MovedClock) -> float | None:
    until = pace.wait_until(clock.now())
    return None if until is None else (until - clock.now()).total_seconds()


def events(logs: list[MutableMapping[str, Any]]) -> list[tuple[str, str | None]]:
    return [(line["event"], line.get("until")) for line in logs]


def test_ill_health_opens_the_breaker_and_a_success_closes_it_and_both_are_logged() -> None:
    clock, pace = MovedClock(), a_pace()
    with capture_logs() as logs:
        for outcome in (DOWN, OutcomeUnknown("timeout"), DOWN, DOWN, DOWN):
            assert seconds_to_wait(pace, clock) is None
            pace.learned(outcome, clock.now(), "j")
        assert seconds_to_wait(pace, clock) == 30
        pace.learned(None, clock.now(), "j")

    assert seconds_to_wait(pace, clock) is None
    assert events(logs) == [
        ("pace.opened", (START + timedelta(seconds=30)).isoformat()),
        ("pace.closed", None),
    ]
    assert logs[0]["provider"] == "house"


async def test_the_first_call_after_the_rest_is_a_trial_and_the_others_wait_for_its_answer() -> None:
    clock, pace = MovedClock(), a_pace()
    for _ in range(5):
        pace.learned(DOWN, clock.now(), "j")
    clock.advance(30)

    answers = await asyncio.gather(*(pace.turn(clock, "j") for _ in range(10)))

    assert [answer is None for answer in answers] == [True] + [False] * 9
    pace.learned(DOWN, clock.now(), "j")
    assert seconds_to_wait(pace, clock) == 60


def test_one_limited_call_pauses_all_jobs_for_as_long_as_the_provider_says() -> None:
    clock, pace = MovedClock(), a_pace()

    pace.learned(ProviderFailure(ErrorCode.PROVIDER_RATE_LIMITED, retry_after=90.0), clock.now(), "j")
    pace.learned(ProviderFailure(ErrorCode.PROVIDER_RATE_LIMITED, retry_after=10.0), clock.now(), "j")

    assert seconds_to_wait(pace, clock) == 90
    clock.advance(90)
    assert seconds_to_wait(pace, clock) is None


def test_limits_without_a_word_of_the_provider_make_the_pause_longer_each_time() -> None:
    clock, pace, pauses = MovedClock(), a_pace(), []
    for _ in range(20):
        pace.learned(BUSY, clock.now(), "j")
        pause = seconds_to_wait(pace, clock)
        assert pause is not None
        pauses.append(pause)
        clock.advance(pause)

    assert pauses[:4] == [2.5, 5, 10, 20]
    assert pauses[-1] == 60
    pace.learned(None, clock.now(), "j")
    pace.learned(BUSY, clock.now(), "j")
    assert seconds_to_wait(pace, clock) == 2.5


def test_a_provider_that_is_ill_for_an_hour_is_not_waited_for_but_still_tried() -> None:
    clock, pace = MovedClock(), a_pace()
    for _ in range(5):
        pace.learned(DOWN, clock.now(), "j")
    while clock.now() <= START + timedelta(hours=1):
        clock.advance(seconds_to_wait(pace, clock) or 0.0)
        pace.learned(DOWN, clock.now(), "j")

    with pytest.raises(ProviderFailure) as failed:
        pace.wait_until(clock.now())
    assert failed.value.code is ErrorCode.PROVIDER_UNAVAILABLE
    clock.advance(300)
    assert seconds_to_wait(pace, clock) is None


def test_a_pause_that_would_last_for_hours_is_not_waited_for() -> None:
    clock, pace = MovedClock(), a_pace()
    pace.learned(ProviderFailure(ErrorCode.PROVIDER_RATE_LIMITED, retry_after=20_000.0), clock.now(), "j")

    with pytest.raises(ProviderFailure) as failed:
        pace.wait_until(clock.now())

    assert failed.value.code is ErrorCode.PROVIDER_RATE_LIMITED


def test_a_limit_is_no_sign_of_ill_health() -> None:
    clock, pace = MovedClock(), a_pace()
    for _ in range(4):
        pace.learned(DOWN, clock.now(), "j")
    for _ in range(10):
        pace.learned(ProviderFailure(ErrorCode.PROVIDER_RATE_LIMITED, retry_after=1.0), clock.now(), "j")
    clock.advance(1)

    assert seconds_to_wait(pace, clock) is None
    pace.learned(DOWN, clock.now(), "j")
    assert seconds_to_wait(pace, clock) == 30


def test_jobs_that_waited_come_back_one_after_another() -> None:
    clock = MovedClock()
    waits = []
    for chance in (0.0, 0.5, 1.0):
        pace = a_pace(chance=chance)
        pace.learned(ProviderFailure(ErrorCode.PROVIDER_RATE_LIMITED, retry_after=60.0), clock.now(), "j")
        waits.append(seconds_to_wait(pace, clock))

    assert waits == [60, 63, 66]


def test_what_a_local_supplier_does_with_one_job_says_nothing_about_the_next() -> None:
    clock, pace = MovedClock(), a_pace(heeds=False)
    for _ in range(10):
        pace.learned(DOWN, clock.now(), "j")
        pace.learned(BUSY, clock.now(), "j")

    assert seconds_to_wait(pace, clock) is None


async def test_no_more_calls_begin_in_a_minute_than_are_allowed() -> None:
    clock, pace = MovedClock(), a_pace(per_minute=600)
    loop = asyncio.get_running_loop()
    began = loop.time()

    assert await asyncio.gather(*(pace.turn(clock, "j") for _ in range(60))) == [None] * 60
    burst = loop.time() - began
    assert await asyncio.gather(*(pace.turn(clock, "j") for _ in range(5))) == [None] * 5

    # A tenth of the minute's calls at once, and then one each 0.1 s.
    assert loop.time() - began >= 0.49
    assert burst < 0.4


async def test_a_job_that_waited_for_the_rate_limit_asks_again_whether_the_provider_rests() -> None:
    clock, pace = MovedClock(), a_pace(per_minute=600)
    await asyncio.gather(*(pace.turn(clock, "j") for _ in range(60)))

    waiting = asyncio.create_task(pace.turn(clock, "j"))
    await asyncio.sleep(0)
    pace.learned(ProviderFailure(ErrorCode.PROVIDER_RATE_LIMITED, retry_after=60.0), clock.now(), "j")

    assert await waiting == START + timedelta(seconds=60)


@pytest.mark.parametrize("per_minute", [1, 7, 120, 60_000])
async def test_any_limit_lets_the_first_call_through(per_minute: int) -> None:
    assert await a_pace(per_minute=per_minute).turn(MovedClock(), "j") is None


async def test_a_call_that_is_not_made_gives_up_only_its_own_trial() -> None:
    pace, clock = a_pace(), MovedClock()
    for _ in range(5):
        pace.learned(OutcomeUnknown("?"), clock.now(), "j")
    clock.advance(60)
    assert await pace.turn(clock, "trial") is None

    pace.not_called("another")
    assert await pace.turn(clock, "third") is not None

    pace.not_called("trial")
    assert await pace.turn(clock, "third") is None
