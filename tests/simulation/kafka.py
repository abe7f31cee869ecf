"""Kafka in memory: what is durable, what only was sent, and who owns which partition."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from aiokafka.errors import KafkaTimeoutError

from sceneloom.consumer_thread import Seat
from sceneloom.topics import DEAD_LETTERS, partition_of
from tests.simulation.clockwork import Clockwork, Process

SESSION_SECONDS: Final = 10.0
HEARTBEAT_SECONDS: Final = 1.0
REBALANCE_SECONDS: Final = 30.0
_SLOW_SECONDS: Final = 5.0
REQUEST_SECONDS: Final = 60.0
"""How long a producer tries to send a message."""

Place = tuple[str, int]
"""A topic and one of its partitions."""


@dataclass(frozen=True, slots=True)
class Record:
    """One message that is durable; `by` is the process that wrote it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    at: float
    by: str
    timestamp: float = 0.0


class Log:
    """Topics with their partitions, and the offsets that the one group has committed."""

    def __init__(self, clockwork: Clockwork, *, partitions: int) -> None:
        self.partitions = partitions
        self.committed: dict[Place, int] = {}
        self._clockwork = clockwork
        self._records: defaultdict[Place, list[Record]] = defaultdict(list)
        self._listeners: list[Callable[[Record], None]] = []

    def append(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[tuple[str, bytes]] = (),
        *,
        by: str = "world",
    ) -> Record:
        """Make one message durable."""
        records = self._records[topic, partition]
        record = Record(topic, partition, len(records), key, value, tuple(headers), self._clockwork.now, by)
        records.append(record)
        self._clockwork.note("append", by, topic, partition, record.offset, value)
        for listener in self._listeners:
            listener(record)
        return record

    def publish(self, topic: str, key: str, value: bytes) -> None:
        """Append what a client sends."""
        self.append(topic, partition_of(key, self.partitions), key.encode(), value)

    def listen(self, listener: Callable[[Record], None]) -> None:
        """Call *listener* with each message from now on."""
        self._listeners.append(listener)

    def records(self, topic: str, partition: int) -> list[Record]:
        """Return the messages of one partition."""
        return self._records[topic, partition]

    def all(self, topic: str) -> list[Record]:
        """Return the messages of all partitions of *topic*."""
        return [record for p in range(self.partitions) for record in self._records[topic, p]]

    def is_read(self, topic: str) -> bool:
        """Tell whether the group has committed all of *topic*."""
        return all(
            self.committed.get((topic, p), 0) == len(self._records[topic, p]) for p in range(self.partitions)
        )


@dataclass(slots=True)
class _Sent:
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    acknowledged: "asyncio.Future[Record]"
    until: float


