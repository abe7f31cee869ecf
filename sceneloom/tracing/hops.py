"""The hops that are not messages: from an order to the runner, and from the runner to a provider."""

from typing import Any, cast

from models.job import Job
from models.ports import JobQueue, TaskReport
from models.work import Output
from sceneloom.tracing.traces import Traces, Untraced
from sceneloom.workshop.supplier import Progress
from sceneloom.workshop.workshop import Workshop


class TracedQueue:
    """A `models.ports.JobQueue` that notes where each job comes from."""

    def __init__(self, queue: JobQueue, traces: Traces) -> None:
        self._queue = queue
        self._traces = traces

    def take(self, job: Job, /) -> None:
        """Work on *job* when it is due."""
        self._traces.take(job)
        self._queue.take(job)

    def hint(self, job: Job, provider_task_id: str | None, /) -> None:
        """Look at *job* at once."""
        self._traces.take(job)
        self._queue.hint(job, provider_task_id)

    def drop(self, job: Job, /) -> None:
        """Stop working on *job*, which is over."""
        self._traces.drop(job.job_id)
        self._queue.drop(job)


def traced(workshop: Workshop, traces: Traces) -> Workshop:
    """Return *workshop* with a span around each of its calls to a provider, if spans are made."""
    if isinstance(traces, Untraced):
        return workshop
    return cast("Workshop", _TracedWorkshop(workshop, traces))


class _TracedWorkshop:
    def __init__(self, workshop: Workshop, traces: Traces) -> None:
        self._workshop = workshop
        self._traces = traces

    def __getattr__(self, name: str) -> Any:
        return getattr(self._workshop, name)

    async def make(self, job: Job, *, progress: Progress) -> Output:
        with self._traces.calling("make", job):
            return await self._workshop.make(job, progress=progress)

    async def submit(self, job: Job) -> str:
        with self._traces.calling("submit", job):
            return await self._workshop.submit(job)

    async def poll(self, job: Job) -> TaskReport:
        with self._traces.calling("poll", job):
            return await self._workshop.poll(job)

    async def collect(self, job: Job, report: TaskReport) -> Output:
        with self._traces.calling("collect", job):
            return await self._workshop.collect(job, report)

    async def take_back(self, job: Job) -> bool:
        with self._traces.calling("cancel", job):
            return await self._workshop.take_back(job)
