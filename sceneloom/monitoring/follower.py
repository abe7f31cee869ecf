"""Follows the compacted topics of jobs and projects, each row read once, without a consumer group."""

import asyncio
from contextlib import suppress
from datetime import datetime
from typing import Final

import structlog
from aiokafka import ConsumerRecord
from pydantic import ValidationError

from models.job import Job
from models.snapshot import ProjectSnapshot
from sceneloom.client import Reader
from sceneloom.monitoring.work import WorkBook, WorkCounts
from sceneloom.settings import Settings
from sceneloom.topic_admin import BrokerUnreachable, TopicsMissing
from sceneloom.topics import JOBS_TABLE, PROJECT_STATES

_AGAIN_SECONDS: Final = 5.0
_log = structlog.get_logger(__name__)


class WorkFollower:
    """Knows how much work there is, as of the last row that it has read."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._book: WorkBook | None = None

    def counts(self, now: datetime) -> WorkCounts | None:
        """Return the counts at *now*; None until all that was there is read, and while no broker answers."""
        return None if self._book is None else self._book.counts(now)

    async def read(self) -> None:
        """Read what is there. Raises `BrokerUnreachable` and `TopicsMissing`."""
        async with _reader(self._settings) as reader:
            self._book = await _caught_up(reader)

    async def follow(self) -> None:
        """Read what is there and what comes, for ever; begin anew after an outage."""
        while True:
            with suppress(BrokerUnreachable, TopicsMissing):
                await self._follow()
            if self._book is not None:
                _log.warning("monitor.work_unknown", reason="the broker does not answer")
                self._book = None
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _follow(self) -> None:
        async with _reader(self._settings) as reader:
            book = self._book = await _caught_up(reader)
            async for record in reader.news():
                apply(book, record)


def apply(book: WorkBook, record: ConsumerRecord) -> None:
    """Write into *book* what *record* tells, of whichever of the two topics it is."""
    key = record.key or b""
    try:
        if record.topic.endswith(PROJECT_STATES):
            snapshot = ProjectSnapshot.model_validate_json(record.value) if record.value else None
            book.put_project(key, snapshot)
        else:
            book.put_job(key, Job.model_validate_json(record.value) if record.value else None)
    except ValidationError:
        book.put_unreadable(key)


async def _caught_up(reader: Reader) -> WorkBook:
    book = WorkBook()
    async for record in reader.history():
        apply(book, record)
    return book


def _reader(settings: Settings) -> Reader:
    return Reader(settings, PROJECT_STATES, f"{settings.app_id}-{JOBS_TABLE}-changelog")
