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
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

import faust
from aiokafka.errors import MessageSizeTooLargeError
from faust.exceptions import ProducerSendError, ValueDecodeError
from faust.stores.base import SerializedStore
from faust.types import TP, EventT, StreamT
from faust.types.tuples import FutureMessage, Message

from sceneloom.dead_letters import Headers, headers_of, omitting
from sceneloom.safe_consumer import SafeTransport
from sceneloom.unreadable import RowUnreadable, UnreadableRows, told

_log = logging.getLogger(__name__)

EXIT_CODE: Final = 70
"""How a worker ends that had to be forced: EX_SOFTWARE."""
_EXIT_SECONDS: Final = 20.0
_TICK_SECONDS: Final = 0.5
_MEGABYTE: Final = 1024 * 1024


class DeliveryFailed(Exception):
    """The broker did not take a message, or a message could not be finished: this worker ends."""


class DurableTable(faust.Table):  # type: ignore[type-arg]  # faust.Table is not subscriptable at run time
    """A table whose every change is watched until the broker has acknowledged it.

    A row that cannot be read ends the worker: Faust leaves it out with a warning, and it would be missing.
    """

    watch: Callable[[asyncio.Future[Any], str], None]
    fail: Callable[[str], Awaitable[None]]
    version_of: Callable[[bytes], int] | None = None
    recoveries: int = 0
    """How often rows were read from the changelog, which nobody wrote here."""
    _versions: dict[bytes, int] | None = None
    _unreadable: UnreadableRows | None = None

    @property
    def unreadable(self) -> UnreadableRows:
        """The rows that were read from the changelog and cannot be decoded."""
        if self._unreadable is None:
            self._unreadable = UnreadableRows(self.name, self._decoded)
        return self._unreadable

    def apply_changelog_batch(self, batch: Iterable[EventT[Any]]) -> None:
        """Recover rows, but none that is older than one before it: a worker that woke too late wrote that."""
        super().apply_changelog_batch([event for event in batch if self._is_wanted(event.message)])

    def _is_wanted(self, message: Message) -> bool:
        if not self._is_newest(message):
            return False
        # On the disk it takes the place of an older form, so that the next start finds it too.
        return self.unreadable.check(message) or self._keeps_bytes

    def _is_newest(self, message: Message) -> bool:
        if self.version_of is None or message.key is None or message.value is None:
            return True
        if self._versions is None:
            self._versions = {}
        try:
            version = self.version_of(message.value)
        except (ValueError, TypeError, KeyError):
            return True  # it is damaged, which is told below
        if version < self._versions.get(message.key, version):
            _log.warning("%s is older than a row before it: left out", _place(message))
            return False
        self._versions[message.key] = version
        return True

    async def on_recovery_completed(self, active_tps: set[TP], standby_tps: set[TP]) -> None:
        """Forget what only recovery needs; end the worker where an active partition has an unreadable row."""
        self._versions = None
        self.recoveries += 1
        found = self.unreadable.among({tp.partition for tp in active_tps})
        if found:
            await self.fail(told(found))
            await asyncio.Event().wait()  # no stream begins before this returns
        await super().on_recovery_completed(active_tps, standby_tps)

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except ValueDecodeError:
            raise RowUnreadable(self._told_of([(key, self.data._get(key))])) from None  # type: ignore[attr-defined]  # noqa: SLF001 -- only stores of bytes raise this

    def values(self) -> Any:
        """Return all rows. Raises `RowUnreadable`, which names the first one that is."""
        try:
            return list(super().values())
        except ValueDecodeError:
            raise RowUnreadable(self._told_of(self.data._iteritems())) from None  # type: ignore[attr-defined]  # noqa: SLF001 -- as above

    def _told_of(self, rows: Iterable[tuple[bytes, bytes]]) -> str:
        stores: Mapping[int, Any] = getattr(self.data, "_dbs", {})

        def partition_of(key: bytes) -> int | None:
            return next((partition for partition, rows in list(stores.items()) if key in rows), None)

        return self.unreadable.first_of(rows, partition_of)

    @property
    def _keeps_bytes(self) -> bool:
        return isinstance(self.data, SerializedStore)

    def _decoded(self, raw: bytes | None) -> Any:
        return self.app.serializers.loads_value(self.value_type, raw, serializer=self.value_serializer)

    def _to_value(self, v: Any) -> Any:
        return self._decoded(v)

    def _new_changelog_topic(self, **_: Any) -> Any:
        """Have rows arrive as bytes: Faust leaves out a message that its topic cannot decode."""
        return self.app.topic(
            self._changelog_topic_name(),
            key_type=self.key_type,
            key_serializer=self.key_serializer,
            value_type=bytes,
            value_serializer="raw",
            partitions=self.partitions,
            compacting=True,
            acks=False,
            internal=True,
            maxsize=131_072,
            allow_empty=True,
        )

    def send_changelog(self, *args: Any, **options: Any) -> FutureMessage:
        """Send one change to the changelog topic."""
        options.setdefault("value_serializer", self.value_serializer or self.app.conf.value_serializer)
        future = super().send_changelog(*args, **options)
        self.watch(future, self.changelog_topic_name)
        return future


