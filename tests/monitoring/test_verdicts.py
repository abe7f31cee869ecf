from collections.abc import Sequence
from datetime import timedelta

import pytest

from sceneloom.monitoring.verdicts import WINDOW, History, Observation, TimeLag, Verdict, worst
from tests.fakes import START

Pair = tuple[int | None, int]


def observed(pairs: Sequence[Pair], *, begin: int = 0, every: float = 10.0) -> History:
    """Return the history of a partition that was seen with these (committed, end), 10 s after one another."""
    history = History()
    for number, (committed, end) in enumerate(pairs):
        at = START + timedelta(seconds=number * every)
        history.add(Observation(at=at, committed=committed, begin=begin, end=end))
    return history


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [
        ([(5, 5)], Verdict.OK),
        ([(5, 9)], Verdict.UNDECIDED),
        ([(5, 9), (9, 12), (12, 14)], Verdict.OK),
        ([(5, 9), (7, 13), (9, 17)], Verdict.WARNING),
        ([(5, 5), (7, 13), (9, 17)], Verdict.OK),
        ([(5, 9), (5, 9)], Verdict.STALLED),
        ([(5, 9), (5, 12)], Verdict.STALLED),
        ([(5, 5), (5, 9)], Verdict.OK),
        ([(5, 5)] * 9 + [(5, 9)] * 4, Verdict.OK),
        ([(5, 5)] * 9 + [(5, 9)] * 5, Verdict.STALLED),
        ([(n, 20) for n in range(6)] + [(5, 20)] * 4, Verdict.STALLED),
        ([(n - n % 3, 20) for n in range(10)], Verdict.OK),
        ([(5, 9)] * WINDOW, Verdict.STALLED),
        ([(5, 9)] * (WINDOW + 1), Verdict.STOPPED),
        ([(5, 9), (3, 9)], Verdict.REWIND),
        ([(5, 9), (3, 9)] + [(9, 9)] * (WINDOW - 2), Verdict.REWIND),
        ([(5, 9), (3, 9)] + [(9, 9)] * WINDOW, Verdict.OK),
        ([(9, 4)], Verdict.RECREATED),
        ([(9, 12), (1, 4)], Verdict.RECREATED),
        ([(None, 0)], Verdict.NO_COMMITS),
        ([(None, 7)] * 20, Verdict.NO_COMMITS),
        ([(5, 9), (None, 9)], Verdict.NO_COMMITS),
        ([(None, 9), (5, 9), (9, 9)], Verdict.OK),
    ],
)
def test_the_verdict_follows_from_what_was_observed(pairs: Sequence[Pair], verdict: Verdict) -> None:
    assert observed(pairs).verdict is verdict


def test_lag_is_counted_from_what_is_still_there_and_is_never_negative() -> None:
    expired = Observation(at=START, committed=3, begin=10, end=14)
    assert (expired.lag, expired.expired) == (4, 7)
    recreated = Observation(at=START, committed=9, begin=0, end=4)
    assert (recreated.lag, recreated.waiting) == (0, 0)


def test_without_a_commit_lag_is_unknown_and_all_that_is_there_waits() -> None:
    fresh = Observation(at=START, committed=None, begin=10, end=14)
    assert (fresh.lag, fresh.waiting, fresh.expired) == (None, 4, 0)


def test_lag_that_holds_no_message_stalls_nobody() -> None:
    history = History()
    for number in range(WINDOW + 1):
        at = START + timedelta(seconds=number)
        history.add(Observation(at=at, committed=3, begin=0, end=4, unreadable=True))
    assert history.latest.lag == 1
    assert history.verdict is Verdict.OK
    assert history.time_lag == TimeLag(0.0)


def test_time_lag_is_interpolated_between_what_was_seen() -> None:
    # The end was 100 at 0 s and 200 at 10 s: message 150 came about 5 s after the start, now is 20 s.
    assert observed([(100, 100), (140, 200), (150, 200)]).time_lag == TimeLag(15.0)


def test_a_time_in_which_nothing_came_does_not_stretch_the_interpolation() -> None:
    quiet: list[Pair] = [(100, 100)] * 6
    # Message 100 came between 50 s, when the end was still 100, and 60 s.
    assert observed([*quiet, (100, 110)]).time_lag == TimeLag(10.0)


def test_what_came_before_the_first_look_has_waited_at_least_since_then() -> None:
    assert observed([(50, 100), (60, 120)]).time_lag == TimeLag(10.0, at_least=True)


def test_the_time_that_a_message_was_written_is_better_than_any_interpolation() -> None:
    history = observed([(50, 100), (50, 120)])
    written = START - timedelta(seconds=300)
    last = history.latest.model_copy(update={"waiting_since": written, "at": START + timedelta(seconds=20)})
    history.add(last)
    assert history.time_lag == TimeLag(320.0)


def test_time_lag_without_a_commit_is_the_age_of_the_oldest_message_where_that_is_known() -> None:
    history = observed([(None, 7)])
    history.add(
        history.latest.model_copy(update={"waiting_since": START - timedelta(minutes=5), "at": START})
    )
    assert history.time_lag == TimeLag(300.0)


def test_time_lag_is_zero_where_nothing_waits_and_unknown_without_a_commit() -> None:
    assert observed([(7, 7)]).time_lag == TimeLag(0.0)
    assert observed([(None, 7)]).time_lag is None


def test_times_of_a_topic_that_was_deleted_say_nothing_of_the_new_one() -> None:
    assert observed([(0, 50), (0, 3)]).time_lag == TimeLag(0.0, at_least=True)


def test_the_group_does_as_its_worst_partition_does() -> None:
    fine, grows, stalled = (
        observed([(5, 5)]),
        observed([(1, 3), (2, 9)]),
        observed([(5, 9), (5, 9)]),
    )
    assert worst([fine], attended=True) is Verdict.OK
    assert worst([grows, fine], attended=True) is Verdict.WARNING
    assert worst([fine, stalled, grows], attended=True) is Verdict.STALLED


def test_partitions_that_were_never_used_do_not_spoil_the_verdict_of_the_group() -> None:
    fine, unused, unread = observed([(5, 5)]), observed([(None, 0)]), observed([(None, 3)])
    for attended in (True, False):
        assert worst([], attended=attended) is Verdict.OK
        assert worst([fine, unused], attended=attended) is Verdict.OK
    assert worst([fine, unread], attended=True) is Verdict.NO_COMMITS


def test_a_group_without_members_lacks_them_before_it_lacks_commits() -> None:
    fine, unread = observed([(5, 5)]), observed([(None, 3)])
    waiting, stalled = observed([(5, 9)]), observed([(5, 9), (5, 9)])
    for histories in ([unread], [fine, unread], [waiting, unread]):
        assert worst(histories, attended=False) is Verdict.NO_MEMBERS
    assert worst([stalled, unread], attended=False) is Verdict.STALLED


def test_trouble_begins_with_a_warning() -> None:
    fine = [verdict for verdict in Verdict if not verdict.is_trouble]
    assert fine == [Verdict.OK, Verdict.UNDECIDED]
