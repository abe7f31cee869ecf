import asyncio
import logging
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from sceneloom.delivery import EXIT_CODE, DeliveryFailed
from tests.delivery.fakes import PARTITION, TOPIC, FakeThread, Rig, record


def changelog_record(key: bytes, value: bytes) -> Any:
    return SimpleNamespace(key=key, value=value, topic="rows-changelog", partition=0, offset=0)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)


async def test_an_offset_waits_for_the_acknowledgement_of_what_its_message_sent() -> None:
    rig = Rig()
    await rig.consumer.perform_seek()
    rig.finish(*rig.hand_out(0, 1))
    await rig.delivery.send("events", key="p", value=b"1")

    commit = asyncio.ensure_future(rig.consumer.commit())
    await asyncio.sleep(0.05)
    assert rig.committed is None

    rig.producer.futures[0].set_result(None)
    assert await commit
    assert rig.committed == 2


async def test_an_offset_waits_for_the_acknowledgement_of_table_writes() -> None:
    rig = Rig()
    table = rig.delivery.table("rows", partitions=1)
    queued: list[asyncio.Future[None]] = []
    rig.producer.send_soon = queued.append  # type: ignore[attr-defined]
    await rig.consumer.perform_seek()
    rig.finish(*rig.hand_out(0))
    table.send_changelog(0, "key", {"row": 1})

    commit = asyncio.ensure_future(rig.consumer.commit())
    await asyncio.sleep(0.05)
    assert rig.committed is None

    queued[0].set_result(None)
    assert await commit
    assert rig.committed == 1


async def test_a_commit_does_not_wait_for_what_is_sent_after_it_began() -> None:
    rig = Rig()
    await rig.consumer.perform_seek()
    rig.finish(*rig.hand_out(0))
    await rig.delivery.send("events", key="p", value=b"1")
    commit = asyncio.ensure_future(rig.consumer.commit())
    await asyncio.sleep(0.05)
    await rig.delivery.send("events", key="p", value=b"2")
    rig.producer.futures[0].set_result(None)
    assert await commit
    assert not rig.producer.futures[1].done()


@pytest.mark.parametrize("start", [None, 3])
async def test_an_offset_never_passes_an_unfinished_message(start: int | None) -> None:
    rig = Rig()
    if start is not None:
        rig.thread.committed[PARTITION] = rig.thread.ends[PARTITION] = start
    await rig.consumer.perform_seek()
    first = start or 0
    messages = rig.hand_out(first, first + 1, first + 2)

    rig.finish(*messages[1:])
    await rig.consumer.commit()
    assert rig.committed == start

    rig.finish(messages[0])
    await rig.consumer.commit()
    assert rig.committed == first + 3


async def test_holes_in_the_numbering_do_not_hold_the_offset_back() -> None:
    rig = Rig()
    await rig.consumer.perform_seek()
    rig.finish(*rig.hand_out(0, 5, 9))
    await rig.consumer.commit()
    assert rig.committed == 10


async def test_a_message_that_was_not_finished_holds_back_what_follows_a_hole() -> None:
    rig = Rig()
    await rig.consumer.perform_seek()
    messages = rig.hand_out(0, 5, 9)
    rig.finish(messages[0], messages[2])
    await rig.consumer.commit()
    assert rig.committed == 1


async def test_a_partition_without_a_committed_offset_starts_at_its_earliest_message() -> None:
    rig = Rig()
    rig.thread.earliest = 40
    await rig.consumer.perform_seek()
    assert rig.thread.sought == {PARTITION: 40}
    rig.finish(*rig.hand_out(40, 41))
    await rig.consumer.commit()
    assert rig.committed == 42


async def test_a_partition_with_a_committed_offset_stays_where_it_is() -> None:
    rig = Rig()
    rig.thread.committed[PARTITION] = rig.thread.ends[PARTITION] = 7
    await rig.consumer.perform_seek()
    assert rig.thread.sought == {}
    assert rig.consumer._read_offset[PARTITION] == 7


