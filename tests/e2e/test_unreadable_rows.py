"""A row that this release cannot read stops the worker, loudly, and nothing is bought for it again."""

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaProducer, ConsumerRecord

from sceneloom.client import Reader
from sceneloom.testing.fake_provider import FakeProvider
from sceneloom.topics import JOB_EVENTS, JOBS_TABLE, changelog_name
from tests.e2e.stage import Stage
from tests.e2e.test_main_job import is_completed
from tests.e2e.test_paid import accepted, clips, paying

pytestmark = pytest.mark.kafka


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[FakeProvider]:
    scenario = {"defaults": {"cost_usd": 0.15, "queued": 1, "running": 20}}
    async with FakeProvider(scenario, ledger_file=tmp_path / "bills.jsonl") as provider:
        yield provider


async def rows(stage: Stage) -> dict[bytes, ConsumerRecord]:
    """Return the latest record of each job."""
    changelog = changelog_name(stage.settings, JOBS_TABLE).removeprefix(stage.settings.topic_prefix)
    async with Reader(stage.settings, changelog) as reader:
        return {record.key: record async for record in reader.history()}


async def rewrite(stage: Stage, record: ConsumerRecord, **changes: Any) -> None:
    """Put a newer form of the row in *record* on the changelog."""
    row = orjson.loads(record.value)
    row |= {"version": row["version"] + 1} | changes
    async with AIOKafkaProducer(bootstrap_servers=stage.settings.bootstrap) as producer:
        await producer.send_and_wait(record.topic, orjson.dumps(row), record.key, record.partition)


async def ended(worker: subprocess.Popen[bytes]) -> int:
    return await asyncio.wait_for(asyncio.to_thread(worker.wait), 90)


@pytest.mark.parametrize("store", ["memory", "rocksdb"])
async def test_a_row_of_a_later_release_stops_the_worker_and_its_clip_is_not_bought_again(
    stage: Stage, provider: FakeProvider, store: str, tmp_path: Path
) -> None:
    settings = {
        **paying(provider),
        "SCENELOOM_STORE": store,
        "SCENELOOM_DATA_FOLDER": str(tmp_path / "worker"),
    }
    worker = stage.start_worker(**settings)
    await stage.submit("p1", clips(2))
    await accepted(provider, 2)
    await stage.until_events(JOB_EVENTS, lambda event: event["type"] == "JobSubmitted", 2)
    worker.send_signal(signal.SIGTERM)
    assert await ended(worker) == 0
    stage.workers.clear()

    known = await rows(stage)
    first, second = known[b"p1/scene-001/clip"], known[b"p1/scene-002/clip"]
    await rewrite(stage, first, status="polished")
    await rewrite(stage, second)  # recovery must not only notice the last row
    for _ in range(2):  # its supervisor starts it again, which must not get past the row either
        worker = stage.start_worker(**settings)
        assert await ended(worker) != 0
        stage.workers.clear()
        log = stage.log(stage.started - 1)
        assert f"table jobs, key 'p1/scene-001/clip', partition {first.partition}, offset " in log
        assert "status: Input should be 'queued'" in log
        assert "Start the release that wrote it" in log

    await rewrite(stage, first, version=orjson.loads(first.value)["version"] + 2)
    stage.start_worker(**settings)
    done = await stage.until("p1", is_completed)
    assert len(provider.ledger.accepted()) == 2
    assert done.receipt.spent_usd == pytest.approx(0.30)
