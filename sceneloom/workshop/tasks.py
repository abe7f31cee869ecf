"""What all makers of tasks do alike: they order, ask, search and take back through their provider."""

from collections.abc import Collection

from models.errors import ErrorCode, ProviderFailure
from models.job import Job
from models.ports import CallsBack, Reconciled, Reconciler, Stopper, TaskProvider, TaskReport
from sceneloom.assets.download import download


async def made_by(
    report: TaskReport,
    *,
    limit_bytes: int,
    timeout: float,  # noqa: ASYNC109 -- of the download, which knows how far it came
    allow_private: bool,
) -> bytes:
    """Return what a finished task has made, at once where it only is named: outputs expire.

    Raises `ProviderFailure` (OUTPUT_MISSING) where there is none, and what a download raises.
    """
    if report.output is not None:
        return report.output
    if report.output_url is None:
        raise ProviderFailure(ErrorCode.OUTPUT_MISSING, "the task is done and names no output")
    return await download(
        report.output_url, limit_bytes=limit_bytes, timeout=timeout, allow_private=allow_private
    )


class Tasks:
    """The tasks of one provider; what a task has made is for a subclass to collect."""

    def __init__(self, provider: TaskProvider) -> None:
        self._provider = provider

    async def submit(self, job: Job) -> str:
        """Start the task and return the provider's id of it."""
        return await self._provider.submit(job)

    async def poll(self, job: Job) -> TaskReport:
        """Ask how the task of *job* stands."""
        return await self._provider.poll(job.provider_task_id or "")

    async def find(self, job: Job, *, taken: Collection[str]) -> Reconciled | None:
        """Look for the task of a submit without clear outcome in the provider's list, if it has one."""
        if not isinstance(self._provider, Reconciler) or job.intended_at is None:
            return None
        return await self._provider.candidates(job, taken=taken)

    async def confirm(self, job: Job, named: str) -> str | None:
        """Return the id of the task that a webhook calls *named*, after a poll that finds it."""
        if not isinstance(self._provider, CallsBack):
            return None
        task_id = self._provider.task_named(job, named)
        await self._provider.poll(task_id)
        return task_id

    async def take_back(self, job: Job) -> bool:
        """Have the provider stop the task of *job*, and tell whether it surely is not billed."""
        if not isinstance(self._provider, Stopper) or job.provider_task_id is None:
            return False
        return await self._provider.cancel(job.provider_task_id)
