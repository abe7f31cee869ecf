"""Which projects there are, by their snapshots."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from models.job import Job
from models.lifecycle import ProjectState
from models.snapshot import ProjectSnapshot
from sceneloom.operations.jobs import LAST_LOOK, Deadline, JobLine, line
from sceneloom.operations.latest import Latest, read_latest
from sceneloom.settings import Settings
from sceneloom.topics import PROJECT_STATES

_AT_WORK: Final = frozenset({ProjectState.GENERATING_SCENES, ProjectState.RENDERING})


@dataclass(frozen=True, kw_only=True, slots=True)
class ProjectFilter:
    """Which projects are wanted: those that meet everything that is named."""

    project_id: str | None = None
    states: Collection[ProjectState] = ()
    user_id: str | None = None
    older_than: timedelta | None = None

    def wants(self, project: ProjectSnapshot, now: datetime) -> bool:
        """Tell whether *project* is wanted."""
        return (
            (self.project_id is None or project.project_id == self.project_id)
            and (not self.states or project.state in self.states)
            and (self.user_id is None or project.user_id == self.user_id)
            and (self.older_than is None or now - project.created_at > self.older_than)
        )


async def read_projects(settings: Settings) -> Latest[ProjectSnapshot]:
    """Return the latest snapshot of every project. Raises `BrokerUnreachable` and `TopicsMissing`."""
    return await read_latest(settings, PROJECT_STATES, ProjectSnapshot.model_validate_json)


def chosen(
    projects: Iterable[ProjectSnapshot], wanted: ProjectFilter, now: datetime
) -> list[ProjectSnapshot]:
    """Return the projects that are *wanted*, the newest first."""
    found = [project for project in projects if wanted.wants(project, now)]
    return sorted(found, key=lambda each: (each.created_at, each.project_id), reverse=True)


def stuck_by(jobs: Latest[Job], now: datetime, deadline: Deadline) -> Callable[[ProjectSnapshot], bool]:
    """Return what tells whether nobody gets on with a project: a job is stuck, or it has long had none open.

    The next job is ordered within milliseconds, so that one which lacks for minutes is not on its way. A long
    job may have ended just now, and its project not know it yet: the minutes count from the last change of
    either. Take *now* before you read *jobs*, and read the projects after them: else what happens in between
    looks like a job that nobody has.
    """
    open_lines: defaultdict[str, list[JobLine]] = defaultdict(list)
    changed_at: dict[str, datetime] = {}
    for job, written_at in zip(jobs.values, jobs.written_at, strict=True):
        changed_at[job.project_id] = max(written_at, changed_at.get(job.project_id, written_at))
        if not job.finished:
            open_lines[job.project_id].append(line(job, now, deadline))

    def is_stuck(project: ProjectSnapshot) -> bool:
        if project.state not in _AT_WORK:
            return False
        if lines := open_lines.get(project.project_id):
            return any(each.stuck for each in lines)
        last = max(project.updated_at, changed_at.get(project.project_id, project.updated_at))
        return now - last > LAST_LOOK

    return is_stuck
