import asyncio
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from sceneloom.delivery import EXIT_CODE
from tests.delivery.stage import Stage, counts, kill
from tests.delivery.worker import Plan
from tests.kafka_fixtures import TestBroker

NUMBERS = 2000


@pytest.fixture
async def stage(broker: TestBroker, unique: str, tmp_path: Path) -> AsyncIterator[Stage]:
    plan = Plan(
        broker=broker.url, prefix=unique, folder=str(tmp_path), partitions=8, embedded=not broker.real
    )
    async with Stage(broker.bootstrap, plan) as stage:
        yield stage


async def ended(worker: subprocess.Popen[bytes], *, seconds: float) -> int:
    return await asyncio.wait_for(asyncio.to_thread(worker.wait), seconds)


@pytest.mark.kafka
async def test_nothing_is_lost_when_a_worker_is_killed_under_load(stage: Stage) -> None:
    await stage.publish(range(NUMBERS))
    worker = stage.start_worker()
    await stage.read(stage.plan.output, until=NUMBERS // 2)
    kill(worker)
    stage.start_worker()

    assert await stage.commit_reaches(NUMBERS, seconds=60)
    everything = {str(n) for n in range(NUMBERS)}
    assert set(counts(await stage.read_to_end(stage.plan.output))) == everything
    assert set(await stage.rows()) == everything


@pytest.mark.kafka
async def test_nothing_is_skipped_where_nothing_was_committed_yet(stage: Stage) -> None:
    plan, partitions = stage.plan, stage.plan.partitions
    first = range(0, 50 * partitions, partitions)  # all on partition 0, to leave a table that is recovered
    await stage.publish(first)
    stage.plan = replace(plan, commit_interval=600)
    worker = stage.start_worker()
    await stage.read(plan.output, until=len(first))
    kill(worker)
    assert await stage.committed() == {}

    rest = [n for n in range(50 * partitions) if n not in first]
    await stage.publish(rest)
    # While it waits for its offsets, Faust hands out messages that it throws away when it has them.
    stage.plan = replace(plan, slow_seek=2, work_seconds=0.2)
    worker = stage.start_worker()
    # A skipped message either holds its offset back for ever, or is passed by it and never seen.
    assert await stage.commit_reaches(4 * partitions, seconds=40)
    kill(worker)

    stage.plan = plan
    stage.start_worker()
    assert await stage.commit_reaches(50 * partitions, seconds=40)
    assert set(await stage.rows()) == {str(n) for n in range(50 * partitions)}


@pytest.mark.kafka
@pytest.mark.parametrize("refusing", ["output", "changelog"])
async def test_a_message_whose_writes_the_broker_does_not_take_is_processed_again(
    broker: TestBroker, unique: str, tmp_path: Path, refusing: str
) -> None:
    plan = Plan(broker=broker.url, prefix=unique, folder=str(tmp_path), ack_timeout=3, request_timeout=2)
    async with Stage(broker.bootstrap, plan) as stage:
        topic = getattr(plan, refusing)
        await stage.accept_writes(topic, yes=False)
        await stage.publish(range(8))

        worker = stage.start_worker()
        assert await ended(worker, seconds=60) != 0
        log = stage.log_of(worker)
        assert f"delivery: a message to {topic} was not" in log
        assert "the worker ends, its supervisor starts it again" in log
        assert await stage.committed() == {}

        await stage.accept_writes(topic, yes=True)
        stage.start_worker()
        assert await stage.commit_reaches(8, seconds=40)
        assert set(counts(await stage.read_to_end(plan.output))) == {str(n) for n in range(8)}
        assert set(await stage.rows()) == {str(n) for n in range(8)}


@pytest.mark.kafka
async def test_a_message_that_cannot_be_processed_ends_the_worker_and_waits_for_the_next(
    broker: TestBroker, unique: str, tmp_path: Path
) -> None:
    plan = Plan(broker=broker.url, prefix=unique, folder=str(tmp_path), partitions=1, explode_on="5")
    async with Stage(broker.bootstrap, plan) as stage:
        await stage.publish(range(10))
        worker = stage.start_worker()
        assert await ended(worker, seconds=60) != 0
        log = stage.log_of(worker)
        assert f"delivery: {plan.source}[0] offset 5 cannot be processed: RuntimeError('boom')" in log
        assert set(await stage.rows()) == {"0", "1", "2", "3", "4"}
        assert sum((await stage.committed()).values()) <= 5

        (tmp_path / "defused").touch()
        stage.start_worker()
        assert await stage.commit_reaches(10)
        assert set(await stage.rows()) == {str(n) for n in range(10)}


@pytest.mark.kafka
async def test_what_cannot_be_read_becomes_a_dead_letter_and_the_partition_goes_on(
    broker: TestBroker, unique: str, tmp_path: Path
) -> None:
    plan = Plan(broker=broker.url, prefix=unique, folder=str(tmp_path), partitions=1)
    large = b"x" * 2_000_000
    async with Stage(broker.bootstrap, plan) as stage:
        await stage.publish_raw(b"{not json", key=b"\xff\x00", headers=[("traceparent", b"00-1")])
        await stage.publish_raw(None, key=b"tombstone")
        await stage.publish_raw(large, key=b"large")
        await stage.publish([7])

        stage.start_worker()
        assert await stage.commit_reaches(4)
        letters = await stage.read_to_end(plan.dead_letters)
        rows = await stage.rows()

    assert set(rows) == {"7"}
    assert [(m.key, m.value) for m in letters] == [
        (b"\xff\x00", b"{not json"),
        (b"tombstone", None),
        (b"large", large),
    ]
    first = dict(letters[0].headers)
    assert first["traceparent"] == b"00-1"
    assert first["sceneloom-topic"] == plan.source.encode()
    assert (first["sceneloom-partition"], first["sceneloom-offset"]) == (b"0", b"0")
    assert first["sceneloom-error"] == b"Refused"
    assert b"not a number" in first["sceneloom-reason"]
    assert len(first["sceneloom-timestamp"]) == 13


async def test_a_worker_counts_and_commits_on_whatever_broker_there_is(stage: Stage) -> None:
    await stage.publish(range(100))
    stage.start_worker()
    assert await stage.commit_reaches(100, seconds=30)
    assert set(counts(await stage.read_to_end(stage.plan.output))) == {str(n) for n in range(100)}


@pytest.mark.kafka
async def test_a_worker_whose_agent_hangs_ends_with_a_line_that_says_where_and_the_next_goes_on(
    broker: TestBroker, unique: str, tmp_path: Path
) -> None:
    plan = Plan(broker=broker.url, prefix=unique, folder=str(tmp_path), partitions=1, patience=6, hang_on="5")
    async with Stage(broker.bootstrap, plan) as stage:
        await stage.publish(range(5))
        worker = stage.start_worker()
        assert await stage.commit_reaches(5)
        await asyncio.sleep(2 * plan.patience)  # what has nothing to do is left alone
        assert worker.poll() is None

        await stage.publish(range(5, 10))
        assert await ended(worker, seconds=90) != 0
        log = stage.log_of(worker)
        assert f"delivery: commits stand still on {plan.source}[0]: offset 5 is committed" in log
        assert "its messages go to offset 10: the worker ends, its supervisor starts it again" in log

        stage.plan = replace(plan, hang_on="")
        stage.start_worker()
        assert await stage.commit_reaches(10, seconds=60)
        assert set(await stage.rows()) == {str(n) for n in range(10)}


@pytest.mark.kafka
async def test_a_worker_whose_loop_is_blocked_ends_with_the_place_and_the_next_goes_on(
    broker: TestBroker, unique: str, tmp_path: Path
) -> None:
    plan = Plan(
        broker=broker.url, prefix=unique, folder=str(tmp_path), partitions=1, patience=6, block_on="5"
    )
    async with Stage(broker.bootstrap, plan) as stage:
        await stage.publish(range(10))
        worker = stage.start_worker()
        assert await ended(worker, seconds=90) == EXIT_CODE
        log = stage.log_of(worker)
        assert "watchdog: the event loop has been blocked for" in log
        assert "in handle\n    time.sleep(3600)" in log

        stage.plan = replace(plan, block_on="")
        stage.start_worker()
        assert await stage.commit_reaches(10, seconds=60)
