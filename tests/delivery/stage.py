"""What a test of delivery needs around the worker: topics, numbers, workers as processes, what came of it."""

import asyncio
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import CommitFailedError
from aiokafka.structs import OffsetAndMetadata

from tests.delivery.worker import Plan


class Stage:
    """One test's topics on the broker, and its workers."""

    def __init__(self, bootstrap: str, plan: Plan) -> None:
        self.bootstrap = bootstrap
        self.plan = plan
        large = {"max.message.bytes": str(8 * 1024 * 1024)}
        compacted = {"cleanup.policy": "compact"}
        self._configs = {plan.source: large, plan.dead_letters: large, plan.changelog: compacted}
        self._counts = dict.fromkeys((plan.source, plan.output, plan.changelog), plan.partitions)
        self._counts[plan.dead_letters] = 1
        self.workers: list[subprocess.Popen[bytes]] = []

    async def __aenter__(self) -> Self:
        await self.create(*self._counts)
        return self

    async def __aexit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait()

    async def create(self, *topics: str) -> None:
        """Make *topics*, as they are meant to be."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        await admin.create_topics(
            [NewTopic(t, self._counts[t], 1, topic_configs=self._configs.get(t, {})) for t in topics]
        )
        await admin.close()

    async def delete(self, topic: str) -> None:
        """Delete *topic*, and wait until the broker knows it no more."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        await admin.delete_topics([topic])
        while topic in await admin.list_topics():  # noqa: ASYNC110 -- the broker only answers
            await asyncio.sleep(0.1)
        await admin.close()

    async def delete_rows(self, topic: str, before: int) -> None:
        """Delete what is before offset *before* on each partition of *topic*, as a wrong retention would."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        partitions = [TopicPartition(topic, n) for n in range(self._counts[topic])]
        for policy in ("delete", "compact"):  # Kafka deletes nothing from a topic that is only compacted
            wanted = ConfigResource(ConfigResourceType.TOPIC, topic, {"cleanup.policy": policy})
            await admin.alter_configs([wanted])
            if policy == "delete":
                await admin.delete_records({tp: RecordsToDelete(before_offset=before) for tp in partitions})
        await admin.close()

    async def commits(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what is committed of the source topic, with its notes."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        found: dict[TopicPartition, OffsetAndMetadata] = await admin.list_consumer_group_offsets(
            self.plan.prefix
        )
        await admin.close()
        return {tp: commit for tp, commit in found.items() if tp.topic == self.plan.source}

    async def forget_notes(self) -> None:
        """Commit what is committed once more, without metadata, as workers of an older release do."""
        await self.commit({tp: OffsetAndMetadata(at.offset, "") for tp, at in (await self.commits()).items()})

    async def commit(self, commits: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit by hand, once no worker is a member any more."""
        group = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap, group_id=self.plan.prefix, enable_auto_commit=False
        )
        async with group:
            group.assign(list(commits))
            while True:
                try:
                    await group.commit(dict(commits))
                    break
                except CommitFailedError:  # a worker that was killed is a member until its session is over
                    await asyncio.sleep(0.5)

    async def accept_writes(self, topic: str, *, yes: bool) -> None:
        """Let the broker take messages for *topic*, or refuse all as too large."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        config = self._configs.get(topic, {}) | ({} if yes else {"max.message.bytes": "50"})
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, config)
        await admin.alter_configs([resource])
        await admin.close()

    async def publish(self, numbers: Sequence[int]) -> None:
        """Put *numbers* on the source topic, spread over its partitions."""
        producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap, acks="all", linger_ms=5)
        async with producer:
            futures = [
                await producer.send(self.plan.source, str(n).encode(), partition=n % self.plan.partitions)
                for n in numbers
            ]
            await asyncio.gather(*futures)

    async def publish_raw(self, value: bytes | None, **message: Any) -> None:
        """Put one message on partition 0 of the source topic."""
        producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap, max_request_size=8 * 1024 * 1024)
        async with producer:
            await producer.send_and_wait(self.plan.source, value, partition=0, **message)

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker; its log goes to the plan's folder."""
        log = self._log(len(self.workers))
        with log.open("wb") as output:
            worker = subprocess.Popen(
                [sys.executable, "-m", "tests.delivery.worker", self.plan.as_argument()],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=Path(__file__).parents[2],
            )
        self.workers.append(worker)
        return worker

    @property
    def latest(self) -> subprocess.Popen[bytes]:
        """The worker that was started last."""
        return self.workers[-1]

    def log_of(self, worker: subprocess.Popen[bytes]) -> str:
        """Return what *worker* has logged."""
        return self._log(self.workers.index(worker)).read_text(errors="replace")

    def _log(self, index: int) -> Path:
        return Path(self.plan.folder) / f"worker-{index}.log"

    async def read(self, topic: str, *, until: int, seconds: float = 30.0) -> list[Any]:
        """Return the messages of *topic* once they hold *until* different values, or after *seconds*."""
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=self.bootstrap, auto_offset_reset="earliest")
        found: list[Any] = []
        values: set[bytes | None] = set()
        deadline = asyncio.get_running_loop().time() + seconds
        async with consumer:
            while len(values) < until and asyncio.get_running_loop().time() < deadline:
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    found += records
                    values |= {record.value for record in records}
        return found

    async def read_to_end(self, topic: str) -> list[Any]:
        """Return all messages that are on *topic* now."""
        consumer = AIOKafkaConsumer(bootstrap_servers=self.bootstrap, auto_offset_reset="earliest")
        found: list[Any] = []
        async with consumer:
            partitions = [TopicPartition(topic, n) for n in range(self._counts[topic])]
            ends = await consumer.end_offsets(partitions)
            consumer.assign(partitions)
            for partition in partitions:
                while await consumer.position(partition) < ends[partition]:
                    found += [m for ms in (await consumer.getmany(timeout_ms=200)).values() for m in ms]
        return found

    async def rows(self) -> dict[str, int]:
        """Return the table as its changelog gives it."""
        return {json.loads(m.key): json.loads(m.value) for m in await self.read_to_end(self.plan.changelog)}

    async def committed(self) -> dict[int, int]:
        """Return the committed offset of each partition of the source topic that has one."""
        group = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap, group_id=self.plan.prefix, enable_auto_commit=False
        )
        async with group:
            partitions = [TopicPartition(self.plan.source, n) for n in range(self.plan.partitions)]
            group.assign(partitions)
            return {tp.partition: offset for tp in partitions if (offset := await group.committed(tp))}

    async def commit_reaches(self, total: int, *, seconds: float = 60.0) -> bool:
        """Wait until the committed offsets of all partitions add up to *total*."""
        deadline = asyncio.get_running_loop().time() + seconds
        while sum((await self.committed()).values()) < total:
            if asyncio.get_running_loop().time() > deadline:
                return False
            await asyncio.sleep(0.2)
        return True


def kill(worker: subprocess.Popen[bytes]) -> None:
    """End *worker* with SIGKILL."""
    worker.send_signal(signal.SIGKILL)
    worker.wait()


def counts(messages: Sequence[Any]) -> Counter[str]:
    """Count how often each number stands in *messages*."""
    return Counter(message.value.decode() for message in messages)
