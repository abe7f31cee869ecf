"""Topics that vanish, are made anew, and are put back from what was kept of them."""

import asyncio
from collections.abc import Iterable

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import for_code

from sceneloom.settings import Settings
from sceneloom.topics import topic_specs

_ANSWER_SECONDS = 30.0


async def make_anew(settings: Settings, topic: str) -> None:
    """Delete *topic*, and create it again as it was."""
    (spec,) = [each for each in topic_specs(settings) if each.name == topic]
    new = NewTopic(spec.name, spec.partitions, spec.replication, topic_configs=dict(spec.config))
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.bootstrap)
    await admin.start()
    try:
        await admin.delete_topics([topic])
        async with asyncio.timeout(_ANSWER_SECONDS):
            while (code := await _created(admin, new)) != 0:
                if not for_code(code).retriable and code != _EXISTS:
                    raise for_code(code)
                await asyncio.sleep(0.1)
    finally:
        await admin.close()


_EXISTS = 36


async def _created(admin: AIOKafkaAdminClient, new: NewTopic) -> int:
    answer = await admin.create_topics([new])
    ((_, code, *_),) = answer.topic_errors
    return int(code)


async def backup(settings: Settings, topic: str) -> list[ConsumerRecord]:
    """Return everything on *topic*, partition by partition."""
    async with AIOKafkaConsumer(
        bootstrap_servers=settings.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    ) as consumer:
        partitions = [TopicPartition(topic, number) for number in range(settings.partitions)]
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        records: list[ConsumerRecord] = []
        while any([await consumer.position(each) < ends[each] for each in partitions]):
            batch = await consumer.getmany(timeout_ms=200)
            records += [record for found in batch.values() for record in found]
        return records


async def put_back(settings: Settings, topic: str, records: Iterable[ConsumerRecord]) -> None:
    """Write *records* to where they were."""
    async with AIOKafkaProducer(bootstrap_servers=settings.bootstrap, acks="all") as producer:
        for record in records:
            await producer.send_and_wait(topic, record.value, key=record.key, partition=record.partition)
