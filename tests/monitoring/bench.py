"""One topic and one consumer group on a real Kafka, a plain consumer to drive, and a clock to move."""

import asyncio
from datetime import UTC, datetime
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete

from sceneloom.monitoring.group import GroupProbe
from sceneloom.monitoring.report import GroupReport, Histories, PartitionReport
from sceneloom.settings import Settings
from tests.fakes import MovedClock


class Bench:
    """Looks at the group as the monitor does; every look is 10 s after the one before."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.bootstrap = bootstrap
        self.topic = f"{name}-in"
        self.group = f"{name}-group"
        self.clock = MovedClock()
        self.probe = self.a_probe()
        self._histories = Histories(self.group)
        self._producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all")
        self._admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)

    def a_probe(self) -> GroupProbe:
        settings = Settings(broker=f"kafka://{self.bootstrap}")
        return GroupProbe(settings, group=self.group, topics=[self.topic], clock=self.clock)

    async def __aenter__(self) -> Self:
        await self._admin.start()
        await self._producer.start()
        await self.probe.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.probe.close()
        await self._producer.stop()
        await self._admin.close()

    async def create_topic(self, *, partitions: int = 1, replicas: int = 1, **config: str) -> None:
        """Make the topic and wait until each of its partitions can be written."""
        settings = {name.replace("_", "."): value for name, value in config.items()}
        topic = NewTopic(self.topic, partitions, replicas, topic_configs=settings)
        answer = await self._admin.create_topics([topic])
        assert [code for _, code, *_ in answer.topic_errors] == [0]
        await self._until(lambda there: there and all(each["leader"] >= 0 for each in there["partitions"]))

    async def delete_topic(self) -> None:
        await self._admin.delete_topics([self.topic])
        await self._until(lambda there: there is None)

    async def delete_up_to(self, offset: int) -> None:
        """Delete the messages before *offset*, as retention does."""
        await self._admin.delete_records({TopicPartition(self.topic, 0): RecordsToDelete(offset)})

    async def wait_for_compaction(self, *, from_offset: int, below: int) -> None:
        """Wait until fewer messages than *below* are left; the broker compacts every 15 s."""
        async with asyncio.timeout(60):
            while await self._readable(from_offset) >= below:  # noqa: ASYNC110 -- the broker only answers
                await asyncio.sleep(0.5)

    async def _readable(self, offset: int) -> int:
        consumer = AIOKafkaConsumer(bootstrap_servers=self.bootstrap)
        await consumer.start()
        try:
            partition = TopicPartition(self.topic, 0)
            consumer.assign([partition])
            end = (await consumer.end_offsets([partition]))[partition]
            consumer.seek(partition, offset)
            count = 0
            while await consumer.position(partition) < end:
                count += sum(map(len, (await consumer.getmany(timeout_ms=500)).values()))
            return count
        finally:
            await consumer.stop()

    async def add_partitions(self, total: int) -> None:
        await self._admin.create_partitions({self.topic: NewPartitions(total)})
        await self._until(lambda there: there and len(there["partitions"]) == total)

    async def _until(self, met: Any) -> None:
        async with asyncio.timeout(20):
            while not met(await self._described()):  # noqa: ASYNC110 -- the broker only answers
                await asyncio.sleep(0.05)

    async def _described(self) -> Any:
        topics = await self._admin.describe_topics()
        return next((each for each in topics if each["topic"] == self.topic and not each["error_code"]), None)

    async def produce(self, count: int, *, ago_seconds: float = 0.0) -> None:
        for _ in range(count):
            await self._write(None, ago_seconds)

    async def produce_for_compaction(self, count: int) -> None:
        """Write *count* messages under one key, so far apart in time that each has a segment of its own."""
        for number in range(count):
            await self._write(b"same", count - number)

    async def _write(self, key: bytes | None, ago_seconds: float) -> None:
        now = datetime.now(UTC).timestamp()  # noqa: TID251 -- the broker compares with its own
        at = int(1000 * (now - ago_seconds))
        await self._producer.send_and_wait(self.topic, b"message", key, 0, at)

    async def abort_transaction(self, count: int) -> None:
        """Write *count* messages in a transaction that is aborted."""
        producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap, transactional_id=self.group)
        async with producer:
            await producer.begin_transaction()
            for _ in range(count):
                await producer.send_and_wait(self.topic, b"message", partition=0)
            await producer.abort_transaction()

    async def look(self) -> GroupReport:
        self.clock.advance(10)
        return self._histories.add(await self.probe.look())

    async def partition(self, number: int = 0) -> PartitionReport:
        return (await self.look()).partitions[number]


class Consumer:
    """A plain member of the group, which reads and commits when it is told."""

    def __init__(self, bench: Bench, **options: Any) -> None:
        self._topic = TopicPartition(bench.topic, 0)
        self._consumer = AIOKafkaConsumer(
            bench.topic,
            bootstrap_servers=bench.bootstrap,
            group_id=bench.group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            **options,
        )

    async def __aenter__(self) -> Self:
        await self._consumer.start()
        await self._consumer.seek_to_committed()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._consumer.stop()

    async def read(self, count: int) -> None:
        """Read *count* messages of partition 0 and commit after the last one."""
        async with asyncio.timeout(20):
            for _ in range(count):
                last = await self._consumer.getone(self._topic)
        await self.commit(last.offset + 1)

    async def commit(self, offset: int) -> None:
        await self._consumer.commit({self._topic: offset})
