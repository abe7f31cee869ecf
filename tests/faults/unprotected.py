"""Each protection, taken away from one worker: so that a scenario is seen to fail without it."""

import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

from faust.stores import rocksdb

from agents.recovery import RecoveryAgent
from models.job import Job
from models.project import Project
from models.values import Value
from sceneloom import app
from sceneloom.callbacks import Call
from sceneloom.changelog_notes import ChangelogNotes
from sceneloom.consumer_thread import SafeConsumerThread
from sceneloom.custody import Custody
from sceneloom.delivery import Delivery, app_settings
from sceneloom.durable_table import MendedStore
from sceneloom.runner import JobRunner
from sceneloom.runner.agenda import Step
from sceneloom.runner.buying import Buying
from sceneloom.runner.searching import Searching
from sceneloom.safe_consumer import SafeConsumer
from sceneloom.watchdogs import LoopWatch
from sceneloom.workshop.pace import Pace
from sceneloom.workshop.workshop import Workshop
from tables.projects import ProjectTable


def _replace(owner: Any, name: str, instead: Any) -> None:
    setattr(owner, name, instead)


async def _yes(*_: object, **__: object) -> bool:
    return True


async def _nothing(*_: object, **__: object) -> None:
    """Do nothing."""


def _call_again() -> None:
    """Make the announced call of a worker that died once more, as if it had never been made."""
    _replace(Buying, "has_announced", lambda _self, job: bool(job))


def _no_takeover() -> None:
    """Forget what was in flight."""

    async def take_over(*_: object, **__: object) -> tuple[int, int]:
        return 0, 0

    _replace(RecoveryAgent, "take_over", take_over)


def _no_fence() -> None:
    """Let a worker that has overslept go on, with all that it believes to own."""
    _replace(Delivery, "ensure_alive", _nothing)
    _replace(Delivery, "end_if_overslept", lambda _self: None)
    _replace(LoopWatch, "has_hung", lambda _self, _now: False)
    _replace(Delivery, "_ensure_member", _nothing)
    _replace(Delivery, "is_member", _yes)
    _replace(Custody, "owns", lambda _self, _key: True)


def _no_announcement() -> None:
    """Make a call at once, and tell of it afterwards."""

    async def order(self: Any, job: Job) -> Step:
        async with self._workshop.place(job):
            await self._guarded(job, self._submit(job))
        return Step(job)

    _replace(Buying, "order", order)


def _no_pace() -> None:
    """Call a provider that is ill or has set a limit as often as there is work."""
    _replace(Pace, "wait_until", lambda _self, _now: None)


def _repeat_unclear() -> None:
    """Take a lost answer for a call that was not made."""
    _replace(Workshop, "repeatable", lambda _self, _job: True)


def _no_grace() -> None:
    """Believe the list at once."""
    original = Searching.__init__

    def without(self: Searching, **options: Any) -> None:
        original(self, **options | {"grace": timedelta()})

    _replace(Searching, "__init__", without)


def _no_deadline() -> None:
    """Wait for a task for ever."""
    _replace(Workshop, "deadline", lambda _self, _job: timedelta(days=10_000))


def _no_winding_up() -> None:
    """Forget what a cancelled job had ordered."""

    async def wind_up(_self: object, job: Job) -> Step:
        return Step(job)

    _replace(JobRunner, "_wind_up", wind_up)


def _forget_what_ended() -> None:
    """Forget projects when they have ended, as if nobody could ask for them again."""
    get = ProjectTable.get

    def without(table: ProjectTable, project_id: str) -> Project | None:
        project = get(table, project_id)
        return project if project is not None and project.is_open else None

    _replace(ProjectTable, "get", without)


def _no_letters() -> None:
    """Throw away what cannot be read."""
    _replace(Delivery, "dead_letter", _nothing)


def _no_leaps() -> None:
    """Believe the clock, whoever has set it."""
    _replace(JobRunner, "_mind_the_clock", lambda _self: None)


def _no_rollback() -> None:
    """Refuse the rows of a newer release."""
    for model in _all_values(Value):
        model.model_config["extra"] = "forbid"
        model.model_rebuild(force=True)


def _all_values(model: type[Value]) -> list[type[Value]]:
    return [each for child in model.__subclasses__() for each in (child, *_all_values(child))]


def _believe_callers() -> None:
    """Take whoever calls for a provider."""
    _replace(Call, "is_proven_by", lambda _self, _token, _secret: True)


def _no_mending() -> None:
    """Open whatever lies in the folder of the tables."""
    _replace(MendedStore, "_open_for_partition", rocksdb.Store._open_for_partition)


def _no_notes() -> None:
    """Read a table from whatever the changelog holds."""
    _replace(ChangelogNotes, "losses", lambda *_: [])


def _no_acknowledgements() -> None:
    """Go on, and commit, before the broker has what was sent; and have it acknowledge nothing."""

    async def settled(_self: object) -> bool:
        return True

    _replace(Delivery, "settled", settled)
    _replace(app, "app_settings", lambda: app_settings() | {"producer_acks": 0})


def _no_ids() -> None:
    """Know topics by their names alone, and go on where the old one of the name was left."""

    async def none(*_: object) -> dict[str, str]:
        return {}

    _replace(SafeConsumerThread, "topic_ids", none)
    _replace(SafeConsumer, "_began_anew", lambda *_: False)


PROTECTIONS: Final[Mapping[str, Callable[[], None]]] = MappingProxyType(
    {
        "topics are known by their ids": _no_ids,
        "an announced call is never made by another worker": _call_again,
        "open work is taken over": _no_takeover,
        "a worker that stood still ends": _no_fence,
        "calls are announced": _no_announcement,
        "a provider's limits and illness are heeded": _no_pace,
        "an unclear outcome is not repeated": _repeat_unclear,
        "a list has time to show a task": _no_grace,
        "tasks have a deadline": _no_deadline,
        "cancelled jobs are wound up": _no_winding_up,
        "projects that ended are remembered": _forget_what_ended,
        "what cannot be read is a dead letter": _no_letters,
        "a clock that was set is noticed": _no_leaps,
        "fields of newer releases are ignored": _no_rollback,
        "webhooks must be proven": _believe_callers,
        "damaged tables are read anew": _no_mending,
        "changelogs must hold what was acknowledged": _no_notes,
        "acknowledgements": _no_acknowledgements,
    }
)


def take_away() -> None:
    """Take away the protection that FAULT_WITHOUT names, if it names one."""
    if without := os.environ.get("FAULT_WITHOUT"):
        PROTECTIONS[without]()
