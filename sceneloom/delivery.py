"""At least once, for certain: the layer between Faust and the agents.

An offset is committed only after every table write and every send of its message is acknowledged by the
broker, never passes an unfinished message, and nothing is skipped. Where that cannot be kept, the worker
ends with a line that says why; its supervisor starts it again and the messages are processed anew. So a
message may be processed twice: handlers must be idempotent.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import faust
from aiokafka.errors import MessageSizeTooLargeError
from faust.exceptions import ProducerSendError
from faust.types import TP, EventT, StreamT
from faust.types.tuples import Message

from sceneloom.changelog_notes import ChangelogNotes
from sceneloom.consumer_thread import Seat
from sceneloom.dead_letters import Headers, headers_of, omitting
from sceneloom.durable_table import DeclaredTables, DurableTable
from sceneloom.safe_consumer import SafeTransport, Standing

_log = logging.getLogger(__name__)

EXIT_CODE: Final = 70
"""How a worker ends that had to be forced: EX_SOFTWARE."""
_EXIT_SECONDS: Final = 20.0
TICK_SECONDS: Final = 0.5
"""How often a worker notes that it is alive."""
UNCONFIRMED_SECONDS: Final = 0.5
"""How long to wait before the broker, which does not confirm that our partitions are ours, is asked again."""
_MEGABYTE: Final = 1024 * 1024


class DeliveryFailed(Exception):
    """The broker did not take a message, or a message could not be finished: this worker ends."""


class Delivery:
    """What one app has sent and the broker has not acknowledged yet, and what follows from that."""

    def __init__(self, app: faust.App, *, dead_letters: str, ack_timeout: float = 60.0) -> None:
        self.ack_timeout = ack_timeout
        self.failure: str | None = None
        self._app = app
        self._dead_letters = dead_letters
        self._in_flight: dict[asyncio.Future[Any], tuple[float, str]] = {}
        self._notes = ChangelogNotes()
        self._crash: asyncio.Task[None] | None = None
        self._alive_at: float | None = None
        self._confirmed_at: float | None = None
        self._transport = app.transport = SafeTransport(app, self, self._notes)
        app.task(self._end_when_late)

    def table(
        self,
        name: str,
        *,
        partitions: int,
        version_of: Callable[[bytes], int] | None = None,
        **options: Any,
    ) -> DurableTable:
        """Declare a table named *name*; *options* are those of `faust.App.Table` and the two serializers.

        *version_of* reads the version of a stored row, which only grows.
        """
        serializers = {
            key: options.pop(key) for key in ("key_serializer", "value_serializer") if key in options
        }
        app = self._app
        table = DurableTable(app, name=name, partitions=partitions, beacon=app.tables.beacon, **options)
        table.watch = self.watch
        table.broken = self._fail_soon
        table.version_of = version_of
        for key, codec in serializers.items():
            setattr(table, key, codec)
        app.tables.add(table)
        return table

    async def send(
        self,
        topic: str,
        *,
        key: str | bytes | None,
        value: bytes | None,
        headers: Mapping[str, str | bytes] | None = None,
    ) -> None:
        """Hand a message to the producer and return; no offset is committed before it is acknowledged.

        Raises `DeliveryFailed`, and ends the worker, if the producer refuses it.
        """
        await self.ensure_alive()
        raw_headers = [(name, _raw(text)) for name, text in (headers or {}).items()]
        try:
            future = await self._produce(topic, None if key is None else _raw(key), value, raw_headers)
        except Exception as exc:
            await self.fail(f"a message to {topic} could not be sent: {exc}", exc)
            raise DeliveryFailed(self.failure) from exc
        self.watch(future, topic)

    async def acknowledged(self) -> None:
        """Return when everything that is in flight now is acknowledged. Raises `DeliveryFailed`."""
        await self.ensure_alive()
        if not await self.settled():
            raise DeliveryFailed(self.failure or "the worker is ending")

    async def settled(self) -> bool:
        """Wait for everything that is in flight now; False if a send failed, is late, or the worker ends."""
        pending = set(self._in_flight)
        if pending and not self._broken:
            answers = asyncio.ensure_future(asyncio.wait(pending))
            crash = asyncio.ensure_future(self._app._crashed.wait())  # noqa: SLF001 -- mode has no public name
            await asyncio.wait(
                {answers, crash}, timeout=self.ack_timeout, return_when=asyncio.FIRST_COMPLETED
            )
            answers.cancel()
            crash.cancel()
            if not answers.done() and not self._broken:
                await self._fail_late(next(iter(pending)))
        return not self._broken

    def watch(self, future: asyncio.Future[Any], topic: str) -> None:
        """Count *future*, a message to *topic*, as in flight until the broker acknowledged it."""
        self._in_flight[future] = time.monotonic(), topic
        future.add_done_callback(self._settle)

    async def fail(self, reason: str, cause: BaseException | None = None) -> None:
        """End the worker, with *reason* in its log: nothing is committed from here on."""
        self._give_up(reason, cause)
        await self._app.crash(DeliveryFailed(self.failure))

    async def consume(
        self,
        stream: StreamT[Any],
        *,
        handle: Callable[[EventT[Any]], Awaitable[None]],
        refused: tuple[type[Exception], ...],
    ) -> None:
        """Handle the messages of *stream*, one after another, for ever.

        A message that raises one of *refused* becomes a dead letter. Any other exception ends the worker,
        and the message is processed again by the next one. The topic's key and value must be raw bytes.
        """
        events: Any = stream.events()  # an asynchronous generator, which its annotation does not say
        async for event in events:
            try:
                await self.ensure_alive()
                await self._ensure_member()
                try:
                    await handle(event)
                except refused as exc:
                    await self.dead_letter(event, exc)
            except asyncio.CancelledError:
                # Faust counts a message as finished however its handler was left.
                self.failure = self.failure or f"{_place(event.message)} was left unfinished"
                raise
            except Exception as exc:  # noqa: BLE001 -- whatever it is, the message must not be lost
                await self.fail(f"{_place(event.message)} cannot be processed: {exc!r}", exc)
                # Faust would start the agent again, with the next message, while the worker ends.
                await asyncio.Event().wait()

    async def dead_letter(self, event: EventT[Any], error: Exception) -> None:
        """Copy the untouched message of *event* to the dead letters and wait for the acknowledgement.

        Its own headers are kept; `sceneloom-*` headers say where it came from and why.
        A value larger than the broker takes is left out, and `sceneloom-omitted` tells its size in bytes.
        """
        message = event.message
        _log.warning("%s is a dead letter: %s: %s", _place(message), type(error).__name__, error)
        try:
            await self._copy(message.key, message.value, headers_of(message, error))
        except Exception as exc:
            await self.fail(f"the dead letter of {_place(message)} could not be sent: {exc!r}", exc)
            raise DeliveryFailed(self.failure) from exc

    async def _copy(self, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        if key is None and value is None:  # legal in Kafka, but the producer refuses it
            value, headers = b"", omitting(headers, value)
        try:
            await self._delivered(key, value, headers)
        except MessageSizeTooLargeError:
            await self._delivered(key, b"", omitting(headers, value))

    async def _delivered(self, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        async with asyncio.timeout(self.ack_timeout):
            await (await self._produce(self._dead_letters, key, value, headers))

    async def _produce(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers
    ) -> asyncio.Future[Any]:
        producer: Any = await self._app.maybe_start_producer()
        try:
            sent: asyncio.Future[Any] = await producer.send(topic, key, value, None, None, headers)
        except ProducerSendError as exc:  # a wrapper: what the caller can act on is inside
            raise exc.__cause__ or exc from None
        return sent

    @property
    def is_in_good_order(self) -> bool:
        """Tell whether the broker has acknowledged all that was ever written."""
        return not self._broken and not self._in_flight

    @property
    def uncommitted(self) -> int:
        """How many offsets were handed out and are not committed."""
        return self._transport.consumer.uncommitted if self._transport.consumer else 0

    @property
    def commits(self) -> int:
        """How often offsets were committed since the start."""
        return self._transport.consumer.commits if self._transport.consumer else 0

    async def ensure_membership(self) -> None:
        """End a worker that takes no part in the group any more, and would wait for partitions for ever."""
        consumer = self._transport.consumer
        error = None if consumer is None or self._app.should_stop else consumer.membership_error
        if error is not None and not self._broken:
            await self.fail(f"its part in the consumer group has ended: {error}", error)

    async def is_member(self) -> bool:
        """Ask the broker whether our partitions still are ours; no where it does not answer."""
        return await self._seat() is Seat.HELD

    async def _seat(self) -> Seat:
        consumer, asked_at = self._transport.consumer, time.monotonic()
        seat = Seat.UNKNOWN if consumer is None else await consumer.seat()
        if seat is Seat.HELD:
            self._confirmed_at = asked_at
        return seat

    async def _ensure_member(self) -> None:
        """Wait until the broker confirms that our partitions are ours, where it last did so long ago.

        A worker that was cut off beyond its session, and whose network is back, would handle messages beside
        its successor until its next heartbeat, and write rows that count. Ends it; raises `DeliveryFailed`.
        """
        session = float(self._app.conf.broker_session_timeout)
        since = time.monotonic()
        while self._confirmed_at is None or time.monotonic() - self._confirmed_at > session / 2:
            seat = await self._seat()
            if seat is Seat.LOST:
                await self.fail("the broker has given our partitions away, after we were cut off from it")
            elif seat is Seat.UNKNOWN:
                await self._wait_for_the_broker(since)
            if self._broken:
                raise DeliveryFailed(self.failure)
            if seat is Seat.DEALING:
                return  # for this message: the next one may come after we were put out

    async def _wait_for_the_broker(self, since: float) -> None:
        silent = time.monotonic() - since
        if self._app.should_stop or silent > self.ack_timeout:
            await self.fail(f"the broker did not say for {silent:.0f} s whether our partitions are ours")
        else:
            await asyncio.sleep(UNCONFIRMED_SECONDS)

    async def standing(self) -> Mapping[TP, Standing] | None:
        """Return how the broker sees the partitions that have uncommitted messages.

        None where that says nothing about this worker: it joins, rebalances, recovers or ends.
        """
        app, consumer = self._app, self._transport.consumer
        rebalances = app.rebalancing_count
        if consumer is None or not self._is_working(rebalances):
            return None
        found = await consumer.standing()
        return found if self._is_working(rebalances) else None

    def _is_working(self, rebalances: int) -> bool:
        app = self._app
        is_away = app.rebalancing or app.in_recovery or app.should_stop or self._broken
        return bool(rebalances) and app.rebalancing_count == rebalances and not is_away

    @property
    def _broken(self) -> bool:
        return self.failure is not None or bool(self._app.crashed)

    def _settle(self, future: asyncio.Future[Any]) -> None:
        _, topic = self._in_flight.pop(future)
        error = asyncio.CancelledError() if future.cancelled() else future.exception()
        if error is None and topic in self._app.tables.changelog_topics and (row := future.result()):
            self._notes.acknowledged(TP(row.topic, row.partition), row.offset)
        if error is not None and self.failure is None:
            # At once, since somebody may be waiting for this very message to go on.
            self._fail_soon(f"a message to {topic} was not taken by the broker: {error!r}", error)

    def _fail_soon(self, reason: str, cause: BaseException | None) -> None:
        self._give_up(reason, cause)
        self._crash = asyncio.ensure_future(self._app.crash(DeliveryFailed(self.failure)))

    async def ensure_alive(self) -> None:
        """End a worker that stood still (SIGSTOP, a blocked loop) for longer than its session.

        Its partitions are somebody else's by then, and what it wrote now would undo their work; it only has
        not been told yet. Raises `DeliveryFailed`.
        """
        now = boot_seconds()
        stood_still = now - (self._alive_at or now)
        if stood_still > float(self._app.conf.broker_session_timeout):
            await self.fail(f"the worker stood still for {stood_still:.0f} s and has lost its partitions")
            raise DeliveryFailed(self.failure)

    async def be_alive(self) -> None:
        """Note that the loop turns, twice a second. Raises as `ensure_alive`."""
        await self.ensure_alive()
        self._alive_at = boot_seconds()

    def end_if_overslept(self) -> None:
        """End the process at once, for a handler of SIGCONT: nothing that was buffered may be sent.

        The session is counted from the last heartbeat before it stood still, which the broker heard.
        """
        if self._alive_at is None:
            return
        stood_still, conf = boot_seconds() - self._alive_at, self._app.conf
        if stood_still > conf.broker_session_timeout - conf.broker_heartbeat_interval - TICK_SECONDS:
            line = "delivery: the worker stood still for %.0f s and has lost its partitions: it ends"
            try:
                _log.critical(line, stood_still)
            finally:  # the signal may have interrupted the very write of another line
                os._exit(EXIT_CODE)

    async def _end_when_late(self) -> None:
        while not self._app.should_stop:
            oldest = next(iter(self._in_flight), None)
            if oldest and self._in_flight[oldest][0] + self.ack_timeout < time.monotonic():
                await self._fail_late(oldest)
            await self._app.sleep(1.0)

    async def _fail_late(self, future: asyncio.Future[Any]) -> None:
        _, topic = self._in_flight.get(future, (0.0, "a topic"))
        await self.fail(
            f"a message to {topic} was not acknowledged by the broker within {self.ack_timeout:g} s"
        )

    def _give_up(self, reason: str, cause: BaseException | None) -> None:
        if self.failure is None:
            self.failure = reason
            line = "delivery: %s: the worker ends, its supervisor starts it again"
            _log.critical(line, reason, exc_info=cause)
            if self._app.in_worker:
                # Faust's own end waits for the broker, which may be the very thing that does not answer.
                _exit_after(_EXIT_SECONDS)


def app_settings(*, embedded: bool = False) -> dict[str, Any]:
    """Return the settings of `faust.App` that delivery relies on; *embedded* for the embedded broker.

    A dead letter must fit wherever its message came from, so the largest request is far above the largest
    message. The embedded broker holds a join back for half a session, and tells the end of a topic wrongly
    unless each message is a batch of its own.
    """
    settings: dict[str, Any] = {
        "TableManager": DeclaredTables,
        "broker_commit_interval": 1.0,
        "broker_heartbeat_interval": 2.0,
        "broker_max_poll_interval": 24 * 3600.0,  # a worker without partitions would leave for good
        "broker_rebalance_timeout": 30.0,
        "broker_request_timeout": 30.0,
        "broker_session_timeout": 10.0,
        "consumer_auto_offset_reset": "earliest",  # "latest" hangs the recovery of tables
        "consumer_max_fetch_size": 4 * _MEGABYTE,
        "consumer_metadata_max_age_ms": 30_000,  # how long a topic that was made anew may be overlooked
        "producer_acks": -1,
        "producer_max_request_size": 16 * _MEGABYTE,
        "producer_request_timeout": 60.0,
        "stream_wait_empty": True,  # else the old owner of a partition writes beside the new one
        "topic_disable_leader": True,
        "web_enabled": False,
        "worker_redirect_stdouts": False,
    }
    if embedded:
        settings |= {
            "broker_heartbeat_interval": 1.0,
            "broker_session_timeout": 4.0,
            "producer_max_batch_size": 1,
        }
    return settings


def boot_seconds() -> float:
    """Return the seconds since the machine was started, those while it slept included where it tells them."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _raw(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _place(message: Message) -> str:
    return f"{message.topic}[{message.partition}] offset {message.offset}"


def _exit_after(seconds: float) -> None:
    timer = threading.Timer(seconds, os._exit, (EXIT_CODE,))
    timer.daemon = True
    timer.start()
