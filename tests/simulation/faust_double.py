"""Faust's part of a worker: streams, tables and rebalances, on Kafka in memory. All else is the real code."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final, cast

from faust.types import TP

from sceneloom.consumer_thread import Seat
from sceneloom.durable_table import DurableTable
from tests.simulation.clockwork import Process
from tests.simulation.kafka import Group, Link, Log, Place, Producer, Record

SLOWEST: Final = 80.0
"""So much slower than in earnest do watchdogs tick at most: else they would be most of what happens."""

_WATCH_SECONDS: Final = 4.0

_FETCH: Final = (0.001, 0.3)
_BATCH: Final = 20
_CURRENT: Final[ContextVar["Event"]] = ContextVar("CURRENT")


@dataclass(frozen=True, slots=True)
class Event:
    """One message in the hands of an agent."""

    message: Any


class Table:
    """A table in memory, with a changelog and the recovery rule of the real one."""

    watch: Callable[[asyncio.Future[Any], str], None]
    broken: Callable[[str, BaseException | None], None]
    version_of: Callable[[bytes], int] | None = None
    key_serializer: Any = None
    value_serializer: Any = None
    _is_newest: Any = DurableTable._is_newest
    _version_in: Any = DurableTable._version_in
    """The rules of the real table."""

    def __init__(self, app: "App", *, name: str, partitions: int, beacon: Any, **options: Any) -> None:
        del partitions, beacon, options
        self.changelog_topic_name = f"{app.name}-{name}-changelog"
        self.recoveries = 0
        self._app = app
        self._rows: dict[bytes, Any] = {}

    def _stored_version(self, record: Any) -> int | None:
        return getattr(self._rows.get(record.key), "version", None)

    def get(self, key: bytes) -> Any:
        return self._rows.get(key)

    def values(self) -> Iterator[Any]:
        return iter(self._rows.values())

    def __setitem__(self, key: bytes, row: Any) -> None:
        """Keep a row, and send it to the changelog; only while an event is handled, as in Faust."""
        event = _CURRENT.get(None)
        if event is None:
            raise TypeError("Cannot modify table key from outside of stream iteration")
        self._rows[key] = row
        future = self._app.producer.send_soon(
            self.changelog_topic_name, event.message.partition, key, self.value_serializer.dumps(row)
        )
        self.watch(future, self.changelog_topic_name)

    async def recover(self, partitions: frozenset[int]) -> None:
        """Read the rows of *partitions* as they are durable now."""
        for partition in sorted(partitions):
            records = list(self._app.log.records(self.changelog_topic_name, partition))
            for start in range(0, len(records), _BATCH):
                await self._app.pause(0.001, 0.05)
                for record in records[start : start + _BATCH]:
                    self._app.producer.heard.add((record.topic, record.partition, record.offset))
                    if self._is_newest(record, {}):
                        self._rows[record.key or b""] = self.value_serializer.loads(record.value)

    def end_recovery(self) -> None:
        self.recoveries += 1


class Channel:
    """The messages of some topics, one after another, in the order of each partition."""

    def __init__(self, app: "App", topics: tuple[str, ...]) -> None:
        self.topics = topics
        self.positions: dict[Place, int] = {}
        self.current: Record | None = None
        self.news = asyncio.Event()
        self._app = app

    def events(self) -> "Channel":
        return self

    def __aiter__(self) -> AsyncIterator[Event]:
        return cast("AsyncIterator[Event]", self)

    async def __anext__(self) -> Event:
        """Finish the message before, and hand out the next one."""
        self._finish()
        while (record := self._next()) is None:
            self.news.clear()
            await self.news.wait()
        place = (record.topic, record.partition)
        self.positions[place] = record.offset + 1
        self.current = record
        self._app.clockwork.note("handle", self._app.process.name, *place, record.offset)
        message = SimpleNamespace(
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            key=record.key,
            value=record.value,
            headers=record.headers,
            timestamp=record.timestamp,
        )
        event = Event(message)
        _CURRENT.set(event)
        return event

    def committable(self) -> Iterator[tuple[Place, int]]:
        """Yield up to where each partition is finished."""
        for place, position in self.positions.items():
            current = self.current
            is_in_hand = current is not None and (current.topic, current.partition) == place
            yield place, position - 1 if is_in_hand else position

    def seek(self, partitions: frozenset[int]) -> None:
        """Go back to what was committed."""
        self.positions = {
            (topic, p): self._app.log.committed.get((topic, p), 0)
            for topic in self.topics
            for p in sorted(partitions)
        }

    def _finish(self) -> None:
        self.current = None
        self._app.idle.set()
        self._app.finished.set()

    def _next(self) -> Record | None:
        app = self._app
        if not app.flows:
            return None
        found = []
        for place, position in self.positions.items():
            records = app.log.records(*place)
            # What was fetched before the network went away is still handed out.
            if position < len(records) and (app.link.is_up or records[position].at < app.link.since):
                found.append(records[position])
        if not found:
            return None
        app.idle.clear()
        return found[int(app.clockwork.random.random() * len(found))]


class App:
    """What the product uses of a `faust.App`."""

    in_worker = False

    def __init__(self, name: str, **settings: Any) -> None:
        process = cast("Process", asyncio.get_running_loop())
        self.name = name
        self.process = process
        self.clockwork = process.clockwork
        self.conf = SimpleNamespace(**settings)
        self.transport: Any = None
        self.tables = SimpleNamespace(
            beacon=None,
            add=self._add_table,
            recovery=SimpleNamespace(active_offsets={}),
            changelog_topics=set[str](),
        )
        self.assignor = SimpleNamespace(assigned_actives=self._assigned)
        self.rebalancing = False
        self.rebalancing_count = 0
        self.in_recovery = False
        self.should_stop = False
        self.services: list[Any] = []
        self.idle = asyncio.Event()
        self.idle.set()
        self.finished = asyncio.Event()
        self._crashed = asyncio.Event()
        self._tables: list[Table] = []
        self._channels: list[Channel] = []
        self._agents: list[tuple[Channel, Callable[[Any], Awaitable[None]]]] = []
        self._chores: list[Callable[[], Awaitable[None]]] = []
        self._active: frozenset[int] = frozenset()
        self._generation = 0
        self._is_flowing = False
        self._dealt_anew = asyncio.Event()
        self._committed: dict[Place, int] = {}

    def connect(
        self, *, log: Log, group: Group, producer: Producer, link: Link, ends: Callable[[str], None]
    ) -> None:
        """Name the brokers, and who is told when this worker ends."""
        self.log, self.group, self.producer, self.link, self._ends = log, group, producer, link, ends
        self.log.listen(self._hear_of)

    # -- what the composition root declares

    def topic(self, *topics: str, **options: Any) -> Channel:
        channel = Channel(self, topics)
        self._channels.append(channel)
        return channel

    def agent(self, channel: Channel, *, name: str) -> Callable[[Any], Any]:
        return lambda consume: self._agents.append((channel, consume))

    def task(self, chore: Callable[[], Awaitable[None]]) -> None:
        self._chores.append(chore)

    def add_dependency(self, service: Any) -> None:
        self.services.append(service)

    async def add_runtime_dependency(self, service: Any) -> None:
        self.services.append(service)
        await service.maybe_start()

    def _add_table(self, table: Table) -> None:
        self._tables.append(table)
        self.tables.changelog_topics.add(table.changelog_topic_name)

    # -- what delivery asks

    @property
    def crashed(self) -> bool:
        return self._crashed.is_set()

    async def crash(self, reason: BaseException) -> None:
        """End this worker: not at once, as Faust takes its time."""
        if not self.crashed:
            self._crashed.set()
            self.clockwork.later(
                self.clockwork.between(0.0, 3.0), lambda: self._ends(str(reason)), self.process
            )

    async def maybe_start_producer(self) -> Producer:
        return self.producer

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, _WATCH_SECONDS))

    async def pause(self, least: float, most: float) -> None:
        await asyncio.sleep(self.clockwork.between(least, most) + self.link.away_for())

    # -- the life of a worker

    async def run(self) -> None:
        """Join the group, recover, and work until the process ends."""
        for service in list(self.services):
            await service.maybe_start()
        for channel, consume in self._agents:
            self.process.create_task(consume(channel))
        await self._take_part()
        for chore in self._chores:
            self.process.create_task(chore())
        self.process.create_task(self._commit_for_ever())
        while True:
            await self._dealt_anew.wait()
            await self._take_part()

    @property
    def flows(self) -> bool:
        return self._is_flowing and not self.crashed

    def rejoin(self) -> None:
        if not self.rebalancing:
            self.rebalancing = True
            self.rebalancing_count += 1
        self._is_flowing = False
        self._dealt_anew.set()

    def _assigned(self) -> set[TP]:
        return {TP(topic, p) for channel in self._channels for topic in channel.topics for p in self._active}

    async def _take_part(self) -> None:
        """Give up all partitions, once what is in hand is finished and committed, and take those dealt."""
        self.rejoin()
        self._dealt_anew.clear()
        while any(channel.current for channel in self._channels):
            self.idle.clear()
            await self.idle.wait()
        await self._commit()
        self._generation, active = await self.group.join(self)
        for channel in self._channels:
            channel.positions.clear()
        self._active = active
        self.in_recovery, self.rebalancing = True, False
        self.clockwork.note("recovers", self.process.name, sorted(active))
        for table in self._tables:
            await table.recover(active)
        if self._dealt_anew.is_set():
            return  # again from the start; the tables are not whole until then
        for table in self._tables:
            table.end_recovery()
        for channel in self._channels:
            channel.seek(active)
        self._committed = {place: at for channel in self._channels for place, at in channel.positions.items()}
        self.in_recovery = False
        self._is_flowing = True
        self.clockwork.note("works", self.process.name, sorted(active))
        self.wake()

    def _hear_of(self, record: Record) -> None:
        for channel in self._channels:
            if (record.topic, record.partition) in channel.positions:
                seconds = self.clockwork.between(*_FETCH) + self.link.away_for()
                self.clockwork.later(seconds, channel.news.set, self.process)

    def wake(self) -> None:
        """Have the streams look for messages."""
        for channel in self._channels:
            channel.news.set()

    async def _commit_for_ever(self) -> None:
        while True:
            await self.finished.wait()
            self.finished.clear()
            await asyncio.sleep(self.clockwork.random.uniform(0.05, self.conf.broker_commit_interval))
            await self._commit()

    async def _commit(self) -> None:
        """Commit what is finished, once all that was sent by now is acknowledged."""
        found = dict(at for channel in self._channels for at in channel.committable())
        offsets = {place: at for place, at in found.items() if at > self._committed.get(place, 0)}
        if not offsets or not await self._settled():
            return
        generation = self._generation
        if await self.process.ask(
            lambda: self._commits(generation, offsets), there=self.link.away_for() + 0.01
        ):
            self._committed.update(offsets)
        else:
            self.finished.set()  # once more, later

    async def _settled(self) -> bool:
        return bool(await self.transport.acknowledgements.settled())

    def _commits(self, generation: int, offsets: dict[Place, int]) -> bool:
        return self.link.is_up and self.group.commit(self, generation, offsets)


class _Consumer:
    """What delivery asks of the consumer that is not Faust's."""

    uncommitted = 0
    commits = 0
    membership_error = None

    def __init__(self, app: App) -> None:
        self._app = app

    async def seat(self) -> Seat:
        """Ask the group, once it can be reached."""
        app, generation = self._app, self._app._generation
        return Seat(
            await app.process.ask(
                lambda: app.group.seat(app, generation) if app.link.is_up else Seat.UNKNOWN,
                there=app.link.away_for() + 0.001,
            )
        )

    async def standing(self) -> dict[TP, Any]:
        """Say nothing of the commits."""
        return {}

    async def ensure_the_same_topics(self) -> None:
        """Find the topics as they were: here nobody deletes one."""


class Transport:
    """What delivery expects of its transport."""

    def __init__(self, app: App, acknowledgements: Any, notes: Any) -> None:
        self.acknowledgements = acknowledgements
        self.consumer = _Consumer(app)
