"""The latest attempt at each job."""

from collections.abc import Collection, Iterator
from typing import Any, cast

from models.identifiers import FILM, job_id, scene_id
from models.job import Job
from models.request import MOST_SCENES
from models.work import JobKind
from sceneloom.topics import partition_of


class JobTable:
    """A `models.ports.JobStore` on a changelogged Faust table keyed by job id, partitioned by project.

    Keys are bytes, as recovery from the changelog brings them back.
    """

    def __init__(self, table: Any, *, partitions: int) -> None:
        self._table = table
        self._partitions = partitions
        self._task_ids: set[str] = set()
        self._indexed: object = None

    def get(self, job_id: str, /) -> Job | None:
        """Return the latest attempt at the job, or None where there is none."""
        return cast("Job | None", self._table.get(job_id.encode()))

    def put(self, job: Job, /) -> None:
        """Keep *job* as the latest; only while handling a message of its partition."""
        if job.provider_task_id is not None:
            self._task_ids.add(job.provider_task_id)
        self._table[job.job_id.encode()] = job

    def jobs(self, partitions: Collection[int], /) -> Iterator[Job]:
        """Return all jobs of *partitions*.

        A memory table also shows rows of partitions that have moved away, so each row's own is looked at.
        """
        for job in cast("list[Job]", list(self._table.values())):
            if partition_of(job.project_id, self._partitions) in partitions:
                yield job

    def jobs_of(self, project_id: str, /) -> Iterator[Job]:
        """Return the jobs of one project: of all scenes that it may have, and of its film."""
        for number in range(1, MOST_SCENES + 1):
            yield from self._scene(project_id, scene_id(number))
        yield from self._scene(project_id, FILM)

    def _scene(self, project_id: str, scene: str) -> Iterator[Job]:
        for kind in JobKind:
            job = self.get(job_id(project_id, scene, kind))
            if job is not None:
                yield job

    def task_ids(self) -> set[str]:
        """Return the provider task ids that jobs have or had, also of partitions that have moved away.

        All rows are looked at once after each recovery, which brings rows that nobody put here.
        """
        recoveries = getattr(self._table, "recoveries", 0)
        if recoveries != self._indexed:
            jobs = cast("list[Job]", list(self._table.values()))
            self._task_ids.update(job.provider_task_id for job in jobs if job.provider_task_id is not None)
            self._indexed = recoveries
        return self._task_ids
