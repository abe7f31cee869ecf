"""Which projects there are, by their snapshots."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from models.lifecycle import ProjectState
from models.snapshot import ProjectSnapshot
from sceneloom.operations.jobs import LAST_LOOK, JobLine
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


def stuck(
    projects: Iterable[ProjectSnapshot], jobs: Iterable[JobLine], now: datetime
) -> list[ProjectSnapshot]:
    """Return the projects that nobody gets on with: one of their *jobs* is stuck, or they have none open.

    The next job is ordered within milliseconds, so that one which lacks for minutes is not on its way.
    """
    of_project: defaultdict[str, list[JobLine]] = defaultdict(list)
    for line in jobs:
        of_project[line.job.project_id].append(line)

    def is_stuck(project: ProjectSnapshot) -> bool:
        lines = [line for line in of_project[project.project_id] if not line.job.finished]
        return any(line.stuck for line in lines) or (not lines and now - project.updated_at > LAST_LOOK)

    return [project for project in projects if project.state in _AT_WORK and is_stuck(project)]
