"""What a worker is told by the broker right before it pays: whether its partitions still are its own."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import GroupAuthorizationFailedError
from aiokafka.protocol.group import LeaveGroupRequest

from sceneloom.consumer_thread import Seat, error_of, seat_of
from tests.kafka_fixtures import TestBroker

pytestmark = pytest.mark.kafka

HOUR_MS = 3_600_000


@pytest.fixture
async def member(broker: TestBroker, unique: str) -> AsyncIterator[AIOKafkaConsumer]:
    """A member that would not notice by itself what becomes of it: its heart beats once an hour."""
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(unique, 1, 1)])
    await admin.close()
    async with AIOKafkaConsumer(
        unique,
        bootstrap_servers=broker.bootstrap,
        group_id=unique,
        heartbeat_interval_ms=HOUR_MS,
        session_timeout_ms=60_000,
    ) as consumer:
        while not consumer.assignment():
            await consumer.getmany(timeout_ms=100)
        yield consumer


async def test_a_member_holds_its_seat(member: AIOKafkaConsumer) -> None:
    assert await seat_of(member) is Seat.HELD


async def test_a_member_that_was_given_up_has_lost_its_seat_and_does_not_know(
    member: AIOKafkaConsumer,
) -> None:
    coordinator = member._coordinator
    await coordinator._send_req(LeaveGroupRequest(coordinator.group_id, coordinator.member_id))

    assert await seat_of(member) is Seat.LOST
    assert member.assignment()


async def test_a_member_of_a_group_that_takes_in_another_hears_that_partitions_are_dealt(
    member: AIOKafkaConsumer, broker: TestBroker, unique: str
) -> None:
    other = AIOKafkaConsumer(
        unique, bootstrap_servers=broker.bootstrap, group_id=unique, request_timeout_ms=3000
    )
    joining = asyncio.create_task(other.start())
    try:
        while await seat_of(member) is not Seat.DEALING:  # noqa: ASYNC110 -- the broker only answers
            await asyncio.sleep(0.05)
    finally:
        joining.cancel()
        await asyncio.gather(joining, return_exceptions=True)
        await other.stop()


async def test_without_an_answer_nothing_is_known(member: AIOKafkaConsumer) -> None:
    member._coordinator.coordinator_dead()
    assert await seat_of(member) is Seat.UNKNOWN


@pytest.mark.parametrize(
    "error",
    [AssertionError("dealt to somebody else"), GroupAuthorizationFailedError("dealt to somebody else")],
    ids=["a bug, which the client only logs", "a refusal, which it keeps for whoever asks"],
)
async def test_what_ends_the_part_of_a_member_in_its_group_is_known(
    member: AIOKafkaConsumer, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    assert error_of(member) is None

    async def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr(member._coordinator, "_do_rejoin_group", broken)
    member._coordinator.request_rejoin()
    while (found := error_of(member)) is None:  # noqa: ASYNC110 -- the client does not tell
        await asyncio.sleep(0.05)
    assert "dealt to somebody else" in str(found)


async def test_a_member_that_leaves_in_good_order_has_no_error(member: AIOKafkaConsumer) -> None:
    await member.stop()
    assert error_of(member) is None
