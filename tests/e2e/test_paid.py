"""Paid clips at a provider that misbehaves, judged by the provider's own ledger: one bill for each clip."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from models.errors import ErrorCode
from models.lifecycle import ProjectState
from sceneloom.testing.fake_provider import TEST_KEY, FakeProvider
from sceneloom.topics import DEAD_LETTERS, JOB_EVENTS, PROJECT_EVENTS, partition_of
from tests.e2e.stage import Stage
from tests.e2e.test_main_job import is_completed

pytestmark = pytest.mark.kafka


def clips(count: int, **more: object) -> dict[str, Any]:
    scenes = [
        {"prompt": f"waves, take {n}", "visual": "clip", "duration_seconds": 4} for n in range(1, count + 1)
    ]
    return {"title": "Waves", "scenes": scenes, **more}


def paying(provider: FakeProvider) -> dict[str, str]:
    """Return the settings of a worker that buys its clips at *provider*, at 15 cents each."""
    return {
        "SCENELOOM_CLIP_PROVIDER": "ark",
        "SCENELOOM_ARK_KEY": TEST_KEY,
        "SCENELOOM_ARK_URL": f"{provider.url}/api/v3",
        "SCENELOOM_ARK_USD_PER_SECOND": "0.0375",
        "SCENELOOM_ALLOW_PRIVATE_DOWNLOADS": "true",
    }


def buying_pictures(provider: FakeProvider) -> dict[str, str]:
    """Return the settings of a worker that buys its pictures at *provider*, which has no list of them."""
    return {
        "SCENELOOM_IMAGE_PROVIDER": "openai",
        "SCENELOOM_OPENAI_KEY": TEST_KEY,
        "SCENELOOM_OPENAI_URL": f"{provider.url}/v1",
        "SCENELOOM_OPENAI_IMAGE_USD": "0.15",
    }


def ordering_pictures(provider: FakeProvider) -> dict[str, str]:
    """Return the settings of a worker whose pictures are tasks of *provider*, which lists them."""
    return {
        "SCENELOOM_IMAGE_PROVIDER": "fal",
        "SCENELOOM_FAL_KEY": TEST_KEY,
        "SCENELOOM_FAL_URL": provider.url,
        "SCENELOOM_FAL_LIST_URL": f"{provider.url}/v1",
        "SCENELOOM_FAL_IMAGE_MODEL": "acme/flux/dev",
        "SCENELOOM_FAL_IMAGE_USD": "0.15",
        "SCENELOOM_ALLOW_PRIVATE_DOWNLOADS": "true",
    }


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[FakeProvider]:
    scenario = {"defaults": {"cost_usd": 0.15, "queued": 1, "running": 2}}
    async with FakeProvider(scenario, ledger_file=tmp_path / "bills.jsonl") as provider:
        yield provider


async def accepted(provider: FakeProvider, count: int) -> None:
    for _ in range(1200):
        if len(provider.ledger.accepted()) >= count:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(provider.ledger.entries())


async def test_a_worker_killed_again_and_again_buys_each_clip_once(
    stage: Stage, provider: FakeProvider
) -> None:
    # The list of this provider does not lag, so what it does not show after a moment was not accepted.
    settings = {**paying(provider), "SCENELOOM_PARALLEL_PAID": "1", "SCENELOOM_LIST_GRACE_SECONDS": "5"}
    worker = stage.start_worker(**settings)
    await stage.submit("p1", clips(6))
    for bought in (1, 3, 6):
        await accepted(provider, bought)
        worker.kill()
        worker.wait()
        worker = stage.start_worker(**settings)

    done = await stage.until("p1", is_completed)

    assert len(provider.ledger.accepted()) == 6
    assert provider.ledger.billed_usd() == pytest.approx(0.90)
    assert done.receipt.spent_usd == pytest.approx(0.90)
    assert done.receipt.orphaned == 0
    assert await stage.records(DEAD_LETTERS) == []


async def test_a_picture_that_was_ordered_before_its_worker_died_is_bought_once(
    stage: Stage, provider: FakeProvider
) -> None:
    settings = {**ordering_pictures(provider), "SCENELOOM_LIST_GRACE_SECONDS": "5"}
    worker = stage.start_worker(**settings)
    scenes = [{"prompt": f"waves, take {n}"} for n in (1, 2)]
    await stage.submit("p1", {"title": "Waves", "scenes": scenes})
    await accepted(provider, 1)
    worker.kill()
    worker.wait()
    stage.start_worker(**settings)

    done = await stage.until("p1", is_completed)

    assert len(provider.ledger.accepted()) == 2
    assert provider.ledger.billed_usd() == pytest.approx(0.30)
    assert done.receipt.spent_usd == pytest.approx(0.30)
    assert done.receipt.orphaned == 0
    assert await stage.records(DEAD_LETTERS) == []


async def test_a_lost_answer_is_an_unclear_outcome_and_the_task_is_found_in_the_list(
    stage: Stage, provider: FakeProvider
) -> None:
    provider.play(
        {
            "defaults": {"cost_usd": 0.15, "running": 2},
            "rules": [
                {
                    "when": {"to_call": 1, "count_by": "prompt"},
                    "then": {"fault": "disconnect", "accepted": True, "listed_after": 5},
                }
            ],
        }
    )
    stage.start_worker(**paying(provider))
    await stage.submit("p1", clips(2))

    waiting = await stage.until("p1", lambda s: any(scene.delayed for scene in s.scenes))
    assert waiting.state is ProjectState.GENERATING_SCENES
    done = await stage.until("p1", is_completed)

    assert len(provider.ledger.accepted()) == 2
    assert done.receipt.spent_usd == pytest.approx(0.30)


async def test_a_video_that_would_cost_more_than_allowed_is_refused_before_anything_is_bought(
    stage: Stage, provider: FakeProvider
) -> None:
    stage.start_worker(**paying(provider))
    await stage.submit("p1", clips(3, max_cost_usd=0.40))

    (event,) = await stage.until_records(PROJECT_EVENTS, 1)

    (fault,) = orjson.loads(event.value)["faults"]
    assert (fault["path"], fault["rule"]) == ("max_cost_usd", "too_expensive")
    assert "$0.45" in fault["message"]
    assert provider.ledger.accepted() == []


async def test_a_refused_scene_costs_nothing_and_a_retry_buys_only_that_scene(
    stage: Stage, provider: FakeProvider
) -> None:
    provider.play(
        {
            "defaults": {"cost_usd": 0.15, "running": 1},
            "rules": [{"when": {"prompt": "take 2", "to_call": 1}, "then": {"error": "moderation"}}],
        }
    )
    stage.start_worker(**paying(provider))
    await stage.submit("p1", clips(3))
    failed = await stage.until("p1", lambda s: s.state is ProjectState.FAILED)
    assert failed.receipt.spent_usd == pytest.approx(0.30)

    await stage.send("p1", {"type": "RetryProject", "project_id": "p1"})
    done = await stage.until("p1", is_completed)

    assert provider.ledger.billed_usd() == pytest.approx(0.45)
    assert done.receipt.spent_usd == pytest.approx(0.45)
    assert done.receipt.saved_usd == pytest.approx(0.30)


async def shared_evenly(stage: Stage, workers: int) -> None:
    """Wait until each worker says that it holds its share of the partitions."""
    share = stage.settings.partitions // workers
    for _ in range(1800):
        held = [re.findall(r"held=(\d+)", stage.log(number)) for number in range(workers)]
        if all(counts and int(counts[-1]) == share for counts in held):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(held)


async def test_one_clip_for_projects_on_two_workers_at_the_same_moment_is_billed_once(
    stage: Stage, provider: FakeProvider
) -> None:
    for _ in range(2):
        stage.start_worker(**paying(provider))
    await shared_evenly(stage, 2)
    by_partition = {partition_of(f"p{n}", stage.settings.partitions): f"p{n}" for n in range(100)}
    projects = sorted(by_partition.values())
    assert len(projects) == stage.settings.partitions, "some on each of the workers"

    await asyncio.gather(*(stage.submit(project, clips(1)) for project in projects))
    done = await stage.until_all(projects, is_completed)

    assert provider.ledger.billed_usd() == pytest.approx(0.15)
    assert len(provider.ledger.accepted()) == 1
    receipts = [done[project].receipt for project in projects]
    assert sorted(receipt.spent_usd for receipt in receipts) == [0.0, 0.0, 0.0, pytest.approx(0.15)]
    assert sorted(receipt.saved_usd for receipt in receipts) == [0.0, *[pytest.approx(0.15)] * 3]
    assert all((receipt.cached > 0) == (receipt.spent_usd == 0.0) for receipt in receipts)
    events = [orjson.loads(record.value) for record in await stage.records(JOB_EVENTS)]
    assert [event["type"] for event in events].count("SubmitIntended") == 1


async def test_a_call_that_nobody_can_look_up_waits_for_a_person_and_the_budget_holds_for_the_resend_too(
    stage: Stage, provider: FakeProvider
) -> None:
    provider.play(
        {
            "defaults": {"cost_usd": 0.15},
            "rules": [
                {
                    "when": {"prompt": "take 2", "to_call": 1},
                    "then": {"fault": "disconnect", "accepted": True},
                }
            ],
        }
    )
    stage.start_worker(**buying_pictures(provider))
    scenes = [{"prompt": f"waves, take {n}"} for n in (1, 2)]
    await stage.submit("p1", {"title": "Waves", "scenes": scenes, "max_cost_usd": 0.30})

    asked = await stage.until("p1", lambda s: any(scene.questions for scene in s.scenes))
    (question,) = asked.scenes[1].questions
    assert (question.provider, question.cost_usd) == ("openai", 0.15)
    assert len(provider.ledger.accepted()) == 2

    approve = {"type": "ApproveResend", "project_id": "p1", "command_id": "a1", "job_id": question.job_id}
    await stage.send("p1", approve)
    await stage.send("p1", approve)  # whoever approves twice does not buy twice
    stopped = await stage.until("p1", lambda s: s.state is ProjectState.FAILED)
    assert stopped.scenes[1].error_code is ErrorCode.BUDGET_EXCEEDED
    assert len(provider.ledger.accepted()) == 2

    await stage.send("p1", {"type": "RetryProject", "project_id": "p1", "changes": {"max_cost_usd": 0.45}})
    done = await stage.until("p1", is_completed)
    assert len(provider.ledger.accepted()) == 3
    assert provider.ledger.billed_usd() == pytest.approx(0.45)
    assert done.receipt.spent_usd == pytest.approx(0.45)
    assert done.receipt.orphaned == 1
    assert await stage.records(DEAD_LETTERS) == []


async def test_a_cancelled_project_takes_back_what_waits_and_counts_what_runs(
    stage: Stage, provider: FakeProvider
) -> None:
    provider.play(
        {
            "defaults": {"cost_usd": 0.15, "queued": 600},
            "rules": [{"when": {"prompt": "take 1"}, "then": {"queued": 0, "running": 600}}],
        }
    )
    stage.start_worker(**paying(provider))
    await stage.submit("p1", clips(2))
    await accepted(provider, 2)
    await stage.until_events(JOB_EVENTS, lambda e: e["type"] == "JobSubmitted", 2)

    await stage.send("p1", {"type": "CancelProject", "project_id": "p1"})
    await stage.until_events(JOB_EVENTS, lambda e: e["type"] == "JobStopped", 2)
    settled = await stage.until("p1", lambda s: s.receipt.spent_usd == pytest.approx(0.15))

    assert settled.state is ProjectState.CANCELLED
    assert settled.receipt.orphaned == 1
    assert provider.ledger.billed_usd() == pytest.approx(0.15)


async def test_a_provider_that_lets_nobody_in_is_stood_in_for_and_the_receipt_says_so(
    stage: Stage, provider: FakeProvider
) -> None:
    provider.play(
        {
            "defaults": {"cost_usd": 0.15},
            "rules": [{"when": {"family": "tasks"}, "then": {"error": "unauthorized"}}],
        }
    )
    fallback = {
        "SCENELOOM_CLIP_FALLBACK": "fal",
        "SCENELOOM_FAL_KEY": TEST_KEY,
        "SCENELOOM_FAL_URL": provider.url,
        "SCENELOOM_FAL_MODEL": "fal-ai/seedance/text-to-video",
        "SCENELOOM_FAL_USD_PER_SECOND": "0.0375",
    }
    stage.start_worker(**paying(provider), **fallback)
    await stage.submit("p1", clips(1))

    done = await stage.until("p1", is_completed)

    (entry,) = provider.ledger.accepted()
    assert entry.family == "queue"
    assert done.receipt.fallback == 1
    assert done.receipt.spent_usd == pytest.approx(0.15)


async def test_an_equal_clip_is_served_from_the_store_unless_a_new_one_is_wanted(
    stage: Stage, provider: FakeProvider
) -> None:
    stage.start_worker(**paying(provider))
    await stage.submit("p1", clips(1))
    await stage.until("p1", is_completed)

    await stage.submit("p2", clips(1))
    await stage.submit("p3", clips(1, use_cache=False))
    served = await stage.until("p2", is_completed)
    bought = await stage.until("p3", is_completed)

    assert len(provider.ledger.accepted()) == 2
    assert served.receipt.spent_usd == 0.0
    assert served.receipt.saved_usd == pytest.approx(0.15)
    assert bought.receipt.spent_usd == pytest.approx(0.15)


async def test_a_refused_scene_is_put_in_other_words_and_only_that_one_is_bought(
    stage: Stage, provider: FakeProvider
) -> None:
    provider.play(
        {
            "defaults": {"cost_usd": 0.15},
            "rules": [{"when": {"prompt": "take 2"}, "then": {"error": "moderation"}}],
        }
    )
    stage.start_worker(**paying(provider))
    await stage.submit("p1", clips(2))
    await stage.until("p1", lambda s: s.state is ProjectState.FAILED)

    changes = {"scene_id": "scene-002", "prompt": "waves, calmer"}
    await stage.send("p1", {"type": "RetryProject", "project_id": "p1", "changes": changes})
    await stage.until("p1", is_completed)

    assert [entry.prompt for entry in provider.ledger.accepted()] == ["waves, take 1", "waves, calmer"]
