"""What the runner tells the scenes agent, on job-events: its only way to make anything true."""

import random
from datetime import timedelta
from typing import Any

import structlog

from models.errors import ProviderFailure
from models.identifiers import event_id
from models.job import Job
from models.job_events import JobEvent, JobFailed, JobPostponed, JobStillRunning
from models.lifecycle import SubmitState
from models.policy import retry_delay
from models.ports import Clock, Publisher

Call = tuple[str, int, int]
"""Names one call of one attempt at a job."""

_log = structlog.get_logger(__name__)


def call_of(job: Job) -> Call:
    """Name the call that *job* is about now."""
    return job.job_id, job.attempt, job.postponed


def _known(job: Job) -> tuple[Call, bool]:
    return call_of(job), job.submit is SubmitState.ACCEPTED


class Journal:
    """Tells what is learned of jobs, and remembers which calls are over, until their rows say so."""

    def __init__(self, *, publisher: Publisher, clock: Clock) -> None:
        self._publisher = publisher
        self._clock = clock
        self._over: dict[str, tuple[Call, bool]] = {}

    def is_over(self, job: Job) -> bool:
        """Tell whether the last of this call was told already, and its row only does not know it yet.

        Where the row says meanwhile that the call was accepted, an end told without knowing that is none.
        """
        return bool(self._over) and self._over.get(job.job_id) == _known(job)

    def forget(self, job_id: str) -> None:
        """Forget the job."""
        self._over.pop(job_id, None)

    def clear(self) -> None:
        """Forget all jobs."""
        self._over.clear()

    async def tell(self, event: type[Any], job: Job, **facts: object) -> None:
        """Tell that *event* happened to *job*."""
        message: JobEvent = event(
            event_id=event_id(
                "job", job.job_id, job.attempt, job.postponed, event.__name__, facts.get("progress", "")
            ),
            project_id=job.project_id,
            job_id=job.job_id,
            attempt=job.attempt,
            call=job.postponed,
            submit=job.submit,
            occurred_at=self._clock.now(),
            **facts,
        )
        if not isinstance(message, JobStillRunning):
            _log.info("job", type=message.type, project=job.project_id, job=job.job_id, attempt=job.attempt)
        await self._publisher.publish(message)

    async def end(self, event: type[Any], job: Job, **facts: object) -> None:
        """Tell the last of one call: nothing more is done about it, however late the row follows."""
        self._over[job.job_id] = _known(job)
        await self.tell(event, job, **facts)

    async def fail(self, job: Job, failure: ProviderFailure, *, may_call_again: bool) -> None:
        """End the attempt, or postpone it where *failure* is worth another call and there may be one."""
        jitter = random.random()  # noqa: S311 -- spreads load, hides nothing
        delay = retry_delay(failure.code, job.postponed + 1, jitter=jitter, retry_after=failure.retry_after)
        if not may_call_again:
            delay = None
        _log.warning(
            "runner.failed", job=job.job_id, code=failure.code, detail=failure.detail, again_in=delay
        )
        if delay is None:
            await self.end(JobFailed, job, error_code=failure.code)
        else:
            due = self._clock.now() + timedelta(seconds=delay)
            await self.end(JobPostponed, job, error_code=failure.code, due_at=due)
