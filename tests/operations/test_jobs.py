from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr

from models.errors import ErrorCode
from models.job import Job
from models.lifecycle import JobStatus, SubmitState
from models.work import Source, Tally
from sceneloom.accounts import Account
from sceneloom.operations.jobs import LAST_LOOK, JobFilter, chosen, deadlines, line, total
from sceneloom.settings import Settings
from tests.fakes import START
from tests.models.test_job import a_job

TEN_MINUTES = timedelta(minutes=10)
PAST = START + TEN_MINUTES + LAST_LOOK + timedelta(seconds=1)


def ten_minutes(_job: Job) -> timedelta:
    return TEN_MINUTES


def under_way(submit: SubmitState = SubmitState.ACCEPTED, **changes: Any) -> Job:
    return a_job(status=JobStatus.RUNNING, submit=submit, intended_at=START, **changes)


@pytest.mark.parametrize("submit", list(SubmitState))
def test_a_call_that_is_open_past_its_deadline_is_stuck(submit: SubmitState) -> None:
    assert line(under_way(submit), PAST, ten_minutes).stuck


def test_a_worker_has_two_minutes_to_notice_the_deadline() -> None:
    there = line(under_way(), START + TEN_MINUTES + LAST_LOOK, ten_minutes)
    assert there.deadline_at == START + TEN_MINUTES
    assert not there.stuck


def test_the_deadline_counts_from_the_acceptance() -> None:
    later = under_way(submitted_at=START + timedelta(minutes=5))
    assert line(later, PAST, ten_minutes).deadline_at == START + timedelta(minutes=15)


@pytest.mark.parametrize("status", [JobStatus.SUCCEEDED, JobStatus.FAILED])
def test_a_finished_job_is_never_stuck(status: JobStatus) -> None:
    done = line(under_way().model_copy(update={"status": status}), PAST, ten_minutes)
    assert (done.stuck, done.deadline_at) == (False, None)


def test_a_question_may_stay_open_until_the_person_must_have_answered() -> None:
    asked = under_way(SubmitState.NEEDS_CONFIRMATION, confirm_until=START + timedelta(days=1))
    assert line(asked, PAST, ten_minutes).deadline_at == START + timedelta(days=1)
    assert not line(asked, PAST, ten_minutes).stuck
    assert line(asked, PAST + timedelta(days=1), ten_minutes).stuck


def test_a_cancelled_job_is_stuck_while_nobody_settles_its_paid_call() -> None:
    cancelled = under_way(submitted_at=START).model_copy(update={"status": JobStatus.CANCELLED})
    assert line(cancelled, PAST, ten_minutes).stuck
    settled = cancelled.model_copy(update={"written_off": True})
    assert not line(settled, PAST, ten_minutes).stuck


def test_a_job_that_waits_for_its_call_has_no_deadline() -> None:
    waiting = line(a_job(), START + timedelta(days=9), ten_minutes)
    assert (waiting.stuck, waiting.deadline_at) == (False, None)


def test_calls_count_the_postponed_ones_and_the_one_under_way() -> None:
    assert line(a_job(), START, ten_minutes).calls == 0
    assert line(under_way(postponed=2), START, ten_minutes).calls == 3
    assert line(a_job(source=Source.MADE), START, ten_minutes).calls == 1


def test_an_orphan_of_this_or_an_earlier_attempt_is_found_with_its_cost() -> None:
    given_up = under_way(SubmitState.UNKNOWN).model_copy(
        update={"status": JobStatus.FAILED, "error_code": ErrorCode.SUBMIT_UNKNOWN}
    )
    retried = a_job(scene_id="scene-002", earlier=Tally(orphaned=1, spent_usd=0.15, orphaned_usd=0.15))
    found = chosen([given_up, retried, a_job()], JobFilter(orphaned=True), PAST, ten_minutes)
    assert [each.job for each in found] == [given_up, retried]
    assert total(found) == Tally(orphaned=2, spent_usd=0.30, orphaned_usd=0.30)


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (JobFilter(), ["p1/scene-001/clip", "p2/scene-001/clip"]),
        (JobFilter(project_id="p2"), ["p2/scene-001/clip"]),
        (JobFilter(provider="ark"), ["p2/scene-001/clip"]),
        (JobFilter(statuses={JobStatus.DELAYED, JobStatus.FAILED}), ["p2/scene-001/clip"]),
        (JobFilter(older_than=timedelta(hours=1)), ["p2/scene-001/clip"]),
        (JobFilter(project_id="p1", provider="ark"), []),
    ],
)
def test_a_job_is_chosen_when_it_meets_everything_that_is_named(wanted: JobFilter, names: list[str]) -> None:
    other = a_job().offer.model_copy(update={"provider": "ark"})
    old = a_job(project_id="p2", offer=other, status=JobStatus.DELAYED, created_at=START - timedelta(hours=2))
    found = chosen([old, a_job()], wanted, START, ten_minutes)
    assert [each.job.job_id for each in found] == names


def test_deadlines_are_those_of_a_worker() -> None:
    of = deadlines(Settings(_env_file=None))
    assert of(a_job()) == timedelta(seconds=600)


def test_deadlines_of_a_half_set_provider_cannot_be_told() -> None:
    with pytest.raises(ValueError, match="SCENELOOM_FAL_MODEL"):
        deadlines(Settings(_env_file=None, accounts={"fal": Account(key=SecretStr("k"))}))
