from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from sceneloom.brokers.process import free_ports
from sceneloom.monitoring.group import GroupProbe
from sceneloom.monitoring.verdicts import WINDOW, Verdict
from sceneloom.settings import Settings
from sceneloom.topic_admin import BrokerUnreachable, TopicsMissing
from tests.fakes import MovedClock
from tests.kafka_fixtures import TestBroker
from tests.monitoring.bench import Bench, Consumer

pytestmark = pytest.mark.kafka


@pytest.fixture
async def bench(broker: TestBroker, unique: str) -> AsyncIterator[Bench]:
    async with Bench(broker.bootstrap, unique) as bench:
        yield bench


async def test_a_consumer_that_keeps_up_is_ok_and_named_as_the_owner(bench: Bench) -> None:
    await bench.create_topic(partitions=2)
    await bench.produce(3)
    async with Consumer(bench, client_id="reader") as consumer:
        await consumer.read(3)
        report = await bench.look()
    assert (report.state, report.verdict, report.lag) == ("Stable", Verdict.OK, 0)
    (member,) = report.members
    assert member.member_id.startswith("reader-")
    assert member.partitions == 2
    assert [each.member for each in report.partitions] == [member.name, member.name]
    first = report.partitions[0]
    assert (first.committed, first.begin, first.end, first.lag, first.lag_seconds) == (3, 0, 3, 0, 0.0)


async def test_a_paused_consumer_is_stalled_and_after_the_whole_window_stopped(bench: Bench) -> None:
    await bench.create_topic()
    await bench.produce(5)
    async with Consumer(bench) as consumer:
        await consumer.read(2)
        verdicts = [(await bench.partition()).verdict for _ in range(WINDOW + 1)]
        assert verdicts == [Verdict.UNDECIDED, *[Verdict.STALLED] * (WINDOW - 1), Verdict.STOPPED]
        await consumer.read(3)
        assert (await bench.partition()).verdict is Verdict.OK


async def test_what_stands_still_is_as_old_as_its_oldest_message_says(bench: Bench) -> None:
    await bench.create_topic()
    await bench.produce(1, ago_seconds=7200)
    await bench.produce(1)
    async with Consumer(bench) as consumer:
        await consumer.commit(0)
        bench.clock.time = datetime.now(UTC)  # noqa: TID251 -- the broker has the wall's clock
        first = await bench.partition()
        second = await bench.partition()
    assert first.lag_seconds_at_least
    assert second.lag_seconds == pytest.approx(7220, abs=15)
    assert not second.lag_seconds_at_least


async def test_a_slow_consumer_is_a_warning_while_more_comes_than_it_reads(bench: Bench) -> None:
    await bench.create_topic()
    await bench.produce(4)
    async with Consumer(bench) as consumer:
        for _ in range(4):
            await consumer.read(1)
            last = await bench.partition()
            await bench.produce(3)
        assert (last.verdict, last.lag) == (Verdict.WARNING, 9)
        assert last.lag_seconds is not None
        await consumer.read(12)
        assert (await bench.partition()).verdict is Verdict.OK


async def test_a_killed_consumer_leaves_an_empty_group_whose_lag_is_seen(bench: Bench) -> None:
    await bench.create_topic()
    await bench.produce(2)
    async with Consumer(bench) as consumer:
        await consumer.read(2)
        await bench.look()
    await bench.produce(4)
    await bench.look()
    report = await bench.look()
    assert (report.state, report.members) == ("Empty", ())
    (partition,) = report.partitions
    assert (partition.verdict, partition.lag, partition.member) == (Verdict.STALLED, 4, None)


async def test_what_waits_for_a_group_without_members_is_trouble_at_the_first_look_unless_it_is_only_a_mark(
    bench: Bench,
) -> None:
    await bench.create_topic()
    await bench.abort_transaction(1)
    async with Consumer(bench, isolation_level="read_uncommitted") as consumer:
        await consumer.read(1)
    report = await bench.look()
    assert (report.members, report.lag, report.waiting, report.verdict) == ((), 1, 0, Verdict.OK)
    await bench.produce(1)
    assert (await bench.look()).verdict is Verdict.NO_MEMBERS


