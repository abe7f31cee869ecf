from datetime import timedelta

from sceneloom.runner.hints import APART, Hints
from tests.fakes import START
from tests.runner.test_runner import accepted

LATER = START + timedelta(seconds=60)


def test_without_a_hint_nothing_is_sooner() -> None:
    assert Hints().sooner(accepted(), LATER) == LATER
    assert Hints().task_of(accepted()) is None


def test_a_hint_is_due_at_once_and_a_second_one_a_moment_after_the_look() -> None:
    hints = Hints()
    hints.note(accepted(), None, now=START)
    assert hints.sooner(accepted(), LATER) == START

    hints.looked(accepted(), now=START)
    assert hints.sooner(accepted(), LATER) == LATER

    hints.note(accepted(), None, now=START)
    assert hints.sooner(accepted(), LATER) == START + APART


def test_a_hint_about_an_earlier_call_or_attempt_means_nothing_to_a_later_one() -> None:
    hints = Hints()
    hints.note(accepted(), "task-1", now=START)

    for later in (accepted(postponed=1), accepted(attempt=2)):
        assert hints.sooner(later, LATER) == LATER
        assert hints.task_of(later) is None


def test_a_name_stays_known_when_a_later_hint_has_none() -> None:
    hints = Hints()
    hints.note(accepted(), "task-1", now=START)
    hints.note(accepted(), None, now=START)

    assert hints.task_of(accepted()) == "task-1"
    hints.forget(accepted().job_id)
    assert hints.task_of(accepted()) is None
