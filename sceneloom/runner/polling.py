"""Asking how tasks stand, and bringing home what they have made."""

from datetime import datetime, timedelta
from typing import Final

import structlog

from models.errors import ErrorCode, ProviderFailure
from models.identifiers import share_of
from models.job import Job
from models.job_events import JobFailed, JobStillRunning, JobSucceeded, PollStalled
from models.lifecycle import JobStatus
from models.policy import next_poll, slow_poll
from models.ports import Clock, TaskReport
from models.work import Output, Source
from sceneloom.delivery import DeliveryFailed
from sceneloom.runner.agenda import Step
from sceneloom.runner.journal import Journal
from sceneloom.workshop.workshop import Workshop

COLLECTS: Final = 3
"""How often the output of a finished task is fetched before it counts as missing."""

_log = structlog.get_logger(__name__)


class TaskFailed(Exception):
    """The provider said that the task itself is over, without an output."""

    def __init__(self, failure: ProviderFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class Polling:
    """Polls tasks that were accepted, from the submit to the output or the deadline."""

    def __init__(self, *, workshop: Workshop, journal: Journal, clock: Clock) -> None:
        self._workshop = workshop
        self._journal = journal
        self._clock = clock
        self._collects: dict[str, int] = {}
        self._leapt_at: datetime | None = None

    def leapt(self, now: datetime) -> None:
        """Hear that the clock was set to *now*: every task has its whole time again."""
        self._leapt_at = now

    def due_at(self, job: Job, submitted_at: datetime, now: datetime) -> datetime:
        """Return when to poll the task of *job* next."""
        schedule, jitter = self._workshop.poll_schedule(job), share_of(job.job_id)
        due = next_poll(submitted_at, now, schedule, jitter=jitter)
        due = due or slow_poll(submitted_at, now, schedule, jitter=jitter)
        # A clock that was set back makes a task one of the future; it is looked at all the same.
        return min(due, now + timedelta(seconds=max(schedule)))

    def forget(self, job_id: str) -> None:
        """Forget the job."""
        self._collects.pop(job_id, None)

    async def poll(self, job: Job) -> Step:
        """Ask how a task stands. A poll that fails says nothing about the task, so it is only asked again."""
        now = self._clock.now()
        submitted_at = job.submitted_at or now
        try:
            await self._polled(job)
        except TaskFailed as failed:
            may_call_again = self._workshop.repeatable(job)  # the task was accepted, and may be billed
            await self._journal.fail(job, failed.failure, may_call_again=may_call_again)
        except DeliveryFailed:
            raise
        except Exception as error:  # noqa: BLE001 -- whatever a poll raises, the task goes on
            _log.warning("runner.poll_failed", job=job.job_id, error=repr(error))
        if self._journal.is_over(job):
            return Step(job)
        if now >= max(submitted_at, self._leapt_at or submitted_at) + self._workshop.deadline(job):
            await self._time_out(job)
            return Step(job)
        schedule, jitter = self._workshop.poll_schedule(job), share_of(job.job_id)
        stalled = next_poll(submitted_at, now, schedule, jitter=jitter) is None
        if stalled and job.status is not JobStatus.DELAYED:
            await self._journal.tell(PollStalled, job)
        return Step(job, look_again=True)

    async def _polled(self, job: Job) -> None:
        report = await self._workshop.poll(job)
        if report.error_code is not None:
            raise TaskFailed(ProviderFailure(report.error_code, report.detail))
        if report.done:
            output = await self._collected(job, report)
            await self._journal.end(JobSucceeded, job, output=output, source=Source.MADE)
        elif report.progress is not None:
            await self._journal.tell(JobStillRunning, job, progress=report.progress)

    async def _collected(self, job: Job, report: TaskReport) -> Output:
        """Fetch what the task has made. Raises `TaskFailed` where more polls gave no better output either."""
        try:
            return await self._workshop.collect(job, report)
        except ProviderFailure as failure:
            tries = self._collects[job.job_id] = self._collects.get(job.job_id, 0) + 1
            if tries < COLLECTS:
                raise
            raise TaskFailed(ProviderFailure(ErrorCode.OUTPUT_MISSING, failure.detail)) from failure

    async def _time_out(self, job: Job) -> None:
        """Give up a task at its deadline; one that the provider takes back is not billed."""
        taken_back = False
        try:
            taken_back = await self._workshop.take_back(job)
        except Exception as error:  # noqa: BLE001 -- whatever it raises, the task may go on, and counts as an orphan
            _log.warning("runner.take_back_failed", job=job.job_id, error=repr(error))
        await self._journal.end(JobFailed, job, error_code=ErrorCode.PROVIDER_TIMEOUT, taken_back=taken_back)
