"""The recovery agent: after a restart or a rebalance, takes up what was in flight."""

from collections.abc import Collection

from models.commands import TakeOverProject
from models.identifiers import event_id
from models.ports import JobQueue, JobStore, ProjectStore, Publisher


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
        jobs = list(self._jobs.open_jobs(partitions))
        for job in jobs:
            self._queue.take(job)
        projects = list(self._projects.open_projects(new))
        for project in projects:
            command = TakeOverProject(
                project_id=project.project_id,
                command_id=event_id("takeover", project.project_id, project.version),
                expected_version=project.version,
            )
            await self._publisher.publish(command)
        return len(jobs), len(projects)
