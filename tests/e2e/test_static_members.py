"""A worker with a fixed name is restarted: its partitions wait for it, and its peer is not disturbed."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from sceneloom.testing.fake_provider import FakeProvider
from sceneloom.topics import JOB_EVENTS, PROJECT_EVENTS, partition_of
from tests.e2e.stage import Stage
from tests.e2e.test_main_job import is_completed
from tests.e2e.test_paid import accepted, clips, paying, shared_evenly
from tests.e2e.test_unreadable_rows import ended

pytestmark = pytest.mark.kafka


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[FakeProvider]:
    scenario = {"defaults": {"cost_usd": 0.15, "queued": 1, "running": 60}}
    async with FakeProvider(scenario, ledger_file=tmp_path / "bills.jsonl") as provider:
        yield provider


def worker_settings(provider: FakeProvider, folder: Path, number: int, session: int) -> dict[str, str]:
    return {
        **paying(provider),
        "SCENELOOM_STORE": "rocksdb",
        "SCENELOOM_STANDBYS": "1",
        "SCENELOOM_INSTANCE": f"worker-{number}",
        "SCENELOOM_DATA_FOLDER": str(folder / f"tables-{number}"),
        "SCENELOOM_SESSION_SECONDS": str(session),  # far longer than a start takes on a busy machine
    }


def takeovers(stage: Stage, number: int) -> list[str]:
    return re.findall(r"custody\.partitions.*", stage.log(number))


async def ordered(stage: Stage, provider: FakeProvider) -> list[str]:
    """Have one clip made on each partition; return the projects."""
    by_partition = {partition_of(f"p{n}", stage.settings.partitions): f"p{n}" for n in range(100)}
    projects = sorted(by_partition.values())
    for project in projects:
        await stage.submit(project, clips(1, use_cache=False))
    await accepted(provider, len(projects))
    await stage.until_events(JOB_EVENTS, lambda event: event["type"] == "JobSubmitted", len(projects))
    return projects


async def resumed(stage: Stage) -> set[str]:
    records = await stage.records(PROJECT_EVENTS)
    events = [orjson.loads(record.value) for record in records]
    return {event["project_id"] for event in events if event["type"] == "ProjectResumed"}


async def test_a_restart_moves_no_partition_and_the_peer_notices_nothing(
    stage: Stage, provider: FakeProvider, tmp_path: Path
) -> None:
    first, second = (worker_settings(provider, tmp_path, number, session=60) for number in (1, 2))
    worker = stage.start_worker(**first, WEB_HOST="container-before")
    stage.start_worker(**second)
    await shared_evenly(stage, 2)
    projects = await ordered(stage, provider)
    before = takeovers(stage, 1)

    worker.send_signal(signal.SIGTERM)
    assert await ended(worker) == 0
    stage.workers.remove(worker)
    stage.start_worker(**first, WEB_HOST="container-after")  # the broker hands out what the old one was dealt
    done = await stage.until_all(projects, is_completed)

    assert len(takeovers(stage, 2)) == 1, "one assignment, not one to join and one to share"
    assert "held=2" in takeovers(stage, 2)[0]
    assert takeovers(stage, 1) == before, "the peer had no rebalance"
    assert len(await resumed(stage)) == len(projects) // 2, "and its projects were not interrupted"
    assert len(provider.ledger.accepted()) == len(projects)
    assert {each.receipt.spent_usd for each in done.values()} == {0.15}


async def test_the_peer_of_a_dead_worker_goes_on_from_its_warm_copy(
    stage: Stage, provider: FakeProvider, tmp_path: Path
) -> None:
    first, second = (worker_settings(provider, tmp_path, number, session=6) for number in (1, 2))
    worker = stage.start_worker(**first)
    stage.start_worker(**second)
    await shared_evenly(stage, 2)
    projects = await ordered(stage, provider)

    worker.kill()
    await asyncio.to_thread(worker.wait)
    done = await stage.until_all(projects, is_completed)

    assert "held=4" in takeovers(stage, 1)[-1]
    assert len(provider.ledger.accepted()) == len(projects)
    assert {each.receipt.spent_usd for each in done.values()} == {0.15}


async def test_of_two_workers_with_one_name_the_first_ends_and_says_why(
    stage: Stage, provider: FakeProvider, tmp_path: Path
) -> None:
    settings = worker_settings(provider, tmp_path, 1, session=10)
    first = stage.start_worker(**settings)
    await shared_evenly(stage, 1)

    stage.start_worker(**settings | {"SCENELOOM_DATA_FOLDER": str(tmp_path / "tables-2")})

    assert await ended(first) != 0
    assert "another process has the same name" in stage.log(0)
    stage.workers.remove(first)
