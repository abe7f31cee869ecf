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
    JobStopped,
    JobSubmitted,
    JobSucceeded,
    PollStalled,
    SubmitIntended,
    SubmitOutcomeUnknown,
    SubmitUnresolved,
)
from models.lifecycle import JobStatus, SubmitState
from models.scene_work import exceeds_budget, is_worth_a_fallback, taken_up
from models.shapes import AspectRatio
from models.work import ClipRequest, Decision, Offer, Output, Source, Tally
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


ACCEPTED = SubmitState.ACCEPTED
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
    lost = told(
        a_job(),
        INTENDED,
        SUBMITTED,
        an_event(JobFailed, error_code=ErrorCode.PROVIDER_TIMEOUT, submit=ACCEPTED),
    )

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


def test_a_field_that_a_later_release_adds_to_a_request_leaves_equal_jobs_equal() -> None:
    class LaterRequest(type(a_job().request)):  # type: ignore[misc]  # whichever it is
        style: str | None = None

    job, fields = a_job(), a_job().request.model_dump()

    assert job.model_copy(update={"request": LaterRequest(**fields)}).fingerprint == job.fingerprint
    styled = LaterRequest(**fields, style="noir")
    assert job.model_copy(update={"request": styled}).fingerprint != job.fingerprint


UNKNOWN = an_event(SubmitOutcomeUnknown)
UNRESOLVED = an_event(SubmitUnresolved, until=START + timedelta(days=1))
ORPHAN = Tally(orphaned=1, spent_usd=0.15, orphaned_usd=0.15)


def in_doubt() -> Job:
    return told(a_job(), INTENDED, UNKNOWN, UNRESOLVED)


def decided(job: Job, decision: Decision, task_id: str | None = None, *, call: int = 0) -> Job:
    return job.resolve(decision, attempt=1, call=call, task_id=task_id, at=START)


def test_a_call_that_nothing_can_tell_about_asks_a_person_what_it_may_cost() -> None:
    question = in_doubt().question

    assert question is not None
    assert (question.job_id, question.call) == ("p1/scene-001/clip", 0)
    assert (question.provider, question.cost_usd) == ("house", 0.15)
    assert question.until == START + timedelta(days=1)


def test_an_approved_resend_is_a_new_call_and_leaves_the_first_one_as_an_orphan() -> None:
    job = decided(in_doubt(), Decision.RESEND)

    assert (job.status, job.submit, job.postponed) == (JobStatus.QUEUED, None, 1)
    assert job.question is None
    assert job.tally == ORPHAN
    done = told(
        job, an_event(SubmitIntended, call=1), an_event(JobSucceeded, call=1, output=OUTPUT, source="made")
    )
    assert done.tally == ORPHAN + Tally(bought=1, spent_usd=0.15)


def test_a_decision_counts_once_and_only_for_its_call() -> None:
    resent = decided(in_doubt(), Decision.RESEND)

    assert decided(resent, Decision.RESEND) is resent
    assert decided(resent, Decision.GIVE_UP) is resent
    assert decided(in_doubt(), Decision.RESEND, call=3).submit is SubmitState.NEEDS_CONFIRMATION
    running = told(a_job(), INTENDED, SUBMITTED)
    assert decided(running, Decision.RESEND) is running


def test_a_task_that_a_person_found_is_adopted_and_one_given_up_is_an_orphan() -> None:
    adopted = decided(in_doubt(), Decision.ADOPT, "t-9")
    assert (adopted.submit, adopted.provider_task_id) == (SubmitState.ACCEPTED, "t-9")

    lost = decided(in_doubt(), Decision.GIVE_UP)
    assert (lost.status, lost.error_code) == (JobStatus.FAILED, ErrorCode.SUBMIT_UNKNOWN)
    assert lost.tally == ORPHAN


def test_a_late_answer_to_an_unclear_call_makes_the_question_needless() -> None:
    job = in_doubt().evolve(SUBMITTED)

    assert job.submit is SubmitState.ACCEPTED
    assert job.question is None


def test_a_question_of_a_call_that_was_answered_meanwhile_is_not_asked() -> None:
    accepted = told(a_job(), INTENDED, UNKNOWN, SUBMITTED)

    assert accepted.evolve(UNRESOLVED) is accepted


