"""From the bytes on a topic to a message that an agent understands, or to the reason why it is none."""

from collections.abc import Mapping
from typing import Final, TypeVar

from pydantic_core import from_json

from models.commands import SubmitProject
from models.identifiers import event_id, is_identifier
from models.ports import Message
from models.video_job import is_video_job
from sceneloom.codec import MAX_BYTES, Unreadable, decode, shortened
from sceneloom.topics import (
    CREDIT_REQUESTS,
    CREDITS_INPUT,
    ERRANDS_INPUT,
    PROJECTS_INPUT,
    SCENES_INPUT,
    CreditsInput,
    ErrandsInput,
    ProjectsInput,
    ScenesInput,
    key_of,
    partition_of,
    topic_of,
)

M = TypeVar("M", bound=Message)

_COMMAND_TYPES: Final = "SubmitProject, CancelProject, RetryProject or ApproveResend"


FORWARDED: Final = "sceneloom-forwarded"
"""The header of a message that was moved to the partition of its key."""


def is_misplaced(key: bytes | None, partition: int, headers: Mapping[str, bytes], partitions: int) -> bool:
    """Tell whether a message must be sent again, because its producer did not partition as Kafka's own does.

    Clients on librdkafka do not unless told so, and the project's owner would never see the message. What was
    moved once is not moved again.
    """
    if key is None or FORWARDED in headers:
        return False
    return partition_of(key, partitions) != partition


def origin(topic: str, partition: int, offset: int) -> str:
    """Name a message by where it stands, which a second delivery does not change."""
    return event_id("origin", topic, partition, offset)


def read_for_projects(key: bytes | None, value: bytes | None) -> ProjectsInput:
    """Return the message for the projects agent. Raises `Unreadable`.

    Beside commands and results, this is what a producer may send in short: a project request keyed by its
    project id, or a bare VideoJob.
    """
    return _owned(key, _in_short(key, value) or decode(PROJECTS_INPUT, value))


def read_for_scenes(key: bytes | None, value: bytes | None) -> ScenesInput:
    """Return the message for the scenes agent. Raises `Unreadable`."""
    return _owned(key, decode(SCENES_INPUT, value))


def read_for_credits(key: bytes | None, value: bytes | None) -> CreditsInput:
    """Return the message for the credits agent. Raises `Unreadable`."""
    return _owned(key, decode(CREDITS_INPUT, value))


def read_for_errands(key: bytes | None, value: bytes | None) -> ErrandsInput:
    """Return the message for the errands agent. Raises `Unreadable`."""
    return _owned(key, decode(ERRANDS_INPUT, value))


def _in_short(key: bytes | None, value: bytes | None) -> SubmitProject | None:
    if value is None or len(value) > MAX_BYTES:
        return None
    try:
        # As lenient as `decode`: what JSON has not, such as 1e999, is then a fault of its field.
        raw = from_json(value)
    except ValueError:
        return None
    if not isinstance(raw, dict) or "type" in raw:
        return None
    if "scenes" not in raw and not is_video_job(raw):
        raise Unreadable(f"it has no `type`: send {_COMMAND_TYPES}, a project request or a VideoJob")
    named = raw.get("id") if is_video_job(raw) else None
    project_id = str(named) if named is not None else (key or b"").decode(errors="replace")
    if not is_identifier(project_id):
        raise Unreadable(
            f"the project id, {shortened(repr(project_id))}, must be 1 to 64 of "
            "A-Z, a-z, 0-9, dot, underscore and hyphen"
        )
    return SubmitProject(project_id=project_id, request=raw)


def _owned(key: bytes | None, message: M) -> M:
    """Refuse a message under another key: its partition may belong to a worker without that row."""
    wanted = key_of(message)
    if key is None or key.decode(errors="replace") != wanted:
        what = "user id" if topic_of(message) == CREDIT_REQUESTS else "project id"
        raise Unreadable(f"the key must be the {what}, {shortened(wanted)}, and is {shortened(repr(key))}")
    return message