class Delivery:
    """What one app has sent and the broker has not acknowledged yet, and what follows from that."""

    def __init__(self, app: faust.App, *, dead_letters: str, ack_timeout: float = 60.0) -> None:
        self.ack_timeout = ack_timeout
        self.failure: str | None = None
        self._app = app
        self._dead_letters = dead_letters
        self._in_flight: dict[asyncio.Future[Any], tuple[float, str]] = {}
        self._crash: asyncio.Task[None] | None = None
        self._alive_at: float | None = None
        self._transport = app.transport = SafeTransport(app, self)
        app.task(self._end_when_late)
        app.task(self._tick)

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
        table.fail = self.fail
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
    def uncommitted(self) -> int:
        """How many offsets were handed out and are not committed."""
        return self._transport.consumer.uncommitted if self._transport.consumer else 0

    @property
    def commits(self) -> int:
        """How often offsets were committed since the start."""
        return self._transport.consumer.commits if self._transport.consumer else 0

    @property
    def _broken(self) -> bool:
        return self.failure is not None or bool(self._app.crashed)

    def _settle(self, future: asyncio.Future[Any]) -> None:
        _, topic = self._in_flight.pop(future)
        error = asyncio.CancelledError() if future.cancelled() else future.exception()
        if error is not None and self.failure is None:
            # At once, since somebody may be waiting for this very message to go on.
            self._give_up(f"a message to {topic} was not taken by the broker: {error!r}", error)
            self._crash = asyncio.ensure_future(self._app.crash(DeliveryFailed(self.failure)))

    async def ensure_alive(self) -> None:
        """End a worker that stood still (SIGSTOP, a blocked loop) for longer than its session.

        Its partitions are somebody else's by then, and what it wrote now would undo their work; it only has
        not been told yet. Raises `DeliveryFailed`.
        """
        now = time.monotonic()
        stood_still = now - (self._alive_at or now)
        if stood_still > float(self._app.conf.broker_session_timeout):
            await self.fail(f"the worker stood still for {stood_still:.0f} s and has lost its partitions")
            raise DeliveryFailed(self.failure)

    def end_if_overslept(self) -> None:
        """End the process at once, for a handler of SIGCONT: nothing that was buffered may be sent."""
        if self._alive_at is not None:
            stood_still = time.monotonic() - self._alive_at
            if stood_still > float(self._app.conf.broker_session_timeout):
                line = "delivery: the worker stood still for %.0f s and has lost its partitions: it ends"
                _log.critical(line, stood_still)
                os._exit(EXIT_CODE)

    async def _tick(self) -> None:
        while not self._app.should_stop:
            await self.ensure_alive()
            self._alive_at = time.monotonic()
            await self._app.sleep(_TICK_SECONDS)

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
        "broker_commit_interval": 1.0,
        "broker_heartbeat_interval": 2.0,
        "broker_max_poll_interval": 24 * 3600.0,  # a worker without partitions would leave for good
        "broker_rebalance_timeout": 30.0,
        "broker_request_timeout": 30.0,
        "broker_session_timeout": 10.0,
        "consumer_auto_offset_reset": "earliest",  # "latest" hangs the recovery of tables
        "consumer_max_fetch_size": 4 * _MEGABYTE,
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


def _raw(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _place(message: Message) -> str:
    return f"{message.topic}[{message.partition}] offset {message.offset}"


def _exit_after(seconds: float) -> None:
    timer = threading.Timer(seconds, os._exit, (EXIT_CODE,))
    timer.daemon = True
    timer.start()
