"""Reads a message as the workers would: on which topics they read, and whether they could."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from sceneloom import intake
from sceneloom.monitoring.watch import switched_off
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


def topic_of_workers(name: str, settings: Settings) -> str | None:
    """Return the topic called *name* without its prefix; None where no worker reads it, whatever is set."""
    return next((each for each in READ_BY_WORKERS if topic_name(settings, each) == name), None)


def reread(name: str, key: bytes | None, value: bytes | None, settings: Settings) -> Any:
    """Return that message on the topic *name* as workers of this release read it. Raises `Unreadable`.

    None for a topic that no worker with *settings* reads.
    """
    topic = topic_of_workers(name, settings)
    if topic is None or name in switched_off(settings):
        return None
    kept_here = topic == CREDIT_REQUESTS and settings.credits == "table"
    read = intake.read_for_credits if kept_here else _READERS[topic]
    return read(key, value)
