"""A new version is deployed and rolled back while paid clips are being made: each is billed once."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from sceneloom.testing.fake_provider import FakeProvider
from sceneloom.topics import DEAD_LETTERS, JOB_EVENTS
from tests.e2e.stage import Stage, header
from tests.e2e.test_main_job import is_completed
from tests.e2e.test_paid import accepted, clips, paying
from tests.e2e.test_unreadable_rows import ended, rows
from tests.stored.later import FIELD

pytestmark = pytest.mark.kafka


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[FakeProvider]:
    scenario = {"defaults": {"cost_usd": 0.15, "queued": 1, "running": 30}}
    async with FakeProvider(scenario, ledger_file=tmp_path / "bills.jsonl") as provider:
        yield provider


async def submitted(stage: Stage, count: int) -> None:
    await stage.until_events(JOB_EVENTS, lambda event: event["type"] == "JobSubmitted", count)


@pytest.mark.parametrize("store", ["memory", "rocksdb"])
async def test_a_release_that_is_rolled_back_in_mid_flight_leaves_rows_that_the_old_one_reads(
    stage: Stage, provider: FakeProvider, store: str, tmp_path: Path
) -> None:
    settings = {
        **paying(provider),
        "SCENELOOM_STORE": store,
        "SCENELOOM_DATA_FOLDER": str(tmp_path / "worker"),
    }
    old = stage.start_worker(**settings)
    await stage.submit("p1", clips(2, use_cache=False))
    await accepted(provider, 2)
    await submitted(stage, 2)
    old.send_signal(signal.SIGTERM)
    assert await ended(old) == 0
    stage.workers.clear()

    newer = stage.start_worker("tests.stored.next_release", **settings)
    await stage.submit("p2", clips(2, use_cache=False))
    await accepted(provider, 4)
    await submitted(stage, 4)
    newer.kill()
    await asyncio.to_thread(newer.wait)
    stored = await rows(stage)
    assert {key for key, row in stored.items() if FIELD in orjson.loads(row.value)} >= {
        b"p2/scene-001/clip",
        b"p2/scene-002/clip",
    }

    stage.start_worker(**settings)
    done = await stage.until_all(["p1", "p2"], is_completed)

    assert len(provider.ledger.accepted()) == 4
    assert provider.ledger.billed_usd() == pytest.approx(0.60)
    assert [done[name].receipt.spent_usd for name in ("p1", "p2")] == [pytest.approx(0.30)] * 2
    assert await stage.records(DEAD_LETTERS) == []


async def test_a_message_of_a_type_that_only_the_next_release_knows_is_kept_for_it(stage: Stage) -> None:
    stage.start_worker(HOUSE_SECONDS="600")
    later = orjson.dumps({"type": "JobInspected", "project_id": "p1", "job_id": "p1/scene-001/clip"})

    await stage.send("p1", later, JOB_EVENTS)
    (letter,) = await stage.until_records(DEAD_LETTERS, 1)

    assert (letter.key, letter.value) == (b"p1", later)
    assert header(letter, "sceneloom-topic").endswith(JOB_EVENTS)
    assert "JobInspected" in header(letter, "sceneloom-reason")
