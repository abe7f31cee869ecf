"""The recovery agent: after a restart or a rebalance, takes up what was in flight."""

import asyncio
from collections import defaultdict
from collections.abc import Collection
from typing import Final

from models.commands import TakeOverProject
from models.identifiers import event_id
from models.ports import JobQueue, JobStore, ProjectStore, Publisher
from models.work import Tally

_AT_ONCE: Final = 200
"""So many rows are looked at in one go."""


class RecoveryAgent:
    """Hands the open jobs of newly assigned partitions to the runner, and notes the interruption."""

    name = "recovery"

    def __init__(
        self, *, projects: ProjectStore, jobs: JobStore, queue: JobQueue, publisher: Publisher
    ) -> None:
        self._projects = projects
        self._jobs = jobs
        self._queue = queue
        self._publisher = publisher

    async def take_over(self, partitions: Collection[int], *, new: Collection[int]) -> tuple[int, int]:
        """Take up the open work of *partitions*; return how many jobs, and how many projects of *new* ones.

        Work of partitions that this worker already had was not interrupted, only its queue was emptied.
        """
        opened = {project.project_id: project for project in self._projects.open_projects(new)}
        kept: defaultdict[str, Tally] = defaultdict(Tally)
        waiting = 0
        for number, row in enumerate(self._jobs.jobs(partitions), start=1):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)  # so many rows must not keep the worker from its broker
            job = self._jobs.get(row.job_id) or row
            if not job.is_settled:
                self._queue.take(job)
                waiting += 1
            elif job.project_id in opened and job.output is not None:
                kept[job.project_id] += job.tally
        for project in opened.values():
            command = TakeOverProject(
                project_id=project.project_id,
                command_id=event_id("takeover", project.project_id, project.version),
                expected_version=project.version,
                kept=kept[project.project_id],
            )
            await self._publisher.publish(command)
        return waiting, len(opened)
