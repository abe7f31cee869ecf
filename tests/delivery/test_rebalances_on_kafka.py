"""Workers come and go: no message is skipped, whoever had its partition, and whatever the others were at."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.delivery.stage import Stage, counts, kill
from tests.delivery.worker import Plan
from tests.kafka_fixtures import TestBroker

pytestmark = pytest.mark.kafka


@pytest.fixture
async def stage(broker: TestBroker, unique: str, tmp_path: Path) -> AsyncIterator[Stage]:
    plan = Plan(broker=broker.url, prefix=unique, folder=str(tmp_path), partitions=2, patience=40)
    async with Stage(broker.bootstrap, plan) as stage:
        yield stage


async def everything_was_done(stage: Stage, numbers: range) -> None:
    assert await stage.commit_reaches(len(numbers), seconds=120)
    everything = {str(n) for n in numbers}
    assert set(await stage.rows()) == everything
    assert set(counts(await stage.read_to_end(stage.plan.output))) == everything


async def until_logged(stage: Stage, worker: int, text: str) -> None:
    for _ in range(1200):
        if text in stage.log_of(stage.workers[worker]):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(stage.log_of(stage.workers[worker])[-2000:])


async def test_a_worker_without_partitions_waits_and_takes_over_when_its_turn_comes(stage: Stage) -> None:
    await stage.publish(range(400))
    for number in range(4):  # two of them get nothing
        stage.start_worker()
        await until_logged(stage, number, "Worker ready")
    await stage.publish(range(400, 800))
    assert await stage.commit_reaches(800, seconds=120)
    assert all(worker.poll() is None for worker in stage.workers), "who waits is left alone"

    for worker in stage.workers[:3]:
        kill(worker)
    await stage.publish(range(800, 1000))
    await everything_was_done(stage, range(1000))
    assert stage.workers[3].poll() is None


async def test_nothing_is_skipped_by_a_rebalance_during_a_recovery(stage: Stage) -> None:
    await stage.publish(range(4000))
    stage.start_worker()
    assert await stage.commit_reaches(4000, seconds=200)
    kill(stage.workers[0])

    await stage.publish(range(4000, 4400))
    stage.plan = replace(stage.plan, slow_rows=0.003)  # so that the recovery takes six seconds and more
    stage.start_worker()
    await until_logged(stage, 1, "Restoring state from changelog topics")
    stage.start_worker()
    await until_logged(stage, 2, "Restoring state from changelog topics")
    stage.start_worker()
    await stage.publish(range(4400, 4500))
    await everything_was_done(stage, range(4500))