async def test_a_commit_of_a_topic_that_was_made_anew_since_is_no_place_to_go_on_from() -> None:
    rig = Rig()
    await rig.consumer.perform_seek()
    rig.finish(*rig.hand_out(0, 1, 2))
    await rig.consumer.commit()
    rig.thread.ends[PARTITION] = 7
    await rig.consumer.perform_seek()
    assert rig.consumer._read_offset[PARTITION] == 3, "it is the same topic"

    rig.thread.ids[TOPIC] = "another"
    await rig.consumer.perform_seek()

    assert rig.thread.sought == {PARTITION: 0}
    assert rig.consumer._read_offset[PARTITION] is None


async def test_a_worker_whose_topic_is_made_anew_beneath_it_ends() -> None:
    rig = Rig()
    await rig.consumer.perform_seek()
    await rig.consumer.ensure_the_same_topics()
    assert rig.delivery.failure is None

    rig.thread.ids[TOPIC] = "another"
    await rig.consumer.ensure_the_same_topics()

    assert (
        rig.delivery.failure == f"the topic {TOPIC} was deleted and made anew; it is read from its beginning"
    )


async def test_after_a_refused_commit_a_partition_starts_where_the_broker_says() -> None:
    rig = Rig()
    await rig.consumer.perform_seek()
    rig.finish(*rig.hand_out(0, 1, 2))
    rig.thread.accepts = False
    await rig.consumer.commit()

    rig.thread.accepts = True
    await rig.consumer.perform_seek()
    assert rig.thread.sought == {PARTITION: 0}
    rig.finish(*rig.hand_out(0, 1))
    await rig.consumer.commit()
    assert rig.committed == 2


async def test_what_is_finished_is_committed_before_its_partition_is_given_away() -> None:
    rig = Rig()
    await rig.consumer.perform_seek()
    rig.finish(*rig.hand_out(0, 1, 2))

    async def streams_finish(_revoked: object) -> None:
        await rig.consumer.commit()

    rig.consumer._on_partitions_revoked = streams_finish
    await rig.consumer.on_partitions_revoked({PARTITION})
    assert rig.committed == 3
    assert not rig.consumer._unfinished


async def test_a_record_that_comes_a_second_time_is_waited_for_once() -> None:
    rig = Rig()
    await rig.consumer.perform_seek()
    rig.finish(*rig.hand_out(0, 1))
    rig.hand_out(0)
    await rig.consumer.commit()
    assert rig.committed == 2


