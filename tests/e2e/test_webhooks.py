"""A worker, the gateway and a provider that calls back, each in a process or on a port of its own."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from models.job_events import JobEvent, JobSubmitted, JobSucceeded, PollNow
from models.policy import EARLY
from sceneloom.callbacks import Call
from sceneloom.client import job_event_in
from sceneloom.testing.fake_provider import TEST_KEY, FakeProvider
from sceneloom.topics import DEAD_LETTERS, JOB_EVENTS
from tests.e2e.gateway import SECRET, Gateway
from tests.e2e.stage import Stage
from tests.e2e.test_main_job import is_completed
from tests.e2e.test_paid import clips, paying

pytestmark = pytest.mark.kafka

FIRST_POLL = timedelta(seconds=60) * (1 - EARLY)


@pytest.fixture
def gateways() -> Iterator[list[Gateway]]:
    started: list[Gateway] = []
    yield started
    for gateway in started:
        gateway.stop()


def playing(folder: Path, *rules: dict[str, Any], **defaults: Any) -> FakeProvider:
    scenario = {"defaults": {"cost_usd": 0.15, "running": 2, **defaults}, "rules": list(rules)}
    return FakeProvider(scenario, ledger_file=folder / "bills.jsonl")


def for_prompt(words: str, **then: Any) -> dict[str, Any]:
    return {"when": {"prompt": words}, "then": then}


async def events_of(stage: Stage, project: str, scene: int) -> list[JobEvent]:
    read = [job_event_in(record) for record in await stage.records(JOB_EVENTS)]
    job_id = f"{project}/scene-{scene:03d}/clip"
    return [event for event in read if event is not None and event.job_id == job_id]


def took(events: list[JobEvent]) -> timedelta:
    """Return the time from the provider's acceptance to the clip in the store."""
    (submitted,) = [event for event in events if isinstance(event, JobSubmitted)]
    (succeeded,) = [event for event in events if isinstance(event, JobSucceeded)]
    return succeeded.occurred_at - submitted.occurred_at


def hints_in(events: list[JobEvent]) -> list[PollNow]:
    return [event for event in events if isinstance(event, PollNow)]


async def test_a_webhook_brings_a_clip_home_before_the_first_poll_and_a_lost_one_costs_only_time(
    stage: Stage, gateways: list[Gateway], tmp_path: Path
) -> None:
    rules = (
        for_prompt("take 2", webhook={"lost": True}),
        for_prompt("take 3", running=8, webhook={"forged": True, "copies": 2}),
    )
    async with playing(tmp_path, *rules) as provider:
        gateway = Gateway(stage)
        gateways.append(gateway)
        stage.start_worker(**paying(provider), **gateway.settings)
        await stage.submit("p1", clips(3))
        done = await stage.until("p1", is_completed)

        heard, lost, forged = [await events_of(stage, "p1", scene) for scene in (1, 2, 3)]
        assert hints_in(heard)
        assert took(heard) < FIRST_POLL / 2
        assert hints_in(lost) == []
        assert took(lost) >= FIRST_POLL
        # The forged one came first and said that all is done: the provider, asked, did not agree.
        assert timedelta(seconds=7) < took(forged) < FIRST_POLL
        assert len(provider.ledger.accepted()) == 3
        assert done.receipt.spent_usd == pytest.approx(0.45)
        assert await stage.records(DEAD_LETTERS) == []

    for scene in (1, 2, 3):
        token = Call("ark", f"p1/scene-{scene:03d}/clip", 1, 0).token(SECRET)
        assert token not in gateway.log() + stage.log()


async def test_a_webhook_finds_the_task_whose_submit_was_never_answered(
    stage: Stage, gateways: list[Gateway], tmp_path: Path
) -> None:
    lost = {"fault": "disconnect", "accepted": True, "listed_after": 3600, "running": 5}
    async with playing(tmp_path, for_prompt("take 1", **lost)) as provider:
        gateway = Gateway(stage)
        gateways.append(gateway)
        stage.start_worker(**paying(provider), **gateway.settings)
        await stage.submit("p1", clips(1))
        done = await stage.until("p1", is_completed)

        assert hints_in(await events_of(stage, "p1", 1))
        assert len(provider.ledger.accepted()) == 1
        assert done.receipt.orphaned == 0


async def test_a_signed_webhook_of_fal_does_the_same(
    stage: Stage, gateways: list[Gateway], tmp_path: Path
) -> None:
    forged_too = for_prompt("take 2", webhook={"forged": True, "copies": 3})
    async with playing(tmp_path, forged_too) as provider:
        gateway = Gateway(stage, SCENELOOM_FAL_JWKS_URL=f"{provider.url}/.well-known/jwks.json")
        gateways.append(gateway)
        at_fal = {
            "SCENELOOM_CLIP_PROVIDER": "fal",
            "SCENELOOM_FAL_KEY": TEST_KEY,
            "SCENELOOM_FAL_URL": provider.url,
            "SCENELOOM_FAL_MODEL": "fal-ai/bytedance/seedance/v2/text-to-video",
            "SCENELOOM_FAL_USD_PER_SECOND": "0.0375",
            "SCENELOOM_ALLOW_PRIVATE_DOWNLOADS": "true",
        }
        stage.start_worker(**at_fal, **gateway.settings)
        await stage.submit("p1", clips(2))
        await stage.until("p1", is_completed)

        for scene in (1, 2):
            events = await events_of(stage, "p1", scene)
            assert len({hint.event_id for hint in hints_in(events)}) == 1
            assert took(events) < FIRST_POLL / 2
        answers = [(each.forged, each.answer) for each in provider.deliveries]
        assert sorted(answers) == [(False, 200)] * 4 + [(True, 401)]
