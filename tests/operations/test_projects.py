from datetime import datetime, timedelta

import pytest

from models.job import Job
from models.lifecycle import JobStatus, ProjectState
from sceneloom.operations.jobs import LAST_LOOK
from sceneloom.operations.latest import Latest
from sceneloom.operations.projects import stuck_by
from tests.fakes import START
from tests.models.test_job import a_job
from tests.stage import a_snapshot

LONG_AGO = START - timedelta(hours=1)
JUST_BEFORE = START - LAST_LOOK
DONE = a_job(status=JobStatus.SUCCEEDED)


def is_stuck(
    *rows: tuple[Job, datetime], updated_at: datetime = LONG_AGO, state: ProjectState = ProjectState.RENDERING
) -> bool:
    jobs = Latest(tuple(job for job, _ in rows), tuple(at for _, at in rows), 0)
    test = stuck_by(jobs, START, lambda _job: timedelta(minutes=10))
    return test(a_snapshot("p1", state=state, updated_at=updated_at))


def test_a_project_that_has_long_had_no_open_job_is_stuck_unless_it_is_at_no_work() -> None:
    assert is_stuck()
    assert is_stuck((DONE, LONG_AGO))
    assert not is_stuck((DONE, LONG_AGO), state=ProjectState.COMPLETED)


def test_a_project_has_two_minutes_from_its_last_change_or_that_of_any_of_its_jobs() -> None:
    other = a_job(scene_id="scene-002", status=JobStatus.SUCCEEDED)
    assert not is_stuck(updated_at=JUST_BEFORE)
    assert not is_stuck((DONE, JUST_BEFORE), (other, LONG_AGO))
    assert not is_stuck((other, LONG_AGO), (DONE, JUST_BEFORE))
    assert is_stuck((a_job(project_id="p2", status=JobStatus.SUCCEEDED), JUST_BEFORE))


@pytest.mark.parametrize("status", [JobStatus.QUEUED, JobStatus.RUNNING, JobStatus.DELAYED])
def test_a_project_with_an_open_job_is_not_stuck_however_long_that_takes(status: JobStatus) -> None:
    assert not is_stuck((a_job(status=status), LONG_AGO))