@pytest.mark.parametrize(
    ("before", "outcome", "cost"),
    [
        pytest.param([], [], Tally(), id="nothing was ordered"),
        pytest.param([INTENDED], [POSTPONED], Tally(), id="the call was refused for now"),
        pytest.param(
            [INTENDED],
            [an_event(JobFailed, error_code=ErrorCode.PROVIDER_AUTH)],
            Tally(),
            id="the call was refused",
        ),
        pytest.param(
            [INTENDED],
            [an_event(JobFailed, error_code=ErrorCode.OUTPUT_MISSING)],
            ORPHAN,
            id="what was bought cannot be used",
        ),
        pytest.param([INTENDED], [SUCCEEDED], Tally(bought=1, spent_usd=0.15), id="it came after all"),
        pytest.param([INTENDED], [SUBMITTED], ORPHAN, id="the task was accepted"),
        pytest.param(
            [INTENDED],
            [SUBMITTED, an_event(JobStopped, billed=False, submit=ACCEPTED)],
            Tally(),
            id="the task was taken back",
        ),
        pytest.param(
            [INTENDED, SUBMITTED],
            [an_event(JobStopped, billed=True, submit=ACCEPTED)],
            ORPHAN,
            id="too late to stop",
        ),
        pytest.param([INTENDED], [UNKNOWN], ORPHAN, id="nobody knows"),
        pytest.param([INTENDED, UNKNOWN], [UNRESOLVED], ORPHAN, id="nobody will ever know"),
    ],
)
def test_what_a_cancelled_job_has_cost_follows_from_what_became_of_its_call(
    before: list[Any], outcome: list[Any], cost: Tally
) -> None:
    job = told(told(a_job(), *before).cancel(), *outcome)

    assert job.status is JobStatus.CANCELLED
    assert job.tally == cost


def test_a_cancelled_job_is_settled_when_nothing_more_will_be_known() -> None:
    assert a_job().cancel().is_settled
    running = told(a_job(), INTENDED, SUBMITTED).cancel()
    assert not running.is_settled

    settled = running.evolve(an_event(JobStopped, billed=True, submit=ACCEPTED))
    assert settled.is_settled
    assert settled.evolve(an_event(JobStopped, billed=False, submit=ACCEPTED)) is settled


def test_a_stand_in_makes_the_same_asset_and_is_counted() -> None:
    failed = told(a_job(), an_event(JobFailed, error_code=ErrorCode.PROVIDER_UNAVAILABLE))

    job = failed.stood_in_for(Offer(provider="other", model="m9", cost_usd=0.40), START)
    done = told(job, an_event(JobSucceeded, attempt=2, output=OUTPUT, source=Source.MADE))

    assert (job.attempt, job.offer.provider, job.stands_in_for) == (2, "other", "house")
    assert job.request == failed.request
    assert done.tally == Tally(bought=1, fallback=1, spent_usd=0.40)


@pytest.mark.parametrize(
    ("code", "worth"),
    [
        (ErrorCode.PROVIDER_UNAVAILABLE, True),
        (ErrorCode.PROVIDER_RATE_LIMITED, True),
        (ErrorCode.PROVIDER_QUOTA_EXHAUSTED, True),
        (ErrorCode.PROVIDER_AUTH, True),
        (ErrorCode.PROVIDER_MODEL_RETIRED, True),
        (ErrorCode.MODERATION_REJECTED, False),
        (ErrorCode.SUBMIT_UNKNOWN, False),
        (ErrorCode.PROVIDER_TIMEOUT, False),
        (ErrorCode.OUTPUT_MISSING, False),
        (ErrorCode.BUDGET_EXCEEDED, False),
    ],
)
def test_another_provider_is_asked_only_where_the_first_one_surely_took_nothing(
    code: ErrorCode, *, worth: bool
) -> None:
    failed = told(a_job(), an_event(JobFailed, error_code=code))

    assert is_worth_a_fallback(failed) is worth
    assert is_worth_a_fallback(failed.model_copy(update={"stands_in_for": "first"})) is worth


@pytest.mark.parametrize(
    ("others", "budget", "exceeds"),
    [
        pytest.param([], None, False, id="no limit"),
        pytest.param([], 0.15, False, id="just enough"),
        pytest.param([], 0.14, True, id="too little"),
        pytest.param([told(a_job(), SUCCEEDED)], 0.30, False, id="one is bought"),
        pytest.param([told(a_job(), SUCCEEDED)], 0.29, True, id="one is bought and nothing is left"),
        pytest.param([told(a_job(), INTENDED)], 0.29, True, id="one is under way"),
        pytest.param([told(a_job(), INTENDED, SUBMITTED).cancel()], 0.29, True, id="one is an orphan"),
        pytest.param([a_job(earlier=ORPHAN)], 0.29, True, id="an earlier attempt is an orphan"),
    ],
)
def test_a_call_is_within_the_budget_of_its_project_or_not_made(
    others: list[Job], budget: float | None, *, exceeds: bool
) -> None:
    job = a_job(scene_id="scene-002", budget_usd=budget)

    assert exceeds_budget(job, [*others, job]) is exceeds
