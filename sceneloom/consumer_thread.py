"""Faust's connection to the broker, with what it does not offer: the commits as the broker has them."""

import asyncio
from collections.abc import Collection, Mapping
from enum import StrEnum
from time import monotonic
from types import MappingProxyType
from typing import Final

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import (
    BrokerResponseError,
    CommitFailedError,
    IllegalGenerationError,
    KafkaError,
    NoError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    for_code,
)
from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.structs import OffsetAndMetadata, TopicPartition
from faust.transport.consumer import ensure_TP
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from sceneloom.topic_ids import topic_ids

_AGAIN_SECONDS: Final = 0.2

FETCH_WAIT_MS: Final = 100
"""How long the broker may hold a fetch that has nothing to bring.

A fetch leaves out the partitions whose messages wait to be handed out, and the next one only leaves when it
is back: so long may a message wait that follows another on its partition.
"""


class Seat(StrEnum):
    """What the broker says of our membership in the group."""

    HELD = "held"
    """Our partitions are ours; within a session nobody gets them but another process of our very name."""
    DEALING = "dealing"
    """They are ours until we join anew, which we are about to be told to do."""
    LOST = "lost"
    """They may be somebody else's."""
    UNKNOWN = "unknown"
    """It does not answer."""


_SEATS: Final[Mapping[type[BrokerResponseError], Seat]] = MappingProxyType(
    {
        NoError: Seat.HELD,
        RebalanceInProgressError: Seat.DEALING,
        IllegalGenerationError: Seat.LOST,
        UnknownMemberIdError: Seat.LOST,
    }
)


async def seat_of(consumer: AIOKafkaConsumer) -> Seat:
    """Ask the broker for the seat of *consumer* in its group, by a heartbeat out of turn."""
    coordinator = consumer._coordinator  # noqa: SLF001 -- no public method beats, or tells who we are
    beat = HeartbeatRequest(coordinator.group_id, coordinator.generation, coordinator.member_id)
    try:
        answer = await coordinator._send_req(beat)  # noqa: SLF001 -- as above
    except KafkaError:
        return Seat.UNKNOWN
    return _SEATS.get(for_code(answer.error_code), Seat.UNKNOWN)


class NameTaken(Exception):
    """A member with a name was put out of its group, and would join again, beside or instead of another."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the broker knows {name} no more: it was cut off for longer than its session, or another "
            "process has the same name"
        )


def error_of(consumer: AIOKafkaConsumer) -> BaseException | None:
    """Return what ended the part of *consumer* in its group; None if nothing.

    aiokafka keeps what the broker refuses for whoever asks, which Faust never does; all else it only logs.
    """
    coordinator = consumer._coordinator  # noqa: SLF001 -- as above
    task: asyncio.Task[None] | None = getattr(coordinator, "_coordination_task", None)
    failed = task.exception() if task is not None and task.done() and not task.cancelled() else None
    return failed or getattr(coordinator, "_pending_exception", None)


class SafeConsumerThread(driver.AIOKafkaConsumerThread):
    """Talks to the broker for a `SafeConsumer`, in a thread and a loop of its own."""

    _member_id = ""

    def _create_worker_consumer(self, transport: driver.Transport) -> AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS  # noqa: SLF001 -- Faust has 1.5 s, and no setting
        return consumer

    async def on_thread_stop(self) -> None:
        """Close the connection, and end whatever that raises: the worker waits for it for ever.

        aiokafka cancels its fetches, and where the broker has just gone it lets that out as its own end.
        """
        try:
            await super().on_thread_stop()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 -- as above
            self.log.warning("the connection to the broker was not closed in good order: %r", error)

    async def commit(self, offsets: Mapping[TP, int], notes: Mapping[TP, str] | None = None) -> bool:
        """Commit *offsets*, each with its note as metadata; False where the group has rebalanced."""
        return await self.call_thread(self._commit_noted, offsets, notes or {})  # type: ignore[no-any-return]

    async def _commit_noted(self, offsets: Mapping[TP, int], notes: Mapping[TP, str]) -> bool:
        assignment = self.assignment()
        held = {
            TopicPartition(*tp): OffsetAndMetadata(at, notes.get(tp, ""))
            for tp, at in offsets.items()
            if tp in assignment
        }
        if not held:
            return False
        self.tp_last_committed_at.update(dict.fromkeys(offsets, monotonic()))
        try:
            await self._ensure_consumer().commit(held)
        except CommitFailedError:
            return False
        except Exception as exc:
            self.log.exception("the broker refused a commit")
            await self.crash(exc)
            return False
        return True

    @property
    def membership_error(self) -> BaseException | None:
        """What ended our part in the group, None while there is nothing."""
        consumer = self._consumer
        return None if consumer is None else error_of(consumer) or self._put_out(consumer)

    def _put_out(self, consumer: AIOKafkaConsumer) -> NameTaken | None:
        coordinator = consumer._coordinator  # noqa: SLF001 -- no public method tells who we are
        name = getattr(coordinator, "_group_instance_id", None)
        before, now = self._member_id, coordinator.member_id
        self._member_id = before or now
        return NameTaken(name) if name and now != self._member_id else None

    async def seat(self) -> Seat:
        """Ask the broker whether our partitions still are ours."""
        return await self.call_thread(seat_of, self._ensure_consumer())  # type: ignore[no-any-return]

    async def commits(self, tps: Collection[TP]) -> Mapping[TP, OffsetAndMetadata]:
        """Return what the broker has as committed for *tps*; those without a commit are left out.

        A broker that is not, or not yet, the one to ask is asked again, never read as "nothing committed".
        """
        coordinator = self._ensure_consumer()._coordinator  # noqa: SLF001 -- the public method keeps the offset only
        found = await self.call_thread(coordinator.fetch_committed_offsets, list(tps))
        return {ensure_TP(tp): commit for tp, commit in found.items()}

    async def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the ids of those of *topics* that there are; none where the broker gives no ids.

        A broker that does not answer is asked again.
        """
        client = self._ensure_consumer()._client  # noqa: SLF001 -- no public method asks for them
        while True:
            try:
                return await self.call_thread(topic_ids, client, topics)  # type: ignore[no-any-return]
            except KafkaError:
                await asyncio.sleep(_AGAIN_SECONDS)

    async def positions(self, tps: Collection[TP]) -> Mapping[TP, int]:
        """Return the offset of the next message to fetch from each of *tps*, markers passed over."""
        return {tp: await self.call_thread(self._ensure_consumer().position, tp) for tp in tps}