async def test_a_group_that_never_was_has_no_commits_and_no_lag(bench: Bench) -> None:
    await bench.create_topic(partitions=2)
    assert (await bench.look()).verdict is Verdict.OK, "nothing waits"
    await bench.produce(4)
    report = await bench.look()
    first, second = report.partitions
    assert (report.members, report.lag, report.verdict) == ((), 0, Verdict.NO_MEMBERS)
    assert (first.committed, first.lag, first.waiting) == (None, None, 4)
    assert first.lag_seconds == pytest.approx(0, abs=60), "by the message's own time"
    assert second.lag_seconds is None
    assert (first.verdict, second.verdict, second.waiting) == (*[Verdict.NO_COMMITS] * 2, 0)


async def test_a_consumer_that_goes_back_is_a_rewind(bench: Bench) -> None:
    await bench.create_topic()
    await bench.produce(5)
    async with Consumer(bench) as consumer:
        await consumer.read(5)
        await bench.look()
        await consumer.commit(1)
        last = await bench.partition()
    assert (last.verdict, last.lag) == (Verdict.REWIND, 4)


async def test_a_recreated_topic_has_a_verdict_of_its_own_and_no_negative_lag(bench: Bench) -> None:
    await bench.create_topic()
    await bench.produce(8)
    async with Consumer(bench) as consumer:
        await consumer.read(8)
        assert (await bench.partition()).verdict is Verdict.OK
    await bench.delete_topic()
    with pytest.raises(TopicsMissing, match=bench.topic):
        await bench.look()
    await bench.create_topic()
    await bench.produce(2)
    async with Consumer(bench) as consumer:
        await consumer.commit(8)
        last = await bench.partition()
    assert (last.committed, last.end) == (8, 2)
    assert (last.verdict, last.lag, last.waiting) == (Verdict.RECREATED, 0, 0)


async def test_aborted_transactions_count_as_lag_but_stall_nobody(bench: Bench) -> None:
    await bench.create_topic()
    await bench.produce(2)
    await bench.abort_transaction(3)
    async with Consumer(bench, isolation_level="read_uncommitted") as consumer:
        await consumer.read(5)
        looks = [await bench.partition() for _ in range(WINDOW + 1)]
    assert {(each.committed, each.end, each.lag) for each in looks} == {(5, 6, 1)}, "the mark of the end"
    assert looks[0].verdict is Verdict.UNDECIDED
    assert {(each.verdict, each.waiting) for each in looks[1:]} == {(Verdict.OK, 0)}


async def test_a_message_after_the_mark_of_a_transaction_waits(bench: Bench) -> None:
    await bench.create_topic()
    await bench.abort_transaction(1)
    async with Consumer(bench) as consumer:
        await consumer.read(1)
        await bench.look()
        assert (await bench.partition()).waiting == 0
        await bench.produce(1)
        for _ in range(WINDOW):
            last = await bench.partition()
    assert (last.lag, last.waiting, last.verdict) == (2, 2, Verdict.STALLED)


async def test_offsets_that_compaction_removed_count_as_lag_which_is_an_upper_bound(bench: Bench) -> None:
    await bench.create_topic(
        cleanup_policy="compact", segment_ms="50", min_cleanable_dirty_ratio="0.01", delete_retention_ms="0"
    )
    await bench.produce_for_compaction(20)
    async with Consumer(bench) as consumer:
        await consumer.read(1)
    await bench.wait_for_compaction(from_offset=1, below=19)
    last = await bench.partition()
    assert (last.committed, last.end, last.lag) == (1, 20, 19)


async def test_where_retention_was_faster_the_lag_begins_at_what_is_still_there(bench: Bench) -> None:
    await bench.create_topic()
    await bench.produce(9)
    async with Consumer(bench) as consumer:
        await consumer.read(2)
    await bench.delete_up_to(6)
    last = await bench.partition()
    assert (last.committed, last.begin, last.lag, last.expired) == (2, 6, 3, 4)


async def test_partitions_that_are_added_are_seen(bench: Bench) -> None:
    await bench.create_topic()
    assert len((await bench.look()).partitions) == 1
    await bench.add_partitions(3)
    assert len((await bench.look()).partitions) == 3


async def test_where_nobody_listens_that_is_said() -> None:
    (port,) = free_ports(1)
    probe = GroupProbe(
        Settings(broker=f"kafka://127.0.0.1:{port}"), group="g", topics=["t"], clock=MovedClock()
    )
    with pytest.raises(BrokerUnreachable, match=str(port)):
        await probe.start()
    await probe.close()
