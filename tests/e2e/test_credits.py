"""Users who pay with credits: the real system on a real Kafka, and the fake provider's ledger as judge."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from models.credits import AccountSnapshot
from models.lifecycle import ProjectState
from models.money import micros
from models.snapshot import ProjectSnapshot
from sceneloom.cli.accounts import read_account
from sceneloom.testing.fake_provider import FakeProvider
from sceneloom.topics import CREDIT_REQUESTS, DEAD_LETTERS, PROJECT_EVENTS
from tests.e2e.stage import PATIENCE_SECONDS, Stage
from tests.e2e.test_main_job import is_completed
from tests.e2e.test_paid import accepted, clips, paying
from tests.e2e.test_unreadable_rows import ended

pytestmark = pytest.mark.kafka

USER = "ann lee"
CLIP = 150_000


@pytest.fixture
def more_settings() -> Mapping[str, Any]:
    return {"credits": "table"}


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[FakeProvider]:
    scenario = {"defaults": {"cost_usd": 0.15, "queued": 1, "running": 2}}
    async with FakeProvider(scenario, ledger_file=tmp_path / "bills.jsonl") as provider:
        yield provider


def crediting(provider: FakeProvider) -> dict[str, str]:
    return {**paying(provider), "SCENELOOM_CREDITS": "table"}


async def grant(stage: Stage, grant_id: str, amount: int) -> None:
    command = {"type": "GrantCredits", "user_id": USER, "grant_id": grant_id, "micros": amount}
    await stage.send(USER, command, CREDIT_REQUESTS)


async def account_when(stage: Stage, reached: Callable[[AccountSnapshot], bool]) -> AccountSnapshot:
    account = await read_account(stage.settings, USER)
    for _ in range(int(PATIENCE_SECONDS / 0.2)):
        if reached(account):
            return account
        await asyncio.sleep(0.2)
        account = await read_account(stage.settings, USER)
    raise AssertionError(f"not reached, but {account}\n{stage.log()[-2000:]}")


def is_failed(snapshot: ProjectSnapshot) -> bool:
    return snapshot.state is ProjectState.FAILED


async def test_without_credits_nothing_is_bought_and_with_them_a_retry_is_settled_to_the_cent(
    stage: Stage, provider: FakeProvider
) -> None:
    stage.start_worker(**crediting(provider))
    await grant(stage, "g1", 2 * CLIP)
    await stage.submit("p1", clips(3, user_id=USER))

    refused = await stage.until("p1", is_failed)

    assert "credits" in refused.message
    assert provider.ledger.entries() == []
    events = [orjson.loads(record.value) for record in await stage.records(PROJECT_EVENTS)]
    assert [event["type"] for event in events] == ["ProjectAccepted", "ProjectFailed"]
    assert events[1]["error_code"] == "insufficient_credits"

    await grant(stage, "g2", 2 * CLIP)
    await account_when(stage, lambda a: a.available == 4 * CLIP)
    await stage.send("p1", {"type": "RetryProject", "project_id": "p1"})
    await account_when(stage, lambda a: (a.reserved, a.available) == (3 * CLIP, CLIP))
    done = await stage.until("p1", is_completed)

    account = await account_when(stage, lambda a: a.balance < 4 * CLIP)
    assert account.balance == 4 * CLIP - micros(provider.ledger.billed_usd()) == CLIP
    assert account.reserved == 0
    assert micros(done.receipt.spent_usd) == 3 * CLIP
    assert await stage.records(DEAD_LETTERS) == []


async def test_a_worker_killed_again_and_again_leaves_nothing_reserved_and_charges_what_was_billed(
    stage: Stage, provider: FakeProvider
) -> None:
    settings = {
        **crediting(provider),
        "SCENELOOM_PARALLEL_PAID": "1",
        "SCENELOOM_LIST_GRACE_SECONDS": "5",
    }
    worker = stage.start_worker(**settings)
    await grant(stage, "g1", 100 * CLIP)
    await stage.submit("p1", clips(4, user_id=USER))
    await account_when(stage, lambda a: a.reserved == 4 * CLIP)
    for bought in (1, 3):
        worker.kill()
        worker.wait()
        worker = stage.start_worker(**settings)
        await accepted(provider, bought)

    await stage.until("p1", is_completed)

    account = await account_when(stage, lambda a: a.reserved == 0)
    assert account.balance == 100 * CLIP - micros(provider.ledger.billed_usd()) == 96 * CLIP
    assert await stage.records(DEAD_LETTERS) == []


async def test_a_cancelled_project_gives_back_what_it_held(stage: Stage, provider: FakeProvider) -> None:
    provider.play({"defaults": {"cost_usd": 0.15, "queued": 1000, "running": 1000}})
    stage.start_worker(**crediting(provider))
    await grant(stage, "g1", 10 * CLIP)
    await stage.submit("p1", clips(2, user_id=USER))
    await account_when(stage, lambda a: a.reserved == 2 * CLIP)

    await stage.send("p1", {"type": "CancelProject", "project_id": "p1"})

    await stage.until("p1", lambda s: s.state is ProjectState.CANCELLED)
    account = await account_when(stage, lambda a: a.reserved == 0)
    assert account.available == account.balance >= 8 * CLIP


async def test_a_worker_with_a_name_that_is_restarted_with_credits_is_dealt_their_topics_too(
    stage: Stage, provider: FakeProvider
) -> None:
    named = {"SCENELOOM_INSTANCE": "worker-1", "SCENELOOM_SESSION_SECONDS": "20"}
    worker = stage.start_worker(**paying(provider), **named)
    await stage.submit("before", clips(1))
    await stage.until("before", is_completed)
    worker.send_signal(signal.SIGTERM)
    assert await ended(worker) == 0
    stage.workers.remove(worker)

    stage.start_worker(**crediting(provider), **named)
    await grant(stage, "g1", CLIP)

    assert (await account_when(stage, lambda a: a.available > 0)).available == CLIP
