"""Which job is due when."""

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from models.job import Job


@dataclass(frozen=True, slots=True)
class Step:
    """How a step ended: with which form of the job, and whether to look at that again without news of it.

    `at` says when, where that does not follow from the job.
    """

    job: Job
    look_again: bool = False
    at: datetime | None = None


class Agenda:
    """A heap of due jobs: one that is not due costs nothing; a later entry of a job replaces its first."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, int, str]] = []
        self._numbers = itertools.count()
        self._latest: dict[str, int] = {}

    @property
    def first(self) -> datetime | None:
        """When the first entry is due, or None where there is none."""
        return self._heap[0][0] if self._heap else None

    def put(self, job_id: str, due: datetime) -> None:
        """Have the job come up when it is *due*, in place of what was put down for it before."""
        number = self._latest[job_id] = next(self._numbers)
        heapq.heappush(self._heap, (due, number, job_id))

    def due(self, now: datetime) -> Iterator[str]:
        """Take out and yield the jobs that are due at *now*, in order."""
        while self._heap and self._heap[0][0] <= now:
            _, number, job_id = heapq.heappop(self._heap)
            if self._latest.get(job_id) == number:
                yield job_id

    def forget(self, job_id: str) -> None:
        """Take the job off."""
        self._latest.pop(job_id, None)

    def clear(self) -> None:
        """Take all jobs off."""
        self._heap.clear()
        self._latest.clear()
