"""A worker handles nothing that may be another one's: where it has not heard of it for long, it asks."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import EventT

from sceneloom import delivery
from sceneloom.consumer_thread import Seat
from tests.delivery.fakes import Rig, record

SESSION = 10.0


class Clock:
    """Time that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


class Messages:
    """A stream that gives a message when there is one."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self.handled = 0

    async def events(self) -> AsyncIterator[EventT[Any]]:
        while True:
            of = await self._queue.get()
            message = self._rig.consumer._to_message(("requests", 0), of)  # type: ignore[arg-type]  # a pair will do
            yield self._rig.app.create_event(of.key, of.value, message.headers, message)

    async def come(self, offset: int) -> None:
        self._queue.put_nowait(record(offset))
        for _ in range(20):
            await asyncio.sleep(0)

    async def handle(self, _event: EventT[Any]) -> None:
        self.handled += 1


@asynccontextmanager
async def consuming(rig: Rig) -> AsyncIterator[Messages]:
    messages = Messages(rig)
    stream: Any = messages
    task = asyncio.ensure_future(rig.delivery.consume(stream, handle=messages.handle, refused=()))
    try:
        yield messages
    finally:
        task.cancel()
        await asyncio.wait({task})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(delivery, "time", SimpleNamespace(**{**vars(time), "monotonic": clock.monotonic}))
    monkeypatch.setattr(delivery, "UNCONFIRMED_SECONDS", 0)
    return clock


async def test_it_asks_before_its_first_message_and_then_only_after_half_a_session(clock: Clock) -> None:
    rig = Rig()
    async with consuming(rig) as messages:
        for offset in range(3):
            await messages.come(offset)
        assert (messages.handled, rig.thread.asked) == (3, 1)
        clock.now += SESSION / 2 + 0.1
        await messages.come(3)
    assert (messages.handled, rig.thread.asked) == (4, 2)


async def test_it_waits_for_a_broker_that_does_not_answer(clock: Clock) -> None:
    rig = Rig()
    rig.thread.seats = [Seat.UNKNOWN] * 3
    async with consuming(rig) as messages:
        await messages.come(0)
    assert (messages.handled, rig.thread.asked) == (1, 4)


async def test_it_finishes_what_it_has_while_partitions_are_dealt_anew(clock: Clock) -> None:
    rig = Rig()
    rig.thread.seats = [Seat.DEALING]
    async with consuming(rig) as messages:
        await messages.come(0)
        await messages.come(1)
    assert (messages.handled, rig.thread.asked) == (2, 2), "and asks again: it may be put out meanwhile"


async def test_it_ends_where_the_broker_says_nothing_for_as_long_as_a_message_may_take(clock: Clock) -> None:
    rig = Rig(ack_timeout=5.0)

    class Silent(list[Seat]):
        def pop(self, _: Any = 0) -> Seat:
            clock.now += 1.0
            return Seat.UNKNOWN

    rig.thread.seats = Silent([Seat.UNKNOWN])
    async with consuming(rig) as messages:
        await messages.come(0)
    assert messages.handled == 0
    assert rig.delivery.failure == "the broker did not say for 6 s whether our partitions are ours"


async def test_a_worker_that_stops_does_not_wait_for_a_broker_that_is_away(clock: Clock) -> None:
    rig = Rig()
    rig.thread.seats = [Seat.UNKNOWN] * 3
    rig.app._stopped.set()
    async with consuming(rig) as messages:
        await messages.come(0)
    assert (messages.handled, rig.thread.asked) == (0, 1)
    assert rig.delivery.failure


async def test_it_ends_and_handles_nothing_where_its_seat_is_lost(clock: Clock) -> None:
    rig = Rig()
    async with consuming(rig) as messages:
        await messages.come(0)
        clock.now += SESSION
        rig.thread.seats = [Seat.LOST]
        await messages.come(1)
    assert messages.handled == 1
    assert rig.app.crashed
    assert rig.delivery.failure == "the broker has given our partitions away, after we were cut off from it"


@pytest.mark.parametrize(
    ("seat", "confirms"),
    [(Seat.HELD, True), (Seat.DEALING, False), (Seat.LOST, False), (Seat.UNKNOWN, False)],
)
async def test_who_pays_wants_a_seat_that_is_held(seat: Seat, confirms: Any) -> None:
    rig = Rig()
    rig.thread.seats = [seat]
    assert await rig.delivery.is_member() is confirms


async def test_a_worker_whose_part_in_the_group_has_ended_ends_and_says_why() -> None:
    rig = Rig()
    await rig.delivery.ensure_membership()
    assert rig.delivery.failure is None
    rig.thread.membership_error = RuntimeError("no assignment of ours")
    await rig.delivery.ensure_membership()
    assert rig.app.crashed
    assert rig.delivery.failure == "its part in the consumer group has ended: no assignment of ours"


async def test_a_worker_that_stops_has_left_its_group_and_nothing_is_wrong() -> None:
    rig = Rig()
    rig.thread.membership_error = RuntimeError("left")
    rig.app._stopped.set()
    await rig.delivery.ensure_membership()
    assert rig.delivery.failure is None
