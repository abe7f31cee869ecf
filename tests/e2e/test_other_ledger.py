"""Credits that another company keeps: its ledger fails, workers die, and each order is carried out once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from models.lifecycle import ProjectState
from models.money import micros
from sceneloom.testing.fake_provider import FakeProvider
from sceneloom.topics import DEAD_LETTERS
from tests.credits.ledger import FakeLedger
from tests.e2e.stage import PATIENCE_SECONDS, Stage
from tests.e2e.test_main_job import is_completed
from tests.e2e.test_paid import clips, paying

pytestmark = pytest.mark.kafka

CLIP = 150_000


@pytest.fixture
def more_settings() -> Mapping[str, Any]:
    return {"credits": "http", "credits_url": "http://ledger"}


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[FakeProvider]:
    async with FakeProvider(
        {"defaults": {"cost_usd": 0.15}}, ledger_file=tmp_path / "bills.jsonl"
    ) as provider:
        yield provider


@pytest.fixture
async def ledger() -> AsyncIterator[FakeLedger]:
    async with FakeLedger(balance=10 * CLIP).serving() as ledger:
        yield ledger


async def when(reached: Callable[[], bool]) -> None:
    for _ in range(int(PATIENCE_SECONDS / 0.1)):
        if reached():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("not reached")


def crediting(provider: FakeProvider, ledger: FakeLedger) -> dict[str, str]:
    return {
        **paying(provider),
        "SCENELOOM_CREDITS": "http",
        "SCENELOOM_CREDITS_URL": ledger.url,
        "SCENELOOM_CREDITS_KEY": "ledger-key",
    }


async def test_one_reservation_and_one_charge_whatever_the_ledger_and_the_worker_do(
    stage: Stage, provider: FakeProvider, ledger: FakeLedger
) -> None:
    # Taken, but not said so; then down, while the worker dies; then down again at the settlement.
    ledger.faults = ["busy", "503", "503", "", "503", "busy"]
    worker = stage.start_worker(**crediting(provider, ledger))
    await stage.submit("p1", clips(2))
    await when(lambda: len(ledger.requests) >= 2)
    worker.kill()
    worker.wait()
    stage.start_worker(**crediting(provider, ledger))

    await stage.until("p1", is_completed)
    await when(lambda: bool(ledger.charged))

    assert ledger.charged == {"p1": micros(provider.ledger.billed_usd())} == {"p1": 2 * CLIP}
    assert (ledger.held, ledger.balance, ledger.orders_taken) == ({}, 8 * CLIP, 2)
    assert len({key for _, key, _ in ledger.requests}) == 2
    assert await stage.records(DEAD_LETTERS) == []


async def test_a_project_without_credits_there_fails_and_buys_nothing(
    stage: Stage, provider: FakeProvider, ledger: FakeLedger
) -> None:
    ledger.balance = CLIP
    stage.start_worker(**crediting(provider, ledger))
    await stage.submit("p1", clips(2))

    failed = await stage.until("p1", lambda s: s.state is ProjectState.FAILED)

    assert "credits" in failed.message
    assert provider.ledger.entries() == []
    await when(lambda: ledger.charged == {"p1": 0})
    assert (ledger.held, ledger.balance) == ({}, CLIP)
