"""An app whose consumer and producer talk to no broker, for tests of what is committed when."""

import asyncio
from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any

import faust
from aiokafka.structs import OffsetAndMetadata
from faust.types import TP

from sceneloom.consumer_thread import Seat
from sceneloom.delivery import Delivery, app_settings
from sceneloom.safe_consumer import SafeConsumer

TOPIC = "requests"
PARTITION = TP(TOPIC, 0)


class FakeThread:
    """The consumer's connection: what the broker holds, and what was asked of it."""

    def __init__(self) -> None:
        self.committed: dict[TP, int] = {}
        self.notes: dict[TP, str] = {}
        self.ends: dict[TP, int] = {}
        self.gone: set[str] = set()
        self.answers_late = False
        self.earliest = 0
        self.sought: dict[TP, int] = {}
        self.commit_hangs = False
        self.seek_hangs = False
        self.accepts = True
        self.records: list[Any] = []
        self.seats: list[Seat] = []
        """What is said of the seat, one answer after another; held, in the end."""
        self.asked = 0
        self.membership_error: BaseException | None = None
        self.ids: dict[str, str] = {}

    async def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        return {topic: self.ids.get(topic, "as-ever") for topic in topics}

    def topic_partitions(self, topic: str) -> int | None:
        return None if topic in self.gone else 1

    async def seat(self) -> Seat:
        self.asked += 1
        return self.seats.pop(0) if self.seats else Seat.HELD

    def assignment(self) -> set[TP]:
        return {PARTITION}

    async def commit(self, offsets: Mapping[TP, int], notes: Mapping[TP, str]) -> bool:
        if self.commit_hangs:
            await asyncio.Event().wait()
        if self.accepts:
            self.committed.update(offsets)
            self.notes.update(notes)
        return self.accepts

    async def seek_to_committed(self) -> Mapping[TP, int | None]:
        if self.seek_hangs:
            await asyncio.Event().wait()
        return {} if TOPIC in self.gone else {PARTITION: self.committed.get(PARTITION)}

    async def commits(self, tps: Collection[TP]) -> Mapping[TP, OffsetAndMetadata]:
        if self.answers_late:
            await asyncio.Event().wait()
        return {
            tp: OffsetAndMetadata(self.committed[tp], self.notes.get(tp, ""))
            for tp in tps
            if tp in self.committed
        }

    async def highwaters(self, *partitions: TP) -> Mapping[TP, int]:
        return {tp: self.ends.get(tp, 0) for tp in partitions}

    async def positions(self, tps: Collection[TP]) -> Mapping[TP, int]:
        return {tp: self.ends.get(tp, 0) for tp in tps}

    async def earliest_offsets(self, *partitions: TP) -> Mapping[TP, int]:
        return dict.fromkeys(partitions, self.earliest)

    async def getmany(self, _active: Any, _timeout: float) -> Mapping[TP, list[Any]]:
        return {PARTITION: self.records}

    def highwater(self, _tp: TP) -> int:
        return len(self.records)

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        self.sought.update(partitions)


class FakeProducer:
    """Takes messages and acknowledges them when the test says so."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes | None, bytes | None, list[tuple[str, bytes]]]] = []
        self.futures: list[asyncio.Future[Any]] = []
        self.refuses: list[Exception | None] = []
        self.prompt = False

    async def send(self, topic: str, key: Any, value: Any, _partition: Any, _time: Any, headers: Any) -> Any:
        error = self.refuses.pop(0) if self.refuses else None
        if error is not None:
            raise error
        self.sent.append((topic, key, value, list(headers)))
        future = asyncio.get_running_loop().create_future()
        self.futures.append(future)
        if self.prompt:
            future.set_result(None)
        return future

    async def maybe_start(self) -> None: ...

    async def flush(self) -> None: ...


class Rig:
    """One app with its delivery layer on fakes."""

    def __init__(self, *, ack_timeout: float = 5.0, name: str = "") -> None:
        self.app = faust.App(name or f"rig-{id(self)}", broker="kafka://127.0.0.1:1", **app_settings())
        self.delivery = Delivery(self.app, dead_letters="dead-letters", ack_timeout=ack_timeout)
        self.producer = FakeProducer()
        self.app.producer = self.producer  # type: ignore[assignment]  # speaks the part that is used
        self.app.finalize()
        self.app.topics.acking_topics.add(TOPIC)
        self.app.consumer_generation_id = 1
        assert isinstance(self.app.consumer, SafeConsumer)
        self.consumer: SafeConsumer = self.app.consumer
        self.thread = FakeThread()
        self.consumer._thread.thread_loop.close()
        self.consumer._active_partitions = {PARTITION}
        self.consumer._thread = self.thread  # type: ignore[assignment]  # speaks the part that is used

    def hand_out(self, *offsets: int) -> list[Any]:
        """Give the messages at *offsets* to the streams, as the fetcher does."""
        return [self.consumer._to_message(PARTITION, record(offset)) for offset in offsets]

    def finish(self, *messages: Any) -> None:
        for message in messages:
            self.consumer.ack(message)

    @property
    def committed(self) -> int | None:
        return self.thread.committed.get(PARTITION)


def record(offset: int, *, key: bytes | None = b"k", value: bytes | None = b"v", headers: Any = ()) -> Any:
    """A record as aiokafka gives it."""
    return SimpleNamespace(
        topic=TOPIC, partition=0, offset=offset, timestamp=1_700_000_000_123, timestamp_type=0,
        headers=headers, key=key, value=value, checksum=None, serialized_key_size=1, serialized_value_size=1,
    )  # fmt: skip
