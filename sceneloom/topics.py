"""Every topic, in one place: its name, its partitions, how long it keeps what, and what travels on it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from aiokafka.partitioner import DefaultPartitioner
from pydantic import Field, TypeAdapter

from models.commands import (
    ApproveResend,
    CancelProject,
    CancelScene,
    RequestScene,
    ResolveSubmit,
    RetryProject,
    SubmitProject,
    TakeOverProject,
)
from models.job_events import (
    JobFailed,
    JobPostponed,
    JobStillRunning,
    JobStopped,
    JobSubmitted,
    JobSucceeded,
    PollNow,
    PollStalled,
    SubmitIntended,
    SubmitOutcomeUnknown,
    SubmitUnresolved,
)
from models.ports import Message
from models.results import (
    SceneCompleted,
    SceneDelayed,
    SceneFailed,
    SceneProgressed,
    SceneStopped,
    SceneUnclear,
)
from models.snapshot import ProjectSnapshot
from sceneloom.settings import Settings

PROJECT_REQUESTS: Final = "project-requests"
SCENE_REQUESTS: Final = "scene-requests"
JOB_EVENTS: Final = "job-events"
SCENE_RESULTS: Final = "scene-results"
PROJECT_EVENTS: Final = "project-events"
PROJECT_STATES: Final = "project-states"
DEAD_LETTERS: Final = "dead-letters"

PROJECTS_TABLE: Final = "projects"
JOBS_TABLE: Final = "jobs"

_DAY_MS: Final = 24 * 60 * 60 * 1000
_LARGEST_MESSAGE: Final = 4 * 1024 * 1024
_HEADERS: Final = 64 * 1024
_COMPACTED: Final = {"cleanup.policy": "compact"}


def _kept(days: int, largest: int = _LARGEST_MESSAGE) -> dict[str, str]:
    """Keep messages for *days*: also those too large for us, which must still become dead letters."""
    return {
        "cleanup.policy": "delete",
        "retention.ms": str(days * _DAY_MS),
        "max.message.bytes": str(largest),
    }


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """What a topic must be like on the broker; `config` holds Kafka's own setting names."""

    name: str
    partitions: int
    replication: int
    config: Mapping[str, str]


def topic_name(settings: Settings, topic: str) -> str:
    """Return the name of *topic* on the broker."""
    return f"{settings.topic_prefix}{topic}"


def app_name(settings: Settings) -> str:
    """Return the name of the consumer group, which also starts the names of the changelogs."""
    return f"{settings.topic_prefix}{settings.app_id}"


def changelog_name(settings: Settings, table: str) -> str:
    """Return the name of the changelog of *table*, as Faust names it."""
    return f"{app_name(settings)}-{table}-changelog"


def topic_specs(settings: Settings) -> Iterator[TopicSpec]:
    """Return every topic that must exist before a worker starts."""
    kept = {
        PROJECT_REQUESTS: _kept(7),
        SCENE_REQUESTS: _kept(7),
        JOB_EVENTS: _kept(7),
        SCENE_RESULTS: _kept(7),
        PROJECT_EVENTS: _kept(30),
        PROJECT_STATES: _COMPACTED,
    }
    for topic, config in kept.items():
        yield TopicSpec(topic_name(settings, topic), settings.partitions, settings.replication, config)
    yield TopicSpec(
        topic_name(settings, DEAD_LETTERS), 1, settings.replication, _kept(30, _LARGEST_MESSAGE + _HEADERS)
    )
    for table in (PROJECTS_TABLE, JOBS_TABLE):
        yield TopicSpec(
            changelog_name(settings, table), settings.partitions, settings.replication, _COMPACTED
        )


ProjectsInput = Annotated[
    SubmitProject
    | CancelProject
    | RetryProject
    | ApproveResend
    | TakeOverProject
    | SceneProgressed
    | SceneCompleted
    | SceneFailed
    | SceneDelayed
    | SceneUnclear
    | SceneStopped,
    Field(discriminator="type"),
]
"""What the projects agent reads: project-requests and scene-results."""

ScenesInput = Annotated[
    RequestScene
    | CancelScene
    | ResolveSubmit
    | SubmitIntended
    | JobSubmitted
    | JobStillRunning
    | JobPostponed
    | JobSucceeded
    | JobFailed
    | SubmitOutcomeUnknown
    | SubmitUnresolved
    | JobStopped
    | PollStalled
    | PollNow,
    Field(discriminator="type"),
]
"""What the scenes agent reads: scene-requests and job-events."""

PROJECTS_INPUT: TypeAdapter[ProjectsInput] = TypeAdapter(ProjectsInput)
SCENES_INPUT: TypeAdapter[ScenesInput] = TypeAdapter(ScenesInput)


def topic_of(message: Message) -> str:
    """Return the topic that carries *message*."""
    match message:
        case SubmitProject() | CancelProject() | RetryProject() | ApproveResend() | TakeOverProject():
            return PROJECT_REQUESTS
        case RequestScene() | CancelScene() | ResolveSubmit():
            return SCENE_REQUESTS
        case (
            SceneProgressed()
            | SceneCompleted()
            | SceneFailed()
            | SceneDelayed()
            | SceneUnclear()
            | SceneStopped()
        ):
            return SCENE_RESULTS
        case ProjectSnapshot():
            return PROJECT_STATES
        case (
            SubmitIntended()
            | JobSubmitted()
            | JobStillRunning()
            | JobPostponed()
            | JobSucceeded()
            | JobFailed()
            | SubmitOutcomeUnknown()
            | SubmitUnresolved()
            | JobStopped()
            | PollStalled()
            | PollNow()
        ):
            return JOB_EVENTS
        case _:
            return PROJECT_EVENTS


def partition_of(project_id: str | bytes, partitions: int) -> int:
    """Return the partition of a project on every keyed topic, by Kafka's murmur2, as all clients do."""
    key = project_id.encode() if isinstance(project_id, str) else project_id
    everyone = list(range(partitions))
    return int(DefaultPartitioner()(key, everyone, everyone))
