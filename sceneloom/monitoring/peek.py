"""Looks for the oldest message in a stretch of a partition that may hold only what no consumer is given."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from sceneloom.kafka_access import client_options
from sceneloom.settings import Settings

_SECONDS: Final = 3.0
_FETCH_MILLISECONDS: Final = 500


class Oldest(NamedTuple):
    """When the oldest message of a span was written, in UTC; None where it holds no message."""

    at: datetime | None


class Span(NamedTuple):
    """The offsets from `start` up to, and without, `end`."""

    start: int
    end: int


async def peek(settings: Settings, spans: Mapping[TopicPartition, Span]) -> Mapping[TopicPartition, Oldest]:
    """Return the oldest message of each of *spans* for which the broker does not take too long.

    Marks of transactions and the holes of compaction are no messages.
    """
    told: dict[TopicPartition, Oldest] = {}
    if not spans:
        return told
    consumer = AIOKafkaConsumer(
        **client_options(settings), enable_auto_commit=False, max_partition_fetch_bytes=64 * 1024
    )
    try:
        async with asyncio.timeout(_SECONDS):
            await consumer.start()
            consumer.assign(list(spans))
            for partition, span in spans.items():
                consumer.seek(partition, span.start)
            while len(told) < len(spans):
                found = await consumer.getmany(timeout_ms=_FETCH_MILLISECONDS, max_records=1)
                for partition, span in spans.items():
                    first = next(iter(found.get(partition, ())), None)
                    if partition in told:
                        continue
                    if first is not None and first.offset < span.end:
                        told[partition] = Oldest(datetime.fromtimestamp(first.timestamp / 1000, UTC))
                    elif first is not None or await consumer.position(partition) >= span.end:
                        told[partition] = Oldest(None)
                    if partition in told:
                        consumer.pause(partition)
    except (KafkaError, TimeoutError, OSError):
        pass  # what was told is told
    finally:
        await consumer.stop()
    return told
