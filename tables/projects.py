"""The latest state of each project."""

from collections.abc import Collection, Iterator
from typing import Any, cast

from models.project import Project
from sceneloom.topics import partition_of


class ProjectTable:
    """A `models.ports.ProjectStore` on a changelogged Faust table keyed by project id.

    Keys are bytes, as recovery from the changelog brings them back.
    """

    def __init__(self, table: Any, *, partitions: int) -> None:
        self._table = table
        self._partitions = partitions

    def get(self, project_id: str, /) -> Project | None:
        """Return the project, or None where there is none."""
        return cast("Project | None", self._table.get(project_id.encode()))

    def put(self, project: Project, /) -> None:
        """Keep *project* as the latest; only while handling a message of its partition."""
        self._table[project.project_id.encode()] = project

    def open_projects(self, partitions: Collection[int], /) -> Iterator[Project]:
        """Return the projects of *partitions* that still have work to do.

        A memory table also shows rows of partitions that have moved away, so each row's own is looked at.
        """
        for project in cast("list[Project]", list(self._table.values())):
            if project.is_open and partition_of(project.project_id, self._partitions) in partitions:
                yield project