class Producer:
    """What one process sends: buffered, then durable in the order of each partition, then acknowledged."""

    def __init__(self, log: Log, process: Process, link: "Link", *, slow: float) -> None:
        """Send to *log*; a message takes seconds to arrive with the chance *slow*."""
        self._slow = slow
        self.heard: set[tuple[str, int, int]] = set()
        """The messages of which this process knows that they are durable."""
        self._log = log
        self._process = process
        self._link = link
        self._clockwork = process.clockwork
        self._lines: dict[Place, deque[_Sent]] = {}
        self._moving: set[Place] = set()

    async def send(  # noqa: PLR0917 -- Faust's signature
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None = None,
        timestamp: float | None = None,
        headers: Any = None,
    ) -> "asyncio.Future[Record]":
        """Take one message, as Faust's producer does."""
        if self._clockwork.happens(0.3):
            await asyncio.sleep(self._clockwork.between(0.0, 0.01))
        if partition is None:
            is_keyed = key is not None and not topic.endswith(DEAD_LETTERS)
            partition = partition_of(key or b"", self._log.partitions) if is_keyed else 0
        return self.send_soon(topic, partition, key, value, tuple(headers or ()))

    def send_soon(
        self,
        topic: str,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[tuple[str, bytes], ...] = (),
    ) -> "asyncio.Future[Record]":
        """Put one message into the buffer."""
        acknowledged: asyncio.Future[Record] = self._process.create_future()
        sent = _Sent(key, value, headers, acknowledged, self._clockwork.now + REQUEST_SECONDS)
        self._clockwork.note("send", self._process.name, topic, partition, value)
        place = (topic, partition)
        self._lines.setdefault(place, deque()).append(sent)
        self._move(place)
        return acknowledged

    def land_some(self, chance: float) -> None:
        """Let some of what is in the buffers of a dead process arrive, of each partition the first."""
        for place, line in self._lines.items():
            while line and self._clockwork.happens(chance):
                self._append(place, line.popleft())

    def _move(self, place: Place) -> None:
        if place not in self._moving and self._lines[place]:
            self._moving.add(place)
            is_slow = self._slow and self._clockwork.happens(self._slow)
            seconds = (
                self._clockwork.between(0.002, _SLOW_SECONDS if is_slow else 0.15) + self._link.away_for()
            )
            self._clockwork.later(seconds, lambda: self._land(place), self._process)

    def _land(self, place: Place) -> None:
        self._moving.discard(place)
        line = self._lines[place]
        if line and self._link.is_up:
            sent = line.popleft()
            record = self._append(place, sent)
            self._clockwork.later(
                self._clockwork.between(0.001, 0.1), lambda: self._hear(sent, record), self._process
            )
        while line and line[0].until <= self._clockwork.now:
            late = line.popleft()
            if not late.acknowledged.done():
                late.acknowledged.set_exception(KafkaTimeoutError())
        self._move(place)

    def _append(self, place: Place, sent: _Sent) -> Record:
        return self._log.append(*place, sent.key, sent.value, sent.headers, by=self._process.name)

    def _hear(self, sent: _Sent, record: Record) -> None:
        if not sent.acknowledged.done():
            self.heard.add((record.topic, record.partition, record.offset))
            sent.acknowledged.set_result(record)


class Link:
    """The network between one process and the brokers."""

    def __init__(self, clockwork: Clockwork) -> None:
        self._clockwork = clockwork
        self._until = 0.0
        self.since = 0.0

    @property
    def is_up(self) -> bool:
        """Whether anything gets through."""
        return self._clockwork.now >= self._until

    def away_for(self) -> float:
        """Return the seconds until something gets through."""
        return max(0.0, self._until - self._clockwork.now)

    def cut(self, seconds: float) -> None:
        """Let nothing through for so many *seconds*."""
        self.since, self._until = self._clockwork.now, self._clockwork.now + seconds


class Member(Protocol):
    """What the group knows of a worker."""

    process: Process
    link: Link

    def rejoin(self) -> None:
        """Hear that the partitions are dealt anew."""
        ...


@dataclass(slots=True)
class _Seat:
    member: Member
    generation: int = 0
    joined: "asyncio.Future[tuple[int, frozenset[int]]] | None" = field(default=None)


