"""The one table that says which state may follow which: projects, scenes and jobs."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeVar

from models.errors import IllegalTransition


class ProjectState(StrEnum):
    """Where a project stands."""

    CREATED = "Created"
    GENERATING_SCENES = "GeneratingScenes"
    RENDERING = "Rendering"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


class SceneStatus(StrEnum):
    """Where a scene of a project stands."""

    PENDING = "Pending"
    IN_PROGRESS = "InProgress"
    COMPLETED = "Completed"
    FAILED = "Failed"


class JobStatus(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    VALIDATING = "validating"
    RUNNING = "running"
    DELAYED = "delayed"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class SubmitState(StrEnum):
    """What is known of a running job's submit, the one call that may cost money."""

    INTENDED = "intended"
    ACCEPTED = "accepted"
    UNKNOWN = "unknown"
    NEEDS_CONFIRMATION = "needs_confirmation"


S = TypeVar("S", ProjectState, SceneStatus, JobStatus)

PROJECT_TRANSITIONS: Final[Mapping[ProjectState, frozenset[ProjectState]]] = MappingProxyType(
    {
        ProjectState.CREATED: frozenset(
            {ProjectState.GENERATING_SCENES, ProjectState.FAILED, ProjectState.CANCELLED}
        ),
        ProjectState.GENERATING_SCENES: frozenset(
            {ProjectState.RENDERING, ProjectState.FAILED, ProjectState.CANCELLED}
        ),
        ProjectState.RENDERING: frozenset(
            {ProjectState.COMPLETED, ProjectState.FAILED, ProjectState.CANCELLED}
        ),
        ProjectState.COMPLETED: frozenset(),
        ProjectState.FAILED: frozenset({ProjectState.GENERATING_SCENES}),
        ProjectState.CANCELLED: frozenset(),
    }
)

SCENE_TRANSITIONS: Final[Mapping[SceneStatus, frozenset[SceneStatus]]] = MappingProxyType(
    {
        SceneStatus.PENDING: frozenset({SceneStatus.IN_PROGRESS}),
        SceneStatus.IN_PROGRESS: frozenset({SceneStatus.COMPLETED, SceneStatus.FAILED}),
        SceneStatus.COMPLETED: frozenset(),
        SceneStatus.FAILED: frozenset({SceneStatus.IN_PROGRESS}),
    }
)

JOB_TRANSITIONS: Final[Mapping[JobStatus, frozenset[JobStatus]]] = MappingProxyType(
    {
        JobStatus.QUEUED: frozenset(
            {
                JobStatus.VALIDATING,
                JobStatus.RUNNING,
                JobStatus.SUCCEEDED,
                JobStatus.FAILED,
                JobStatus.CANCELLED,
            }
        ),
        JobStatus.VALIDATING: frozenset({JobStatus.RUNNING, JobStatus.FAILED, JobStatus.CANCELLED}),
        JobStatus.RUNNING: frozenset(
            {
                JobStatus.QUEUED,  # a call was refused for now, and is worth another one later
                JobStatus.DELAYED,
                JobStatus.SUCCEEDED,
                JobStatus.FAILED,
                JobStatus.CANCELLED,
            }
        ),
        JobStatus.DELAYED: frozenset(
            {
                JobStatus.QUEUED,  # the task surely failed, and is worth another call
                JobStatus.RUNNING,
                JobStatus.SUCCEEDED,
                JobStatus.FAILED,
                JobStatus.CANCELLED,
            }
        ),
        JobStatus.SUCCEEDED: frozenset({JobStatus.QUEUED}),  # wanted in other words
        JobStatus.FAILED: frozenset({JobStatus.QUEUED}),
        JobStatus.CANCELLED: frozenset(),
    }
)


def moved(table: Mapping[S, frozenset[S]], current: S, target: S, *, subject: str) -> S:
    """Return *target* where *table* allows it after *current*. Raises `IllegalTransition`."""
    if target not in table[current]:
        raise IllegalTransition(subject, current, target)
    return target
