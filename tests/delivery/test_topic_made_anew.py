"""The topic of the requests is deleted, and made anew: no message of the new one is skipped."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.delivery.stage import Stage, kill
from tests.delivery.test_losses_on_kafka import make_anew
from tests.delivery.test_on_kafka import ended
from tests.delivery.worker import Plan
from tests.kafka_fixtures import TestBroker

pytestmark = pytest.mark.kafka

ABSENT_SECONDS = 15


@pytest.fixture
async def stage(broker: TestBroker, unique: str, tmp_path: Path) -> AsyncIterator[Stage]:
    plan = Plan(broker=broker.url, prefix=unique, folder=str(tmp_path), partitions=2)
    async with Stage(broker.bootstrap, plan) as stage:
        yield stage


async def all_are_processed(stage: Stage, numbers: range) -> None:
    """Wait until all of *numbers* have a row; a worker that has ended is started again."""
    worker = stage.latest
    for _ in range(900):
        if {str(n) for n in numbers} <= set(await stage.rows()):
            return
        if worker.poll() is not None:
            worker = stage.start_worker()
        await asyncio.sleep(0.1)
    raise AssertionError(stage.log_of(worker)[-3000:])


@pytest.mark.parametrize("count", [6, 40], ids=["shorter than before", "longer than before"])
async def test_a_topic_made_anew_while_no_worker_runs_is_read_from_its_beginning(
    stage: Stage, count: int
) -> None:
    await stage.publish(range(20))
    worker = stage.start_worker()
    assert await stage.commit_reaches(20)
    kill(worker)
    await make_anew(stage, stage.plan.source)
    await stage.publish(range(100, 100 + count))
    stage.start_worker()
    await all_are_processed(stage, range(100, 100 + count))
    assert await stage.commit_reaches(count)


@pytest.mark.parametrize("count", [6, 40], ids=["shorter than before", "longer than before"])
async def test_a_topic_made_anew_under_a_running_worker_is_read_from_its_beginning(
    stage: Stage, count: int
) -> None:
    await stage.publish(range(20))
    stage.start_worker()
    assert await stage.commit_reaches(20)
    await make_anew(stage, stage.plan.source)
    await stage.publish(range(100, 100 + count))
    await all_are_processed(stage, range(100, 100 + count))
    assert await stage.commit_reaches(count)


async def test_what_was_committed_of_a_deleted_topic_says_nothing_of_the_new_one(stage: Stage) -> None:
    await stage.publish(range(20))
    worker = stage.start_worker()
    assert await stage.commit_reaches(20)
    kill(worker)
    before = await stage.commits()
    await make_anew(stage, stage.plan.source)
    await stage.publish(range(100, 140))
    await stage.commit(before)  # as a worker does that has not heard of it yet

    stage.start_worker()

    await all_are_processed(stage, range(100, 140))
    assert await stage.commit_reaches(40)


async def test_a_worker_whose_topic_is_away_says_so_and_does_not_flood_its_log(stage: Stage) -> None:
    await stage.publish(range(20))
    worker = stage.start_worker()
    assert await stage.commit_reaches(20)
    before = len(stage.log_of(worker).splitlines())
    await stage.delete(stage.plan.source)
    await asyncio.sleep(ABSENT_SECONDS)
    lines = stage.log_of(worker).splitlines()[before:]
    assert len(lines) < 20 * ABSENT_SECONDS, "\n".join(lines[-50:])
    assert await ended(worker, seconds=60) != 0
    assert f"delivery: the topic {stage.plan.source} was deleted" in stage.log_of(worker)

    await stage.create(stage.plan.source)
    await stage.publish(range(100, 106))
    await all_are_processed(stage, range(100, 106))
