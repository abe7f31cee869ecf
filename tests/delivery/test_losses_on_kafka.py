"""A changelog that lost rows: whoever starts on it stops loudly, and processes nothing."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.delivery.stage import Stage, counts, kill
from tests.delivery.test_on_kafka import ended
from tests.delivery.worker import Plan
from tests.kafka_fixtures import TestBroker

pytestmark = pytest.mark.kafka


@pytest.fixture
async def stage(broker: TestBroker, unique: str, tmp_path: Path) -> AsyncIterator[Stage]:
    plan = Plan(broker=broker.url, prefix=unique, folder=str(tmp_path), partitions=2)
    async with Stage(broker.bootstrap, plan) as stage:
        yield stage


async def a_worker_has_worked(stage: Stage) -> None:
    await stage.publish(range(20))
    worker = stage.start_worker()
    assert await stage.commit_reaches(20)
    kill(worker)


async def make_anew(stage: Stage, topic: str) -> None:
    await stage.delete(topic)
    await stage.create(topic)


async def stops_loudly(stage: Stage, line: str, *, workers: int = 1, done: int = 20) -> None:
    await stage.publish(range(100, 104))
    started = [stage.start_worker() for _ in range(workers)]
    for worker in started:
        assert await ended(worker, seconds=90) != 0
    logs = [stage.log_of(worker) for worker in started]
    wanted = f"delivery: the changelog {stage.plan.changelog}{line}"
    assert any(wanted in log for log in logs), logs[0][-2000:]
    assert all("A changelog lost rows" in log for log in logs)
    assert sum(counts(await stage.read_to_end(stage.plan.output)).values()) == done, "nothing more was done"
    assert sum((await stage.committed()).values()) == done


async def test_a_changelog_that_was_deleted_and_made_anew_stops_the_worker(stage: Stage) -> None:
    await a_worker_has_worked(stage)
    await make_anew(stage, stage.plan.changelog)
    await stops_loudly(stage, "[0] has lost rows: it ends at offset 0, though a row at offset 9 was")


async def test_a_changelog_whose_beginning_was_deleted_stops_the_worker(stage: Stage) -> None:
    await a_worker_has_worked(stage)
    await stage.delete_rows(stage.plan.changelog, before=4)
    await stops_loudly(stage, "[0] has lost rows: it begins at offset 4 instead of 0")


async def test_rows_that_were_noted_long_ago_are_still_looked_for(stage: Stage) -> None:
    await a_worker_has_worked(stage)
    for more in (1, 2):  # each commits, and writes no row
        await stage.publish_raw(b"not a number")
        worker = stage.start_worker()
        assert await stage.commit_reaches(20 + more)
        kill(worker)
    await make_anew(stage, stage.plan.changelog)
    worker = stage.start_worker()
    assert await ended(worker, seconds=90) != 0
    assert "[0] has lost rows: it ends at offset 0, though a row at offset 9 was" in stage.log_of(worker)


async def test_every_worker_stops_where_there_are_two_with_warm_copies(stage: Stage) -> None:
    stage.plan = replace(stage.plan, store="rocksdb", standbys=1)
    await a_worker_has_worked(stage)
    await make_anew(stage, stage.plan.changelog)
    await stops_loudly(stage, "[", workers=2)


async def test_a_table_on_disk_that_is_ahead_of_its_changelog_stops_a_worker_without_any_notes(
    stage: Stage,
) -> None:
    stage.plan = replace(stage.plan, store="rocksdb", data=f"{stage.plan.folder}/data")
    await a_worker_has_worked(stage)
    await stage.forget_notes()
    worker = stage.start_worker()
    await stage.publish([20])
    assert await stage.commit_reaches(21), "no notes are no loss"
    worker.terminate()
    assert await ended(worker, seconds=60) == 0
    await stage.forget_notes()
    await make_anew(stage, stage.plan.changelog)
    await stops_loudly(stage, "[0] has lost rows: it ends at offset 0, though the table on disk", done=21)


async def test_workers_that_come_and_go_while_rows_are_written_see_no_loss(stage: Stage) -> None:
    stage.plan = replace(stage.plan, store="rocksdb", standbys=1)
    await stage.publish(range(600))
    first = stage.start_worker()
    await stage.read(stage.plan.output, until=50)
    others = [stage.start_worker() for _ in range(2)]
    await stage.publish(range(600, 1200))
    assert await stage.commit_reaches(900, seconds=90)
    kill(first)
    assert await stage.commit_reaches(1200, seconds=90)
    assert all(worker.poll() is None for worker in others)
    assert not any("lost rows" in stage.log_of(worker) for worker in (first, *others))
    assert set(await stage.rows()) == {str(n) for n in range(1200)}