async def test_a_failed_send_ends_the_worker_and_commits_nothing(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    await rig.consumer.perform_seek()
    rig.finish(*rig.hand_out(0))
    await rig.delivery.send("events", key="p", value=b"1")
    commit = asyncio.ensure_future(rig.consumer.commit())
    await asyncio.sleep(0.05)
    rig.producer.futures[0].set_exception(OSError("disk full"))

    assert await commit is False
    assert await rig.consumer.commit() is False
    assert rig.committed is None
    assert rig.app.crashed
    assert "delivery: a message to events was not taken by the broker" in caplog.text
    assert "the worker ends, its supervisor starts it again" in caplog.text


async def test_a_late_send_ends_the_worker_and_commits_nothing(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig(ack_timeout=0.05)
    await rig.consumer.perform_seek()
    rig.finish(*rig.hand_out(0))
    await rig.delivery.send("events", key="p", value=b"1")
    assert await rig.consumer.commit() is False
    assert rig.committed is None
    assert rig.app.crashed
    assert "a message to events was not acknowledged by the broker within 0.05 s" in caplog.text


async def test_a_send_is_found_late_though_nobody_commits_or_waits() -> None:
    rig = Rig(ack_timeout=0.05)
    await rig.delivery.send("events", key="p", value=b"1")
    await asyncio.sleep(0.06)
    await asyncio.wait_for(rig.delivery._end_when_late(), 5)
    assert rig.app.crashed


async def test_a_commit_that_hangs_ends_the_worker(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig(ack_timeout=0.05)
    await rig.consumer.perform_seek()
    rig.finish(*rig.hand_out(0))
    rig.thread.commit_hangs = True
    assert await rig.consumer.commit() is False
    assert rig.app.crashed
    assert "a commit was not acknowledged" in caplog.text


async def test_a_worker_that_crashed_for_another_reason_commits_nothing() -> None:
    rig = Rig()
    await rig.consumer.perform_seek()
    rig.finish(*rig.hand_out(0))
    await rig.app.crash(RuntimeError("elsewhere"))
    assert await rig.consumer.commit() is False
    assert rig.committed is None


async def test_waiting_for_acknowledgements_ends_when_they_came() -> None:
    rig = Rig()
    await rig.delivery.acknowledged()
    await rig.delivery.send("events", key="p", value=b"1")
    waiting = asyncio.ensure_future(rig.delivery.acknowledged())
    await asyncio.sleep(0.05)
    assert not waiting.done()
    rig.producer.futures[0].set_result(None)
    await waiting


async def test_waiting_for_an_acknowledgement_that_fails_raises() -> None:
    rig = Rig()
    await rig.delivery.send("events", key="p", value=b"1")
    waiting = asyncio.ensure_future(rig.delivery.acknowledged())
    await asyncio.sleep(0)
    rig.producer.futures[0].set_exception(OSError("disk full"))
    with pytest.raises(DeliveryFailed, match="disk full"):
        await waiting


async def test_a_message_that_the_producer_refuses_ends_the_worker() -> None:
    rig = Rig()
    rig.producer.refuses = [ValueError("too large")]
    with pytest.raises(DeliveryFailed, match="too large"):
        await rig.delivery.send("events", key="p", value=b"1")
    assert rig.app.crashed


async def test_two_apps_in_one_process_do_not_wait_for_each_other() -> None:
    one, other = Rig(), Rig(ack_timeout=0.05)
    for rig in (one, other):
        await rig.consumer.perform_seek()
        rig.finish(*rig.hand_out(0))
    await other.delivery.send("events", key="p", value=b"1")

    assert await one.consumer.commit()
    assert await other.consumer.commit() is False
    assert other.app.crashed
    assert not one.app.crashed
    assert one.committed == 1


async def test_keys_and_headers_are_sent_as_bytes() -> None:
    rig = Rig()
    await rig.delivery.send("events", key="проект", value=b"1", headers={"ce_id": "x", "raw": b"\x00"})
    assert rig.producer.sent == [("events", "проект".encode(), b"1", [("ce_id", b"x"), ("raw", b"\x00")])]


async def test_a_seek_waits_for_the_batch_that_is_being_handed_out() -> None:
    rig = Rig()
    await rig.consumer.perform_seek()
    rig.consumer.resume_flow()
    rig.thread.records = [record(0), record(1)]
    batch = rig.consumer.getmany(timeout=1.0)
    await anext(batch)

    seek = asyncio.ensure_future(rig.consumer.perform_seek())
    await asyncio.sleep(0.05)
    assert not seek.done()
    assert [message.offset async for _, message in batch] == [1]
    await seek


async def test_nothing_is_handed_out_between_a_seek_and_the_emptying_of_the_queues() -> None:
    rig = Rig()
    rig.thread.records = [record(0)]
    await rig.consumer.perform_seek()
    batch = asyncio.ensure_future(anext(rig.consumer.getmany(timeout=1.0)))
    await asyncio.sleep(0.05)
    assert not batch.done()

    rig.consumer.resume_flow()
    _, message = await batch
    assert message.offset == 0


async def test_what_was_fetched_before_a_rebalance_is_not_handed_out() -> None:
    rig = Rig()
    rig.thread.records = [record(0), record(1)]
    await rig.consumer.perform_seek()
    rig.consumer.resume_flow()
    batch = rig.consumer.getmany(timeout=1.0)
    await anext(batch)
    rig.app.consumer_generation_id += 1
    assert [message async for message in batch] == []


async def test_what_a_recovery_fetches_is_handed_out_to_a_reader_that_waited_through_the_rebalance() -> None:
    rig = Rig()
    rig.thread.records = [record(0), record(1)]
    await rig.consumer.perform_seek()
    rig.consumer.resume_flow()
    rig.consumer.stop_flow()
    batch = asyncio.ensure_future(anext(rig.consumer.getmany(timeout=1.0)))
    await asyncio.sleep(0.05)
    assert not batch.done()

    rig.app.consumer_generation_id += 1
    rig.consumer.resume_flow()

    _, message = await batch
    assert message.offset == 0


class MovingThread(FakeThread):
    """A connection whose fetch waits until something arrives, and takes what stands at the position."""

    def __init__(self) -> None:
        super().__init__()
        self.began = asyncio.Event()
        self.arrived = asyncio.Event()
        self.patience = 0.0

    async def getmany(self, _active: Any, timeout: float) -> Mapping[TP, list[Any]]:  # noqa: ASYNC109 -- Faust's signature
        self.patience = timeout
        self.began.set()
        await self.arrived.wait()
        taken, self.records = self.records, []
        return {PARTITION: taken}

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        await super().seek_wait(partitions)
        self.records = [record(0)]


async def offsets_of(rig: Rig) -> list[int]:
    return [message.offset async for _, message in rig.consumer.getmany(timeout=1.0)]


async def test_a_fetch_that_began_before_a_rebalance_takes_nothing_from_the_recovery_after_it() -> None:
    rig = Rig()
    thread = MovingThread()
    rig.consumer._thread = thread  # type: ignore[assignment]  # speaks the part that is used
    old = asyncio.ensure_future(offsets_of(rig))
    await thread.began.wait()

    rig.consumer.stop_flow()
    rig.app.consumer_generation_id += 1
    seek = asyncio.ensure_future(rig.consumer.seek_wait({PARTITION: 0}))
    for _ in range(10):
        await asyncio.sleep(0)
    thread.arrived.set()
    await seek
    assert await old == []

    rig.consumer.resume_flow()
    assert await offsets_of(rig) == [0], "else the recovery stands still for ever"
    assert thread.patience < 1, "a rebalance waits for the fetch"


async def test_a_recovery_does_not_wait_for_a_reader_without_partitions() -> None:
    rig = Rig()
    rig.consumer._active_partitions = set()
    idle = asyncio.ensure_future(offsets_of(rig))
    for _ in range(50):
        await asyncio.sleep(0)
        assert not rig.consumer._batch.locked()
    await rig.consumer.seek_wait({PARTITION: 0})
    assert await idle == []


async def test_a_seek_that_takes_too_long_ends_the_worker_instead_of_going_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig()
    rig.app.conf.broker_request_timeout = 0.05
    rig.thread.seek_hangs = True
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(rig.consumer.perform_seek(), 1)
    assert rig.app.crashed
    assert not rig.consumer._may_hand_out()
    assert "where to go on after a rebalance" in caplog.text


async def test_a_rebalance_during_a_seek_is_no_failure() -> None:
    rig = Rig()
    rig.thread.seek_hangs = True
    seek = asyncio.ensure_future(rig.consumer.perform_seek())
    await asyncio.sleep(0)

    async def nothing(_revoked: object) -> None: ...

    rig.consumer._on_partitions_revoked = nothing
    await rig.consumer.on_partitions_revoked({PARTITION})
    seek.cancel()
    rig.consumer.resume_flow()
    assert rig.consumer.flow_active
    assert not rig.app.crashed


async def test_a_worker_that_stood_still_longer_than_its_session_ends_before_it_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig()
    now = 1000.0
    monkeypatch.setattr("sceneloom.delivery.boot_seconds", lambda: now)
    await rig.delivery.ensure_alive()
    rig.delivery._alive_at = now
    now += rig.app.conf.broker_session_timeout - 1
    await rig.delivery.ensure_alive()

    now += 2
    with pytest.raises(DeliveryFailed, match="stood still"):
        await rig.delivery.send("out", key="k", value=b"v")

    assert rig.app.crashed
    assert rig.producer.sent == []


async def test_a_row_that_is_older_than_one_before_it_is_not_recovered() -> None:
    rig = Rig()
    table = rig.delivery.table("rows", partitions=1, key_type=bytes, value_type=bytes, version_of=int)
    rows = [(b"a", b"1"), (b"b", b"1"), (b"a", b"12"), (b"a", b"2"), (b"b", b"1")]

    seen: dict[bytes, int] = {}
    recovered = [key + value for key, value in rows if table._is_newest(changelog_record(key, value), seen)]

    assert recovered == [b"a1", b"b1", b"a12", b"b1"]


@pytest.mark.parametrize(("seconds", "exits"), [(5.0, []), (8.0, [EXIT_CODE])])
async def test_a_process_that_wakes_counts_its_session_from_its_last_heartbeat(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, seconds: float, exits: list[int]
) -> None:
    codes: list[int] = []
    monkeypatch.setattr("sceneloom.delivery.os._exit", codes.append)
    now = 1000.0
    monkeypatch.setattr("sceneloom.delivery.boot_seconds", lambda: now)
    rig = Rig()  # a session of 10 s, a heartbeat each 2 s
    rig.delivery._alive_at = now
    now += seconds
    rig.delivery.end_if_overslept()
    assert codes == exits
    assert ("stood still" in caplog.text) is bool(exits)


async def test_a_topic_that_ends_before_what_was_committed_is_read_from_its_beginning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig()
    rig.thread.committed[PARTITION] = 100
    rig.thread.ends[PARTITION] = 3
    await rig.consumer.perform_seek()
    assert rig.thread.sought == {PARTITION: 0}
    assert (
        "requests[0] ends at offset 3, though 100 was committed: it was deleted and made anew" in caplog.text
    )
    rig.finish(*rig.hand_out(0, 1, 2))
    await rig.consumer.commit()
    assert rig.committed == 3


async def test_a_topic_that_begins_anew_while_it_is_read_ends_the_worker_before_a_message_is_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig()
    rig.thread.committed[PARTITION] = rig.thread.ends[PARTITION] = 100
    await rig.consumer.perform_seek()
    rig.consumer.resume_flow()
    rig.thread.records = [record(0)]
    batch = asyncio.ensure_future(anext(rig.consumer.getmany(timeout=1.0)))
    await asyncio.sleep(0.05)
    assert not batch.done()
    assert rig.app.crashed
    assert "requests[0] has begun anew: offset 0 came after offset 100" in caplog.text
    batch.cancel()


async def test_a_worker_whose_topic_is_deleted_ends_with_a_line(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    await rig.consumer.perform_seek()
    rig.thread.gone = {"requests"}
    seek = asyncio.ensure_future(rig.consumer.perform_seek())
    await asyncio.sleep(0.05)
    assert not seek.done()
    assert rig.app.crashed
    assert "the topic requests was deleted; `sceneloom topics create` makes it again" in caplog.text
    seek.cancel()


async def test_a_worker_that_has_nothing_of_a_topic_any_more_does_not_miss_it() -> None:
    rig = Rig()
    await rig.consumer.perform_seek()
    rig.consumer._topics.add("others")
    await rig.consumer.perform_seek()
    assert not rig.app.crashed


async def test_rows_that_cannot_be_kept_in_a_recovery_end_the_worker(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rig = Rig()
    table = rig.delivery.table("rows", partitions=1, key_type=bytes, value_type=bytes)

    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(table.data, "apply_changelog_batch", full)
    with pytest.raises(OSError, match="No space"):
        table.apply_changelog_batch([])
    await asyncio.sleep(0)
    assert rig.app.crashed
    assert "rows of the table rows could not be kept: No space left on device" in caplog.text
