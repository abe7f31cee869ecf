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
from models.credit_messages import (
    CreditsRefused,
    CreditsReserved,
    CreditsSettled,
    GrantCredits,
    LedgerAnswered,
    ReserveCredits,
    SettleCredits,
)
from models.credits import AccountSnapshot
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
CREDIT_REQUESTS: Final = "credit-requests"
CREDIT_RESULTS: Final = "credit-results"
CREDIT_STATES: Final = "credit-states"
DEAD_LETTERS: Final = "dead-letters"

PROJECTS_TABLE: Final = "projects"
JOBS_TABLE: Final = "jobs"
CREDITS_TABLE: Final = "credits"
ERRANDS_TABLE: Final = "errands"

TABLES: Final = (PROJECTS_TABLE, JOBS_TABLE, CREDITS_TABLE, ERRANDS_TABLE)
"""All that there are; which of them workers have depends on who keeps the credits."""

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
        **_credit_topics(settings),
    }
    for topic, config in kept.items():
        yield TopicSpec(topic_name(settings, topic), settings.partitions, settings.replication, config)
    yield TopicSpec(
        topic_name(settings, DEAD_LETTERS), 1, settings.replication, _kept(30, _LARGEST_MESSAGE + _HEADERS)
    )
    for table in (PROJECTS_TABLE, JOBS_TABLE, *_credit_tables(settings)):
        yield TopicSpec(
            changelog_name(settings, table), settings.partitions, settings.replication, _COMPACTED
        )


def _credit_topics(settings: Settings) -> dict[str, dict[str, str]]:
    match settings.credits:
        case "off":
            return {}
        case "table":
            return {CREDIT_REQUESTS: _kept(7), CREDIT_RESULTS: _kept(7), CREDIT_STATES: _COMPACTED}
        case "http":
            return {CREDIT_REQUESTS: _kept(7), CREDIT_RESULTS: _kept(7)}


def _credit_tables(settings: Settings) -> tuple[str, ...]:
    match settings.credits:
        case "off":
            return ()
        case "table":
            return (CREDITS_TABLE,)
        case "http":
            return (ERRANDS_TABLE,)


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
    | SceneStopped
    | CreditsReserved
    | CreditsRefused
    | CreditsSettled,
    Field(discriminator="type"),
]
"""What the projects agent reads: project-requests, scene-results, and with credits also credit-results."""

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

CreditsInput = Annotated[GrantCredits | ReserveCredits | SettleCredits, Field(discriminator="type")]
"""What the credits agent reads on credit-requests."""

ErrandsInput = Annotated[ReserveCredits | SettleCredits | LedgerAnswered, Field(discriminator="type")]
"""What the errands agent reads on credit-requests, where the ledger is another company's."""

PROJECTS_INPUT: TypeAdapter[ProjectsInput] = TypeAdapter(ProjectsInput)
SCENES_INPUT: TypeAdapter[ScenesInput] = TypeAdapter(ScenesInput)
CREDITS_INPUT: TypeAdapter[CreditsInput] = TypeAdapter(CreditsInput)
ERRANDS_INPUT: TypeAdapter[ErrandsInput] = TypeAdapter(ErrandsInput)


def topic_of(message: Message) -> str:  # noqa: PLR0911 -- one match over all messages reads best whole
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
        case GrantCredits() | ReserveCredits() | SettleCredits() | LedgerAnswered():
            return CREDIT_REQUESTS
        case CreditsReserved() | CreditsRefused() | CreditsSettled():
            return CREDIT_RESULTS
        case AccountSnapshot():
            return CREDIT_STATES
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


def key_of(message: Message) -> str:
    """Return the key of *message* on its topic: whoever owns that partition is the one to read it."""
    match message:
        case GrantCredits() | ReserveCredits() | SettleCredits() | LedgerAnswered() | AccountSnapshot():
            return message.user_id
        case _:
            return message.project_id


def partition_of(key: str | bytes, partitions: int) -> int:
    """Return the partition of a project, or of a user, on every keyed topic, as Kafka's own clients do."""
    raw = key.encode() if isinstance(key, str) else key
    everyone = list(range(partitions))
    return int(DefaultPartitioner()(raw, everyone, everyone))
