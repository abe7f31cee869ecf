"""What a producer of requests and a consumer of events do on Kafka, without Faust and without a group."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self

import orjson
from aiokafka import (
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRecord,
    TopicPartition,
)
from aiokafka.errors import KafkaError
from pydantic import TypeAdapter, ValidationError

from models.commands import ProjectCommand, RequestScene
from models.credit_messages import GrantCredits
from models.events import CommandRefused, ProjectRejected
from models.job_events import JobEvent
from models.snapshot import ProjectSnapshot
from sceneloom.codec import encode
from sceneloom.kafka_access import ANSWER_SECONDS, client_options
from sceneloom.settings import Settings
from sceneloom.topic_admin import BrokerUnreachable, partition_counts
from sceneloom.topics import (
    JOB_EVENTS,
    PROJECT_EVENTS,
    PROJECT_STATES,
    SCENE_REQUESTS,
    key_of,
    partition_of,
    topic_name,
    topic_of,
)

_QUIET_SECONDS: Final = 10.0
_OUTAGE_SECONDS: Final = 30.0
_JOB_EVENT: Final[TypeAdapter[JobEvent]] = TypeAdapter(JobEvent)

Refusal = ProjectRejected | CommandRefused
"""The answer to a command that was not carried out."""


@dataclass(frozen=True, slots=True)
class PublicEvent:
    """A CloudEvent of project-events: its attributes without the `ce_`, and its data."""

    attributes: Mapping[str, str]
    data: Mapping[str, Any]

    @property
    def type(self) -> str:
        """What happened, such as `ProjectCompleted`."""
        return self.attributes.get("type", "")

    @property
    def project_id(self) -> str:
        """The project that it happened to."""
        return self.attributes.get("subject", "")

    @property
    def time(self) -> str:
        """When it happened, as RFC 3339."""
        return self.attributes.get("time", "")

    def structured(self) -> dict[str, Any]:
        """Return the event as the one JSON object that CloudEvents call structured mode."""
        return {**self.attributes, "datacontenttype": "application/json", "data": dict(self.data)}


async def send(settings: Settings, command: ProjectCommand | GrantCredits) -> None:
    """Publish *command* and return when the broker has it. Raises `BrokerUnreachable`, `TopicsMissing`."""
    topic = topic_name(settings, topic_of(command))
    await partition_counts(settings, [topic])
    producer = AIOKafkaProducer(
        **client_options(settings),
        acks="all",
        request_timeout_ms=int(ANSWER_SECONDS * 1000),
    )
    try:
        async with asyncio.timeout(2 * ANSWER_SECONDS):
            await producer.start()
            await producer.send_and_wait(topic, encode(command), key=key_of(command).encode())
    except (KafkaError, TimeoutError, OSError) as exc:
        raise BrokerUnreachable(settings.bootstrap) from exc
    finally:
        with contextlib.suppress(KafkaError, TimeoutError):
            await asyncio.wait_for(producer.stop(), ANSWER_SECONDS)


async def read_state(settings: Settings, project_id: str) -> ProjectSnapshot | None:
    """Return how the project stands, or None. Raises `BrokerUnreachable` and `TopicsMissing`."""
    latest = None
    async with Reader(settings, PROJECT_STATES, project_id=project_id) as reader:
        async for record in reader.history():
            latest = snapshot_in(record) or latest
    return latest


class Reader:
    """Reads topics from their beginning, those in `only_new` from their end; of one project, if it is named.

    With *since*, only what was written at that time or later.
    Entering raises `BrokerUnreachable` and `TopicsMissing`.
    """

    def __init__(
        self,
        settings: Settings,
        *topics: str,
        only_new: Collection[str] = (),
        project_id: str | None = None,
        since: datetime | None = None,
    ) -> None:
        self._settings = settings
        self._since = since
        self._topics = [topic_name(settings, topic) for topic in (*topics, *only_new)]
        self._only_new = [topic_name(settings, topic) for topic in only_new]
        self._key = None if project_id is None else project_id.encode()
        self._project_id = project_id
        self._ends: Mapping[TopicPartition, int] = {}

    async def __aenter__(self) -> Self:
        partitions = self._partitions(await partition_counts(self._settings, self._topics))
        self._consumer = AIOKafkaConsumer(
            **client_options(self._settings),
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            request_timeout_ms=int(ANSWER_SECONDS * 1000),
        )
        try:
            async with asyncio.timeout(2 * ANSWER_SECONDS):
                await self._consumer.start()
                self._consumer.assign(partitions)
                self._ends = await self._consumer.end_offsets(partitions)
                await self._skip()
        except (KafkaError, TimeoutError, OSError) as exc:
            await self._consumer.stop()
            raise BrokerUnreachable(self._settings.bootstrap) from exc
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._consumer.stop()

    def _partitions(self, counts: Mapping[str, int]) -> list[TopicPartition]:
        if self._project_id is None:
            return [TopicPartition(topic, each) for topic, count in counts.items() for each in range(count)]
        return [
            TopicPartition(topic, partition_of(self._project_id, count)) for topic, count in counts.items()
        ]

    async def _skip(self) -> None:
        """Go past what is not wanted."""
        first: Mapping[TopicPartition, Any] = {}
        if self._since is not None:
            milliseconds = int(self._since.timestamp() * 1000)
            first = await self._consumer.offsets_for_times(dict.fromkeys(self._ends, milliseconds))
        for partition, end in self._ends.items():
            if partition.topic in self._only_new:
                self._consumer.seek(partition, end)
            elif self._since is not None:
                found = first.get(partition)
                self._consumer.seek(partition, end if found is None else found.offset)

    async def history(self) -> AsyncIterator[ConsumerRecord]:
        """Yield what was there when the reader was entered; read it to its end before `news`."""
        last_answer = time.monotonic()
        while await self._is_behind():
            batch = await self._consumer.getmany(timeout_ms=200)
            for record in self._chosen(batch):
                yield record
            if batch:
                last_answer = time.monotonic()
            elif time.monotonic() - last_answer > 2 * ANSWER_SECONDS:
                raise BrokerUnreachable(self._settings.bootstrap)

    async def news(self) -> AsyncIterator[ConsumerRecord]:
        """Yield what comes, for ever. Raises `BrokerUnreachable` after half a minute without a broker."""
        last_answer = last_sign = time.monotonic()
        while True:
            batch = await self._consumer.getmany(timeout_ms=500)
            for record in self._chosen(batch):
                yield record
            now = time.monotonic()
            if batch:
                last_answer = last_sign = now
            elif now - last_sign > _QUIET_SECONDS:
                last_sign = now
                if await self._broker_answers():
                    last_answer = now
                elif now - last_answer > _OUTAGE_SECONDS:
                    raise BrokerUnreachable(self._settings.bootstrap)

    async def _is_behind(self) -> bool:
        try:
            async with asyncio.timeout(2 * ANSWER_SECONDS):
                return any([await self._consumer.position(each) < end for each, end in self._ends.items()])
        except (KafkaError, TimeoutError) as exc:
            raise BrokerUnreachable(self._settings.bootstrap) from exc

    async def _broker_answers(self) -> bool:
        try:
            await partition_counts(self._settings, self._topics)
        except BrokerUnreachable:
            return False
        return True

    def _chosen(self, batch: Mapping[TopicPartition, list[ConsumerRecord]]) -> Iterator[ConsumerRecord]:
        for records in batch.values():
            for record in records:
                if self._key is None or record.key == self._key:
                    yield record


def snapshot_in(record: ConsumerRecord) -> ProjectSnapshot | None:
    """Return the snapshot that *record* of project-states holds, None for one of another kind."""
    if not record.topic.endswith(PROJECT_STATES) or record.value is None:
        return None
    with contextlib.suppress(ValidationError):
        return ProjectSnapshot.model_validate_json(record.value)
    return None


def job_event_in(record: ConsumerRecord) -> JobEvent | None:
    """Return what *record* of job-events holds, None for one of another kind."""
    if not record.topic.endswith(JOB_EVENTS) or record.value is None:
        return None
    with contextlib.suppress(ValidationError):
        return _JOB_EVENT.validate_json(record.value)
    return None


def scene_request_in(record: ConsumerRecord) -> RequestScene | None:
    """Return the request for a scene that *record* of scene-requests holds, None for one of another kind."""
    if not record.topic.endswith(SCENE_REQUESTS) or record.value is None:
        return None
    with contextlib.suppress(ValidationError):
        return RequestScene.model_validate_json(record.value)
    return None


def event_in(record: ConsumerRecord) -> PublicEvent | None:
    """Return the CloudEvent that *record* of project-events holds, None for one that is none."""
    if not record.topic.endswith(PROJECT_EVENTS):
        return None
    attributes = {
        name.removeprefix("ce_"): value.decode(errors="replace")
        for name, value in record.headers
        if name.startswith("ce_")
    }
    with contextlib.suppress(orjson.JSONDecodeError):
        data = orjson.loads(record.value or b"")
        if attributes.get("type") and isinstance(data, dict):
            return PublicEvent(attributes, data)
    return None


def refusal_in(record: ConsumerRecord) -> Refusal | None:
    """Return the refusal of a command that *record* holds, None for anything else."""
    event = event_in(record)
    with contextlib.suppress(ValidationError):
        match event.type if event else "":
            case "ProjectRejected":
                return ProjectRejected.model_validate_json(record.value or b"")
            case "CommandRefused":
                return CommandRefused.model_validate_json(record.value or b"")
            case _:
                pass
    return None
