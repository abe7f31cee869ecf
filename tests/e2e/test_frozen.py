"""A worker that is frozen past its session, and wakes: it submits nothing, and its writes change nothing."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sceneloom.delivery import EXIT_CODE
from sceneloom.testing.fake_provider import FakeProvider
from sceneloom.topics import partition_of
from tests.e2e.stage import RunningWorker, Stage
from tests.e2e.test_main_job import is_completed
from tests.e2e.test_paid import accepted, paying, shared_evenly

pytestmark = pytest.mark.kafka


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[FakeProvider]:
    scenario = {"defaults": {"cost_usd": 0.15, "queued": 1, "running": 2}}
    async with FakeProvider(scenario, ledger_file=tmp_path / "bills.jsonl") as provider:
        yield provider


def one_clip(name: str) -> dict[str, object]:
    return {
        "title": name,
        "scenes": [{"prompt": f"waves at {name}", "visual": "clip", "duration_seconds": 4}],
    }


async def frozen_past_its_session(stage: Stage, worker: RunningWorker) -> None:
    """Freeze *worker*, and wait until its session is over for certain."""
    worker.send_signal(signal.SIGSTOP)
    await asyncio.sleep(stage.session_seconds + 1)


async def until_in_log(stage: Stage, number: int, text: str) -> None:
    for _ in range(3600):
        if text in stage.log(number):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(stage.log(number)[-2000:])


async def test_a_zombie_submits_nothing_and_its_writes_change_nothing_also_after_a_recovery(
    stage: Stage, provider: FakeProvider
) -> None:
    settings = {**paying(provider), "SCENELOOM_LIST_GRACE_SECONDS": "5"}
    frozen, peer = (stage.start_worker(**settings) for _ in range(2))
    await shared_evenly(stage, 2)
    names = [f"p{n:02d}" for n in range(12)]
    assert len({partition_of(name, stage.settings.partitions) for name in names}) == 4, "some on each worker"
    for name in names:
        await stage.submit(name, one_clip(name))
    await accepted(provider, 4)

    await frozen_past_its_session(stage, frozen)
    done = await stage.until_all(names, is_completed)
    assert len(provider.ledger.accepted()) == len(names)

    frozen.send_signal(signal.SIGCONT)
    assert await asyncio.to_thread(frozen.wait, 60) == EXIT_CODE
    assert "stood still" in stage.log(0)

    peer.kill()
    peer.wait()
    stage.workers.clear()
    stage.start_worker(**settings)
    await stage.submit("last", one_clip("last"))
    await stage.until("last", is_completed)
    assert await stage.until_all(names, is_completed) == done
    assert len(provider.ledger.accepted()) == len(names) + 1
    assert provider.ledger.billed_usd() == pytest.approx(0.15 * (len(names) + 1))


async def test_a_worker_that_was_frozen_while_it_joined_ends_too_and_its_work_is_done_by_the_other(
    stage: Stage, provider: FakeProvider
) -> None:
    settings = {**paying(provider), "SCENELOOM_LIST_GRACE_SECONDS": "5", "SCENELOOM_LOG_LEVEL": "INFO"}
    peer = stage.start_worker(**settings)
    await shared_evenly(stage, 1)
    joining = stage.start_worker(**settings)
    await until_in_log(stage, 1, "SafeConsumerThread]: Starting")
    await frozen_past_its_session(stage, joining)

    names = [f"p{n:02d}" for n in range(8)]
    for name in names:
        await stage.submit(name, one_clip(name))
    joining.send_signal(signal.SIGCONT)
    assert await asyncio.to_thread(joining.wait, 60) == EXIT_CODE
    stage.workers.remove(joining)

    await stage.until_all(names, is_completed)
    assert peer.poll() is None
    assert len(provider.ledger.accepted()) == len(names)
