"""Puts hints on their topic, acknowledged by all replicas before anybody is told that they are there."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from models.job_events import PollNow
from sceneloom.gateway.errors import NotNow
from sceneloom.kafka_access import ANSWER_SECONDS, client_options
from sceneloom.publisher import TopicPublisher
from sceneloom.settings import Settings
from sceneloom.topic_admin import BrokerUnreachable, partition_counts
from sceneloom.topics import JOB_EVENTS, topic_name

_PATIENCE: Final = 2 * ANSWER_SECONDS
"""A provider waits 15 seconds for our answer."""


class HintProducer:
    """Sends hints over one connection."""

    def __init__(self, producer: AIOKafkaProducer, settings: Settings) -> None:
        self._producer = producer
        self._publisher = TopicPublisher(send=self._send, settings=settings)

    async def publish(self, hint: PollNow) -> None:
        """Return when the broker has *hint* for certain. Raises `NotNow`; it may have it all the same."""
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._publisher.publish(hint)
        except (KafkaError, TimeoutError, OSError) as error:
            raise NotNow(f"the broker does not take it: {type(error).__name__}") from error

    async def broker_answers(self) -> bool:
        """Tell whether a broker answers now."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._producer.client.fetch_all_metadata()
        except (KafkaError, TimeoutError, OSError):
            return False
        return True

    async def _send(
        self, topic: str, *, key: str, value: bytes, headers: Mapping[str, str | bytes] | None = None
    ) -> None:
        del headers  # only public events have some
        await self._producer.send_and_wait(topic, value, key=key.encode())


@contextlib.asynccontextmanager
async def open_hint_producer(settings: Settings) -> AsyncIterator[HintProducer]:
    """Connect to the broker. Raises `BrokerUnreachable` and `TopicsMissing`."""
    await partition_counts(settings, [topic_name(settings, JOB_EVENTS)])
    producer = AIOKafkaProducer(
        **client_options(settings),
        acks="all",
        request_timeout_ms=int(ANSWER_SECONDS * 1000),
        max_batch_size=1 if settings.embedded_broker else 16_384,
    )
    try:
        async with asyncio.timeout(_PATIENCE):
            await producer.start()
    except (KafkaError, TimeoutError, OSError) as error:
        await producer.stop()
        raise BrokerUnreachable(settings.bootstrap) from error
    try:
        yield HintProducer(producer, settings)
    finally:
        with contextlib.suppress(KafkaError, TimeoutError):
            await asyncio.wait_for(producer.stop(), ANSWER_SECONDS)
