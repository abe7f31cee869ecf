"""Looks whether a stretch of a partition holds any message, or only what no consumer is ever given."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

_SECONDS: Final = 3.0
_FETCH_MILLISECONDS: Final = 500


class Span(NamedTuple):
    """The offsets from `start` up to, and without, `end`."""

    start: int
    end: int


async def peek(
    bootstrap: Sequence[str], spans: Mapping[TopicPartition, Span]
) -> Mapping[TopicPartition, bool]:
    """Tell of each of *spans* whether it holds a message, unless the broker takes too long for one.

    Marks of transactions and the holes of compaction are no messages.
    """
    told: dict[TopicPartition, bool] = {}
    if not spans:
        return told
    consumer = AIOKafkaConsumer(
        bootstrap_servers=",".join(bootstrap), enable_auto_commit=False, max_partition_fetch_bytes=64 * 1024
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
                    first = next((record.offset for record in found.get(partition, ())), None)
                    if partition in told:
                        continue
                    if first is not None:
                        told[partition] = first < span.end
                    elif await consumer.position(partition) >= span.end:
                        told[partition] = False
                    if partition in told:
                        consumer.pause(partition)
    except (KafkaError, TimeoutError, OSError):
        pass  # what was told is told
    finally:
        await consumer.stop()
    return told
