"""Hints that there is news of a job. They live in memory only: one that is lost costs time, nothing else."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from models.job import Job
from models.lifecycle import SubmitState

APART: Final = timedelta(seconds=1)
"""A job is looked at again because of a hint only so long after the last time."""

_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_CAN_BE_LOOKED_AT: Final = frozenset(
    {SubmitState.ACCEPTED, SubmitState.UNKNOWN, SubmitState.NEEDS_CONFIRMATION}
)


@dataclass(slots=True)
class _Hint:
    call: tuple[int, int]
    task: str | None = None
    due: datetime | None = None
    looked: datetime = _NEVER


class Hints:
    """What was hinted about the jobs of this worker, each hint about one call of one attempt."""

    def __init__(self) -> None:
        self._hints: dict[str, _Hint] = {}

    def note(self, job: Job, task: str | None, *, now: datetime) -> None:
        """Remember that there is news of *job*, and of which *task* of its provider, where that is said."""
        hint = self._about(job)
        if hint is None:
            hint = self._hints[job.job_id] = _Hint(_call(job))
        hint.task = task or hint.task
        hint.due = hint.due or max(now, hint.looked + APART)

    def sooner(self, job: Job, due: datetime) -> datetime:
        """Return when to look at *job*: when it is *due* anyway, or before that because of a hint."""
        hint = self._about(job)
        if hint is None or hint.due is None or job.submit not in _CAN_BE_LOOKED_AT:
            return due
        return min(due, hint.due)

    def task_of(self, job: Job) -> str | None:
        """Return the provider's name of the task of *job*, where a hint told it."""
        hint = self._about(job)
        return hint.task if hint else None

    def looked(self, job: Job, *, now: datetime) -> None:
        """Note that *job* is being looked at; what is hinted from now on is a reason to look again."""
        hint = self._about(job)
        if hint is not None:
            hint.due, hint.looked = None, now

    def forget(self, job_id: str) -> None:
        """Forget what was hinted about the job."""
        self._hints.pop(job_id, None)

    def _about(self, job: Job) -> _Hint | None:
        hint = self._hints.get(job.job_id)
        return hint if hint is not None and hint.call == _call(job) else None


def _call(job: Job) -> tuple[int, int]:
    return job.attempt, job.postponed