class Group:
    """The coordinator of the one consumer group: eager, as Faust's; a silent member loses its seat."""

    def __init__(self, clockwork: Clockwork, log: Log) -> None:
        self.generation = 0
        self.owners: dict[int, str] = {}
        """Which process has which partition."""
        self._clockwork = clockwork
        self._log = log
        self._seats: dict[str, _Seat] = {}
        self._round = 0
        self._is_dealing = False

    def join(self, member: Member) -> "asyncio.Future[tuple[int, frozenset[int]]]":
        """Return what resolves to the generation and the member's partitions."""
        future: asyncio.Future[tuple[int, frozenset[int]]] = member.process.create_future()
        self._clockwork.later(
            member.link.away_for() + self._clockwork.between(0.001, 0.05),
            lambda: self._arrive(member, future),
        )
        return future

    def _arrive(self, member: Member, future: "asyncio.Future[tuple[int, frozenset[int]]]") -> None:
        name = member.process.name
        if not member.process.is_alive:
            return
        seat = self._seats.get(name)
        if seat is None:
            self._clockwork.note("join", name)
            seat = self._seats[name] = _Seat(member)
            self._is_dealing = False
        seat.joined = future
        self._deal_anew()
        self._finish_round()

    def miss(self, member: Member) -> None:
        """Have a member that fell silent just now lose its seat once its session is over, if it still is."""

        def expire() -> None:
            silent = not member.process.is_alive or member.process.is_frozen or not member.link.is_up
            if silent and self._seats.get(member.process.name) is not None:
                self._clockwork.note("expelled", member.process.name)
                self._leave(member.process.name)

        self._clockwork.later(SESSION_SECONDS, expire)

    def leave(self, member: Member) -> None:
        """Take a member out that says so."""
        self._leave(member.process.name)

    def heard_again(self, member: Member) -> None:
        """Hear of a silent member again: at its next heartbeat it learns whether it still has a seat."""

        def beat() -> None:
            if self._seats.get(member.process.name) is None:
                member.rejoin()

        seconds = self._clockwork.random.uniform(0, HEARTBEAT_SECONDS)
        self._clockwork.later(member.link.away_for() + seconds, beat, member.process)

    def shuffle(self) -> None:
        """Deal the partitions anew, as when the group is told so."""
        self._is_dealing = False
        self._deal_anew()

    def seat(self, member: Member, generation: int) -> Seat:
        """Answer a heartbeat of *member*, who believes to be of *generation*."""
        seat = self._seats.get(member.process.name)
        if seat is None or not seat.generation == generation == self.generation:
            return Seat.LOST
        return Seat.DEALING if self._is_dealing else Seat.HELD

    def commit(self, member: Member, generation: int, offsets: Mapping[Place, int]) -> bool:
        """Keep *offsets*, unless they come from somebody who has no seat any more."""
        seat = self._seats.get(member.process.name)
        if seat is None or generation != self.generation or seat.generation != generation:
            return False
        self._log.committed.update(offsets)
        self._clockwork.note("commit", member.process.name, sorted(offsets.items()))
        return True

    def _leave(self, name: str) -> None:
        seat = self._seats.pop(name, None)
        if seat is not None:
            if seat.joined is not None:
                self._ask_again(seat.member, seat.joined)
            self.owners = {p: owner for p, owner in self.owners.items() if owner != name}
            self._is_dealing = False
            self._deal_anew()
            self._finish_round()

    def _ask_again(self, member: Member, joined: "asyncio.Future[tuple[int, frozenset[int]]]") -> None:
        """Have a member that waits for its partitions, and lost its seat meanwhile, join as a new one."""
        seconds = member.link.away_for() + self._clockwork.random.uniform(0, HEARTBEAT_SECONDS)
        self._clockwork.later(seconds, lambda: self._arrive(member, joined), member.process)

    def _deal_anew(self) -> None:
        if self._is_dealing:
            return
        self._is_dealing = True
        self._round += 1
        this_round = self._round
        for seat in self._seats.values():
            if seat.joined is None:
                self._tell(seat.member)
        self._clockwork.later(REBALANCE_SECONDS, lambda: self._end_round(this_round))

    def _tell(self, member: Member) -> None:
        seconds = member.link.away_for() + self._clockwork.random.uniform(0, HEARTBEAT_SECONDS)
        self._clockwork.later(seconds, member.rejoin, member.process)

    def _finish_round(self) -> None:
        if self._is_dealing and self._seats and all(seat.joined for seat in self._seats.values()):
            this_round = self._round
            self._clockwork.later(
                self._clockwork.between(0.001, 0.5), lambda: self._end_round(this_round, complete=True)
            )

    def _end_round(self, this_round: int, *, complete: bool = False) -> None:
        if not self._is_dealing or self._round != this_round:
            return
        if complete and not all(seat.joined for seat in self._seats.values()):
            return
        for seat in [seat for seat in self._seats.values() if seat.joined is None]:
            del self._seats[seat.member.process.name]
            self.heard_again(seat.member)
        self._is_dealing = False
        self.generation += 1
        names = list(self._seats)
        self._clockwork.random.shuffle(names)
        numbers = range(self._log.partitions)
        self.owners = {p: names[p % len(names)] for p in numbers} if names else {}
        self._clockwork.note("dealt", self.generation, sorted(self.owners.items()))
        for name, seat in self._seats.items():
            mine = frozenset(p for p, owner in self.owners.items() if owner == name)
            seat.generation, joined, seat.joined = self.generation, seat.joined, None
            self._resolve(seat.member, joined, mine)

    def _resolve(self, member: Member, joined: Any, mine: frozenset[int]) -> None:
        generation = self.generation

        def hear() -> None:
            if not joined.done():
                joined.set_result((generation, mine))

        self._clockwork.later(
            member.link.away_for() + self._clockwork.between(0.001, 0.05), hear, member.process
        )
