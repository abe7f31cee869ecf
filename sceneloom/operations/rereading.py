"""Reads a message as the workers would: on which topics they read, and whether they could."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from sceneloom import intake
from sceneloom.codec import Unreadable
from sceneloom.monitoring.watch import inputs
from sceneloom.settings import Settings
from sceneloom.topics import (
    CREDIT_REQUESTS,
    CREDIT_RESULTS,
    JOB_EVENTS,
    PROJECT_REQUESTS,
    SCENE_REQUESTS,
    SCENE_RESULTS,
    topic_name,
)

Read = Callable[[bytes | None, bytes | None], Any]

_READERS: Final[Mapping[str, Read]] = MappingProxyType(
    {
        PROJECT_REQUESTS: intake.read_for_projects,
        SCENE_REQUESTS: intake.read_for_scenes,
        JOB_EVENTS: intake.read_for_scenes,
        SCENE_RESULTS: intake.read_for_projects,
        CREDIT_REQUESTS: intake.read_for_errands,  # where the credits are kept elsewhere
        CREDIT_RESULTS: intake.read_for_projects,
    }
)

READ_BY_WORKERS: Final = tuple(_READERS)
"""The topics that a message can die on, and be sent to again."""

FROM_OUTSIDE: Final = frozenset({PROJECT_REQUESTS, CREDIT_REQUESTS})
"""Those where others write, too; to the rest only workers do, and the gateway."""


def read_by_workers(name: str, settings: Settings) -> str | None:
    """Return the topic called *name* without its prefix; None where no worker with *settings* reads it."""
    read = inputs(settings)
    return next((each for each in READ_BY_WORKERS if topic_name(settings, each) == name in read), None)


def why_unreadable(name: str, key: bytes | None, value: bytes | None, settings: Settings) -> str:
    """Return why workers of this release cannot read that message on the topic *name*; empty where they can.

    Empty as well for a topic that no worker reads.
    """
    topic = read_by_workers(name, settings)
    if topic is None:
        return ""
    kept_here = topic == CREDIT_REQUESTS and settings.credits == "table"
    read = intake.read_for_credits if kept_here else _READERS[topic]
    try:
        read(key, value)
    except Unreadable as error:
        return str(error)
    return ""
