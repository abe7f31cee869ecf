"""The circuit breaker, as a function of what happened and of the time."""

from datetime import timedelta

import pytest

from models.breaker import Breaker, BreakerState, is_ill_health
from models.errors import ErrorCode, OutcomeUnknown, ProviderFailure
from tests.fakes import START


def after(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def opened() -> Breaker:
    breaker = Breaker()
    for _ in range(5):
        breaker = breaker.failed(START)
    return breaker


def test_five_failures_in_a_row_open_it_for_half_a_minute() -> None:
    breaker = Breaker()
    for _ in range(4):
        breaker = breaker.failed(START)
    assert breaker.state(START) is BreakerState.CLOSED

    breaker = breaker.failed(START)

    assert breaker.state(START + after(29)) is BreakerState.OPEN
    assert breaker.next_call(START) == START + after(30)
    assert breaker.state(START + after(30)) is BreakerState.HALF_OPEN


def test_a_success_in_between_begins_the_count_anew() -> None:
    breaker = Breaker()
    for _ in range(4):
        breaker = breaker.failed(START)
    breaker = breaker.answered()
    for _ in range(4):
        breaker = breaker.failed(START)

    assert breaker.state(START) is BreakerState.CLOSED


def test_half_open_lets_one_trial_call_through_and_the_others_wait() -> None:
    now = START + after(30)
    breaker = opened()
    assert breaker.next_call(now) is None

    breaker = breaker.calling(now)

    assert breaker.state(now) is BreakerState.OPEN
    assert breaker.next_call(now) == now + after(5)


def test_one_success_closes_it() -> None:
    breaker = opened().calling(START + after(30)).answered()

    assert breaker == Breaker()


def test_each_trial_that_fails_doubles_the_wait_up_to_five_minutes() -> None:
    now, breaker, waits = START, opened(), []
    for _ in range(6):
        until = breaker.next_call(now)
        assert until is not None
        waits.append((until - now).total_seconds())
        now = until
        breaker = breaker.calling(now).failed(now)

    assert waits == [30, 60, 120, 240, 300, 300]


def test_failures_of_calls_that_began_before_it_opened_change_nothing() -> None:
    breaker = opened()

    assert breaker.failed(START + after(10)) == breaker


def test_a_trial_that_says_nothing_of_health_leaves_room_for_the_next_one() -> None:
    now = START + after(30)

    assert opened().calling(now).unjudged().next_call(now) is None


def test_a_trial_of_which_nothing_is_heard_counts_as_lost() -> None:
    now = START + after(30)
    breaker = opened().calling(now)

    assert breaker.next_call(now + after(179)) is not None
    assert breaker.state(now + after(180)) is BreakerState.HALF_OPEN


@pytest.mark.parametrize(
    ("outcome", "ill"),
    [
        (None, False),
        (OutcomeUnknown("read timeout"), True),
        (ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE), True),
        (ProviderFailure(ErrorCode.MODERATION_REJECTED), False),
        (ProviderFailure(ErrorCode.PROVIDER_BAD_REQUEST), False),
    ],
)
def test_only_what_speaks_of_the_provider_counts(
    outcome: ProviderFailure | OutcomeUnknown | None,
    ill: bool,  # noqa: FBT001 -- a parameter of the test
) -> None:
    assert is_ill_health(outcome) is ill
