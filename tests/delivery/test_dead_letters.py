import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiokafka.errors import MessageSizeTooLargeError
from faust.exceptions import ProducerSendError
from faust.types import EventT

from sceneloom.delivery import DeliveryFailed
from tests.delivery.fakes import Rig, record


class Unreadable(Exception):
    """A message that its reader refuses."""


class FakeStream:
    """Gives the events of some messages, then waits like a stream with nothing to give."""

    def __init__(self, rig: Rig, *records: Any) -> None:
        self._events = [event_of(rig, each) for each in records]
        self.given = 0

    async def events(self) -> AsyncIterator[EventT[Any]]:
        for event in self._events:
            self.given += 1
            yield event
        await asyncio.Event().wait()


def event_of(rig: Rig, of: Any) -> EventT[Any]:
    message = rig.consumer._to_message(("requests", 0), of)  # type: ignore[arg-type]  # a plain pair will do
    return rig.app.create_event(of.key, of.value, message.headers, message)


async def refuse(_event: EventT[Any]) -> None:
    raise Unreadable("no title")


async def test_a_refused_message_is_copied_untouched_with_where_it_came_from() -> None:
    rig = Rig()
    rig.producer.prompt = True
    event = event_of(rig, record(5, key=b"\xff", value=b"{", headers=(("ce_id", b"1"), ("ce_id", b"2"))))
    await rig.delivery.dead_letter(event, Unreadable("no title"))
    topic, key, value, headers = rig.producer.sent[0]
    assert (topic, key, value) == ("dead-letters", b"\xff", b"{")
    assert headers[:2] == [("ce_id", b"1"), ("ce_id", b"2")]
    assert dict(headers[2:]) == {
        "sceneloom-topic": b"requests",
        "sceneloom-partition": b"0",
        "sceneloom-offset": b"5",
        "sceneloom-timestamp": b"1700000000123",
        "sceneloom-error": b"Unreadable",
        "sceneloom-reason": b"no title",
    }


async def test_a_dead_letter_that_dies_again_tells_only_of_its_last_death() -> None:
    rig = Rig()
    rig.producer.prompt = True
    old = (("sceneloom-topic", b"elsewhere"), ("sceneloom-reason", b"old"))
    await rig.delivery.dead_letter(event_of(rig, record(5, headers=old)), Unreadable("new"))
    headers = rig.producer.sent[0][3]
    assert [value for name, value in headers if name == "sceneloom-reason"] == [b"new"]


async def test_a_value_that_the_broker_cannot_take_is_left_out_and_counted() -> None:
    rig = Rig()
    rig.producer.prompt = True
    too_large = ProducerSendError("wrapped")
    too_large.__cause__ = MessageSizeTooLargeError("17 MB")
    rig.producer.refuses = [too_large]
    await rig.delivery.dead_letter(event_of(rig, record(5, value=b"x" * 99)), Unreadable("too large"))
    _, key, value, headers = rig.producer.sent[0]
    assert (key, value) == (b"k", b"")
    assert dict(headers)["sceneloom-omitted"] == b"99"
    assert not rig.app.crashed


async def test_a_message_without_key_and_value_becomes_a_dead_letter_too() -> None:
    rig = Rig()
    rig.producer.prompt = True
    await rig.delivery.dead_letter(event_of(rig, record(5, key=None, value=None)), Unreadable("nothing"))
    _, key, value, headers = rig.producer.sent[0]
    assert (key, value) == (None, b"")
    assert dict(headers)["sceneloom-omitted"] == b"0"


async def test_a_dead_letter_that_is_not_acknowledged_ends_the_worker() -> None:
    rig = Rig(ack_timeout=0.05)
    with pytest.raises(DeliveryFailed, match="dead letter"):
        await rig.delivery.dead_letter(event_of(rig, record(5)), Unreadable("no title"))
    assert rig.app.crashed


async def test_a_refused_message_does_not_stop_the_next() -> None:
    rig = Rig()
    rig.producer.prompt = True
    stream: Any = FakeStream(rig, record(0), record(1))
    consuming = asyncio.ensure_future(rig.delivery.consume(stream, handle=refuse, refused=(Unreadable,)))
    await asyncio.sleep(0.05)
    assert len(rig.producer.sent) == 2
    assert rig.delivery.failure is None
    consuming.cancel()


async def test_an_unexpected_error_ends_the_worker_and_no_further_message_is_handled() -> None:
    rig = Rig()
    stream = FakeStream(rig, record(0), record(1))

    async def explode(_event: EventT[Any]) -> None:
        raise RuntimeError("boom")

    consuming = asyncio.ensure_future(rig.delivery.consume(stream, handle=explode, refused=(Unreadable,)))  # type: ignore[arg-type]  # the part of a stream that is used
    await asyncio.sleep(0.05)
    assert rig.app.crashed
    assert stream.given == 1
    assert rig.delivery.failure == "requests[0] offset 0 cannot be processed: RuntimeError('boom')"
    consuming.cancel()


async def test_a_handler_that_is_cancelled_keeps_its_message_from_being_committed() -> None:
    rig = Rig()
    await rig.consumer.perform_seek()

    async def hang(_event: EventT[Any]) -> None:
        await asyncio.Event().wait()

    stream: Any = FakeStream(rig, record(0))
    consuming = asyncio.ensure_future(rig.delivery.consume(stream, handle=hang, refused=(Unreadable,)))
    await asyncio.sleep(0.05)
    consuming.cancel()
    await asyncio.wait({consuming})
    rig.finish(*rig.hand_out(1))
    await rig.consumer.commit()
    assert rig.committed is None
