"""How long the stages of a job take: learned from what is published, so that nobody else need know of it."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from models.job import Job
from models.job_events import JobFailed, JobPostponed, JobSubmitted, JobSucceeded, SubmitOutcomeUnknown
from models.lifecycle import SubmitState
from models.ports import Message, Publisher
from models.work import JobKind, Source

BUCKETS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800)
_KIND: Final = ("kind", "provider")
_ACCEPTED: Final = "accepted"
_UNKNOWN: Final = "unknown"


class StageTimes:
    """A `models.ports.Publisher` that passes every message on, and measures what it tells of jobs.

    `job` returns the row of a job as it is before the message is applied, None where it is not ours. What
    comes of calls for *announced*, kinds with their providers, is counted from zero on: a rate needs two
    values, and of a worker that makes one call before it is restarted it would otherwise show nothing.
    """

    def __init__(
        self,
        publisher: Publisher,
        *,
        job: Callable[[str], Job | None],
        registry: CollectorRegistry,
        announced: Iterable[tuple[JobKind, str]] = (),
    ) -> None:
        self._publisher = publisher
        self._job = job
        self._jobs = Histogram(
            "sceneloom_job_seconds",
            "From the order to the end of an attempt: waiting, calls and polls.",
            (*_KIND, "outcome"),
            registry=registry,
            buckets=BUCKETS,
        )
        self._calls = Histogram(
            "sceneloom_call_seconds",
            "From the announcement of a call to its answer; local work is not announced.",
            (*_KIND, "outcome"),
            registry=registry,
            buckets=BUCKETS,
        )
        self._tasks = Histogram(
            "sceneloom_task_seconds",
            "From the acceptance of a task to its end.",
            (*_KIND, "outcome"),
            registry=registry,
            buckets=BUCKETS,
        )
        self._postponed = Counter(
            "sceneloom_calls_postponed",
            "Calls that surely bought nothing and are made again later.",
            (*_KIND, "error_code"),
            registry=registry,
        )
        for place in announced:
            for outcome in (_ACCEPTED, Source.MADE, _UNKNOWN):
                self._calls.labels(*place, outcome)
            self._tasks.labels(*place, Source.MADE)
            self._jobs.labels(*place, Source.MADE)

    async def publish(self, message: Message, /) -> None:
        """Publish *message*, then measure."""
        await self._publisher.publish(message)
        match message:
            case JobSubmitted() | JobSucceeded() | JobFailed() | JobPostponed() | SubmitOutcomeUnknown():
                job = self._job(message.job_id)
                if job is not None and not job.finished and job.attempt == message.attempt:
                    self._measure(job, message)
            case _:
                pass

    def _measure(
        self, job: Job, event: JobSubmitted | JobSucceeded | JobFailed | JobPostponed | SubmitOutcomeUnknown
    ) -> None:
        place, outcome, now = (job.kind, job.offer.provider), _outcome(event), event.occurred_at
        if job.submit is SubmitState.INTENDED:
            _observe(self._calls.labels(*place, outcome), job.intended_at, now)
        elif job.submit is SubmitState.ACCEPTED and not isinstance(event, JobSubmitted):
            _observe(self._tasks.labels(*place, outcome), job.submitted_at, now)
        if isinstance(event, JobSucceeded | JobFailed):
            _observe(self._jobs.labels(*place, outcome), job.created_at, now)
        if isinstance(event, JobPostponed):
            self._postponed.labels(*place, event.error_code).inc()


def _outcome(event: JobSubmitted | JobSucceeded | JobFailed | JobPostponed | SubmitOutcomeUnknown) -> str:
    match event:
        case JobSubmitted():
            return _ACCEPTED
        case JobSucceeded():
            return str(event.source)
        case JobFailed() | JobPostponed():
            return str(event.error_code)
        case SubmitOutcomeUnknown():
            return _UNKNOWN


def _observe(histogram: Histogram, since: datetime | None, now: datetime) -> None:
    if since is not None:
        histogram.observe(max(0.0, (now - since).total_seconds()))
