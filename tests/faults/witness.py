"""Who reads everything that the workers say, from the first message on, and forgets nothing."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable
from typing import Final, Self

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError

from models.job_events import JobEvent
from models.lifecycle import ProjectState
from models.project import Project
from models.snapshot import ProjectSnapshot
from sceneloom.client import PublicEvent, event_in, job_event_in, snapshot_in
from sceneloom.settings import Settings
from sceneloom.topic_admin import partition_counts
from sceneloom.topics import (
    DEAD_LETTERS,
    JOB_EVENTS,
    PROJECT_EVENTS,
    PROJECT_STATES,
    PROJECTS_TABLE,
    changelog_name,
    topic_name,
)

ENDED: Final = frozenset({ProjectState.COMPLETED, ProjectState.FAILED, ProjectState.CANCELLED})


class Witness:
    """An asynchronous context manager; inside it, what is on the topics is seen within moments."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.snapshots: dict[str, list[ProjectSnapshot]] = defaultdict(list)
        """Of each project, in the order of the topic."""
        self.rows: dict[str, Project] = {}
        """The newest row of each project, as recovery reads the changelog."""
        self.events: dict[str, list[PublicEvent]] = defaultdict(list)
        self.job_events: list[JobEvent] = []
        self.letters: list[ConsumerRecord] = []
        self._news = asyncio.Condition()
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._changelog = changelog_name(self._settings, PROJECTS_TABLE)
        names = [*(topic_name(self._settings, topic) for topic in _TOPICS), self._changelog]
        counts = await partition_counts(self._settings, names)
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=",".join(self._settings.bootstrap),
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await self._consumer.start()
        self._consumer.assign([TopicPartition(name, n) for name in names for n in range(counts[name])])
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._reading is not None:
            self._reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reading
        await self._consumer.stop()

    def latest(self, project_id: str) -> ProjectSnapshot | None:
        """Return the newest snapshot, as a reader keeps it that drops what is not newer."""
        return max(self.snapshots.get(project_id, ()), key=lambda each: each.version, default=None)

    def has_ended(self, project_id: str) -> bool:
        """Tell whether nothing more is made for the project."""
        latest = self.latest(project_id)
        return latest is not None and latest.state in ENDED

    async def until(self, reached: Callable[[], bool], *, seconds: float, what: str) -> None:
        """Wait until *reached*. Raises `AssertionError`, which names *what* was waited for."""
        try:
            async with asyncio.timeout(seconds), self._news:
                await self._news.wait_for(reached)
        except TimeoutError:
            raise AssertionError(f"not within {seconds:g} s: {what}") from None

    async def _read(self) -> None:
        while True:
            batch = {}
            with contextlib.suppress(KafkaError):  # a broker that is away comes back
                batch = await self._consumer.getmany(timeout_ms=200)
            for records in batch.values():
                for record in records:
                    self._see(record)
            async with self._news:
                self._news.notify_all()

    def _see(self, record: ConsumerRecord) -> None:
        if record.topic.endswith(DEAD_LETTERS):
            self.letters.append(record)
        elif record.topic == self._changelog:
            self._see_row(Project.model_validate_json(record.value))
        elif snapshot := snapshot_in(record):
            self.snapshots[snapshot.project_id].append(snapshot)
        elif event := event_in(record):
            self.events[event.project_id].append(event)
        elif job_event := job_event_in(record):
            self.job_events.append(job_event)

    def _see_row(self, row: Project) -> None:
        before = self.rows.get(row.project_id)
        if before is None or row.version >= before.version:
            self.rows[row.project_id] = row


_TOPICS: Final = (PROJECT_STATES, PROJECT_EVENTS, JOB_EVENTS, DEAD_LETTERS)
