from datetime import timedelta
from typing import Any

from models.errors import ErrorCode
from models.events import Receipt
from models.lifecycle import JobStatus, ProjectState, SubmitState
from models.work import ClipRequest, Source, Tally
from sceneloom.monitoring.work import GRACE, WorkBook, overdue_from
from tests.fakes import START
from tests.monitoring.rows import a_job
from tests.stage import a_scene, a_snapshot


def after(seconds: float) -> Any:
    return START + timedelta(seconds=seconds)


def test_a_job_is_counted_once_under_its_latest_status() -> None:
    book = WorkBook()
    book.put_job(b"a", a_job())
    book.put_job(b"b", a_job("film-2"))
    assert book.counts(START).jobs == {JobStatus.QUEUED: {"ark": 2}}
    book.put_job(b"a", a_job(status=JobStatus.RUNNING, version=2))
    assert book.counts(START).jobs == {JobStatus.QUEUED: {"ark": 1}, JobStatus.RUNNING: {"ark": 1}}
    book.put_job(b"b", None)
    assert book.counts(START).jobs == {JobStatus.RUNNING: {"ark": 1}}


def test_the_oldest_job_in_flight_is_not_one_that_is_finished() -> None:
    book = WorkBook()
    book.put_job(b"a", a_job(status=JobStatus.SUCCEEDED))
    assert book.counts(after(9)).oldest_seconds is None
    book.put_job(b"b", a_job(created_at=after(30)))
    book.put_job(b"c", a_job(created_at=after(20)))
    assert book.counts(after(60)).oldest_seconds == 40.0


def test_unknown_outcomes_are_counted_until_they_are_settled() -> None:
    book = WorkBook()
    unclear: dict[str, Any] = {"submit": SubmitState.UNKNOWN, "intended_at": START}
    book.put_job(b"a", a_job(status=JobStatus.RUNNING, **unclear))
    assert book.counts(START).unknown == 1
    book.put_job(b"a", a_job(status=JobStatus.FAILED, error_code=ErrorCode.SUBMIT_UNKNOWN, **unclear))
    assert book.counts(START).unknown == 0


def test_a_call_that_waits_for_a_person_is_a_question_and_not_looked_for_any_more() -> None:
    book = WorkBook()
    asked = a_job(status=JobStatus.RUNNING, submit=SubmitState.NEEDS_CONFIRMATION, confirm_until=after(3600))
    book.put_job(b"a", asked)
    assert (book.counts(START).questions, book.counts(START).unknown) == (1, 0)


def test_the_task_of_a_cancelled_job_is_looked_after_and_is_not_in_flight() -> None:
    book = WorkBook()
    cancelled = a_job(
        status=JobStatus.CANCELLED, submit=SubmitState.ACCEPTED, submitted_at=START, provider_task_id="t1"
    )
    book.put_job(b"a", cancelled)
    counts = book.counts(after(130) + GRACE)
    assert (counts.oldest_seconds, counts.overdue) == (None, 1)


def test_a_task_whose_poll_schedule_ran_out_long_ago_is_overdue() -> None:
    accepted: dict[str, Any] = {
        "submit": SubmitState.ACCEPTED,
        "submitted_at": START,
        "provider_task_id": "t1",
    }
    book = WorkBook()
    book.put_job(b"a", a_job(status=JobStatus.RUNNING, **accepted))
    assert book.counts(after(120) + GRACE).overdue == 0
    assert book.counts(after(121) + GRACE).overdue == 1


def test_a_delayed_task_is_overdue_after_its_deadline_which_follows_from_the_length_of_the_clip() -> None:
    clip = ClipRequest(prompt="rain", aspect_ratio="16:9", duration_seconds=20.0)
    job = a_job(status=JobStatus.DELAYED, submit=SubmitState.ACCEPTED, submitted_at=START, request=clip)
    assert overdue_from(job) == after(1200) + GRACE


def test_no_poll_is_planned_for_a_job_without_a_task() -> None:
    assert overdue_from(a_job()) is None
    assert overdue_from(a_job(status=JobStatus.RUNNING, submit=SubmitState.INTENDED)) is None


def test_money_is_the_sum_over_all_jobs_and_what_was_saved_stands_on_the_receipts() -> None:
    book = WorkBook()
    book.put_job(b"a", a_job(status=JobStatus.SUCCEEDED, source=Source.MADE))
    lost = a_job(
        status=JobStatus.FAILED,
        submit=SubmitState.UNKNOWN,
        error_code=ErrorCode.SUBMIT_UNKNOWN,
        earlier=Tally(bought=1, spent_usd=0.1),
    )
    book.put_job(b"b", lost)
    book.put_job(b"b", lost)
    book.put_project(b"p", a_snapshot("p", receipt=Receipt(saved_usd=0.7)))
    counts = book.counts(START)
    assert (counts.spent_usd, counts.orphaned_usd, counts.saved_usd) == (0.7, 0.3, 0.7)


def test_projects_are_counted_by_state_and_as_delayed_while_they_are_open() -> None:
    late = a_scene(delayed=True)
    book = WorkBook()
    book.put_project(b"p", a_snapshot("p", scenes=(late,)))
    book.put_project(b"q", a_snapshot("q", scenes=(a_scene(),)))
    assert book.counts(START).delayed_projects == 1
    assert book.counts(START).projects == {ProjectState.GENERATING_SCENES: 2}
    book.put_project(b"p", a_snapshot("p", state=ProjectState.FAILED, scenes=(late,)))
    assert book.counts(START).delayed_projects == 0


def test_a_row_that_is_not_understood_is_counted_as_that_until_a_better_one_comes() -> None:
    book = WorkBook()
    book.put_job(b"a", a_job())
    book.put_unreadable(b"a")
    assert (book.counts(START).unreadable, book.counts(START).jobs) == (1, {})
    book.put_job(b"a", a_job())
    assert book.counts(START).unreadable == 0
