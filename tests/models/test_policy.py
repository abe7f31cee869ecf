"""When to try again, and when to look again."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import ErrorCode
from models.policy import POLL_SCHEDULE, RETRIES, deadline, next_poll, retry_delay, slow_poll
from tests.fakes import START


def seconds_of_polls() -> list[float]:
    polls, now = [], START
    while (due := next_poll(START, now)) is not None:
        polls.append((due - START).total_seconds())
        now = due
    return polls


def test_polls_come_after_5_10_15_30_and_60_seconds_and_then_stop() -> None:
    assert seconds_of_polls() == [5, 15, 30, 60, 120]


@given(st.floats(min_value=0, max_value=500))
def test_a_restart_neither_repeats_nor_forgets_a_poll(later: float) -> None:
    now = START + timedelta(seconds=later)

    due = next_poll(START, now)

    assert (due is None) == (later >= sum(POLL_SCHEDULE))
    assert due is None or now < due <= now + timedelta(seconds=60)


@given(st.floats(min_value=0, max_value=1), st.floats(min_value=0, max_value=100_000))
def test_jitter_makes_a_poll_at_most_a_tenth_of_its_step_earlier_and_never_later(
    jitter: float, later: float
) -> None:
    steps = [*POLL_SCHEDULE, *([60.0] * 2000)]
    now, plain = START + timedelta(seconds=later), 0.0

    due = next_poll(START, now, jitter=jitter) or slow_poll(START, now, jitter=jitter)

    assert due > now
    at = (due - START).total_seconds()
    for step in steps:
        plain += step
        if plain - 0.1 * step - 1e-3 <= at <= plain + 1e-3:
            break
    else:
        raise AssertionError(f"{at} is no poll of the schedule")
    assert (due - now).total_seconds() <= 66.0


def test_once_the_schedule_has_run_out_its_last_step_repeats_for_ever() -> None:
    polls, now = [], START + timedelta(seconds=120)
    for _ in range(4):
        now = slow_poll(START, now)
        polls.append((now - START).total_seconds())

    assert polls == [180, 240, 300, 360]
    assert slow_poll(START, START + timedelta(seconds=100_010)) == START + timedelta(seconds=100_020)


@given(st.sampled_from(list(ErrorCode)), st.integers(min_value=1, max_value=12), st.floats(0, 1))
def test_every_code_is_given_up_after_its_calls(code: ErrorCode, calls: int, jitter: float) -> None:
    delay = retry_delay(code, calls, jitter=jitter)

    policy = RETRIES.get(code)
    assert (delay is None) == (policy is None or calls >= policy.calls)
    assert delay is None or policy is None or 0 < delay <= policy.most


def test_a_provider_that_says_when_to_come_back_is_believed() -> None:
    assert retry_delay(ErrorCode.PROVIDER_RATE_LIMITED, 1, jitter=0.0, retry_after=77.0) == 77.0


@pytest.mark.parametrize(
    "code", [ErrorCode.MODERATION_REJECTED, ErrorCode.PROVIDER_AUTH, ErrorCode.SUBMIT_UNKNOWN]
)
def test_what_another_call_cannot_mend_is_not_tried_again(code: ErrorCode) -> None:
    assert retry_delay(code, 1, jitter=0.5) is None


def test_a_task_has_a_minute_for_each_second_and_ten_at_least() -> None:
    assert deadline(5.0) == timedelta(minutes=10)
    assert deadline(30.0) == timedelta(minutes=30)
