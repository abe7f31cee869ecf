"""One job, from the intent to the output."""

from datetime import timedelta
from typing import Any

import pytest

from models.errors import ErrorCode
from models.job import Job
from models.job_events import (
    JobFailed,
    JobPostponed,
    JobStillRunning,
    JobSubmitted,
    JobSucceeded,
    PollStalled,
    SubmitIntended,
    SubmitOutcomeUnknown,
)
from models.lifecycle import JobStatus, SubmitState
from models.scene_work import taken_up
from models.shapes import AspectRatio
from models.work import ClipRequest, Offer, Output, Source
from tests.fakes import START

OUTPUT = Output(url="mem://clip.mp4", media_type="video/mp4", seconds=5.0)


def a_job(**changes: Any) -> Job:
    request = ClipRequest(prompt="waves", aspect_ratio=AspectRatio.PORTRAIT, duration_seconds=5.0)
    return Job(
        project_id="p1",
        scene_id="scene-001",
        user_id="u1",
        offer=Offer(provider="house", model="m1", cost_usd=0.15),
        request=request,
        created_at=START,
    ).model_copy(update=changes)


def an_event(kind: type[Any], *, call: int = 0, attempt: int = 1, **facts: object) -> Any:
    return kind(
        event_id="e",
        project_id="p1",
        job_id="p1/scene-001/clip",
        attempt=attempt,
        call=call,
        occurred_at=START,
        **facts,
    )


def told(job: Job, *events: Any) -> Job:
    for event in events:
        job = job.evolve(event)
    return job


INTENDED = an_event(SubmitIntended)
SUBMITTED = an_event(JobSubmitted, provider_task_id="t-1")
SUCCEEDED = an_event(JobSucceeded, output=OUTPUT, source=Source.MADE)
POSTPONED = an_event(
    JobPostponed, due_at=START + timedelta(seconds=5), error_code=ErrorCode.PROVIDER_RATE_LIMITED
)


def test_a_job_runs_from_the_intent_to_the_output() -> None:
    job = told(a_job(), INTENDED, SUBMITTED, an_event(JobStillRunning, progress=0.5), SUCCEEDED)

    assert job.status is JobStatus.SUCCEEDED
    assert job.provider_task_id == "t-1"
    assert job.output == OUTPUT
    assert job.tally.bought == 1
    assert job.tally.spent_usd == 0.15


@pytest.mark.parametrize("event", [INTENDED, SUBMITTED, SUCCEEDED, POSTPONED])
def test_an_event_applied_twice_changes_nothing(event: Any) -> None:
    once = a_job().evolve(event)

    assert once != a_job()
    assert once.evolve(event) is once


def test_a_postponed_call_is_a_new_call_and_late_events_of_the_first_do_not_touch_it() -> None:
    job = told(a_job(), INTENDED, POSTPONED)

    assert (job.status, job.submit, job.postponed) == (JobStatus.QUEUED, None, 1)
    assert job.evolve(INTENDED) is job
    assert job.evolve(POSTPONED) is job
    assert job.evolve(an_event(SubmitIntended, call=1)).submit is SubmitState.INTENDED


def test_an_unknown_outcome_stays_visible_and_a_late_acceptance_is_adopted() -> None:
    unknown = told(a_job(), INTENDED, an_event(SubmitOutcomeUnknown))

    assert unknown.submit is SubmitState.UNKNOWN
    assert unknown.status is JobStatus.RUNNING
    assert unknown.evolve(SUBMITTED).submit is SubmitState.ACCEPTED


def test_an_accepted_job_cannot_become_unknown_again() -> None:
    job = told(a_job(), INTENDED, SUBMITTED)

    assert job.evolve(an_event(SubmitOutcomeUnknown)) is job


def test_a_stalled_poll_delays_the_job_and_progress_brings_it_back() -> None:
    job = told(a_job(), INTENDED, SUBMITTED, an_event(PollStalled))
    assert job.status is JobStatus.DELAYED

    assert job.evolve(an_event(JobStillRunning, progress=0.9)).status is JobStatus.RUNNING
    assert job.evolve(SUCCEEDED).status is JobStatus.SUCCEEDED


def test_progress_never_goes_backwards() -> None:
    job = told(a_job(), INTENDED, SUBMITTED, an_event(JobStillRunning, progress=0.7))

    assert job.evolve(an_event(JobStillRunning, progress=0.2)) is job


def test_events_of_another_attempt_are_ignored() -> None:
    job = a_job(attempt=2)

    assert job.evolve(SUCCEEDED) is job


def test_a_cancelled_job_that_a_provider_accepted_is_an_orphan_with_its_cost() -> None:
    orphan = told(a_job(), INTENDED, SUBMITTED).cancel()

    assert orphan.tally.orphaned == 1
    assert orphan.tally.spent_usd == 0.15
    assert a_job().cancel().tally.orphaned == 0


def test_a_cached_output_costs_nothing_and_says_what_it_saved() -> None:
    job = told(a_job(), an_event(JobSucceeded, output=OUTPUT, source=Source.CACHED))

    assert (job.tally.cached, job.tally.spent_usd, job.tally.saved_usd) == (1, 0.0, 0.15)


def test_a_new_attempt_remembers_what_the_earlier_one_cost() -> None:
    lost = told(a_job(), INTENDED, SUBMITTED, an_event(JobFailed, error_code=ErrorCode.PROVIDER_TIMEOUT))

    again = taken_up(lost, a_job(scene_attempt=2))
    done = told(again, an_event(JobSucceeded, attempt=2, output=OUTPUT, source=Source.MADE))

    assert again.attempt == 2
    assert (done.tally.bought, done.tally.orphaned) == (1, 1)
    assert done.tally.spent_usd == pytest.approx(0.30)


def test_a_succeeded_job_is_kept_when_its_scene_is_asked_for_again() -> None:
    done = told(a_job(), SUCCEEDED)

    kept = taken_up(done, a_job(scene_attempt=2))

    assert (kept.attempt, kept.status, kept.scene_attempt) == (1, JobStatus.SUCCEEDED, 2)


def test_a_failed_job_is_not_bought_again_by_the_same_request() -> None:
    failed = told(a_job(), an_event(JobFailed, error_code=ErrorCode.MODERATION_REJECTED))

    assert taken_up(failed, a_job()) is failed


def test_equal_requests_have_equal_fingerprints_and_a_variation_another() -> None:
    varied = ClipRequest(prompt="waves", aspect_ratio=AspectRatio.PORTRAIT, duration_seconds=5.0, seed=7)

    assert a_job().fingerprint == a_job(scene_id="scene-002", attempt=3).fingerprint
    assert a_job().fingerprint != a_job(request=varied).fingerprint
