"""Which projects there are, by their snapshots."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from models.lifecycle import ProjectState
from models.snapshot import ProjectSnapshot
from sceneloom.operations.latest import Latest, read_latest
from sceneloom.settings import Settings
from sceneloom.topics import PROJECT_STATES


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
