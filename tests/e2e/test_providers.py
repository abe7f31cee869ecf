"""One video from several providers, and workers that will not start with one that cannot work."""

from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from sceneloom.testing.fake_provider import TEST_KEY, FakeProvider
from sceneloom.topics import DEAD_LETTERS, PROJECT_EVENTS
from tests.e2e.stage import Stage
from tests.e2e.test_main_job import is_completed

pytestmark = pytest.mark.kafka


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[FakeProvider]:
    scenario = {"defaults": {"cost_usd": 0.10, "running": 1}}
    async with FakeProvider(scenario, ledger_file=tmp_path / "bills.jsonl") as provider:
        yield provider


def accounts(provider: FakeProvider) -> dict[str, str]:
    """Return settings with three providers and a second account of one, a dime for each asset."""
    return {
        "SCENELOOM_ARK_KEY": TEST_KEY,
        "SCENELOOM_ARK_URL": f"{provider.url}/api/v3",
        "SCENELOOM_ARK_USD_PER_SECOND": "0.025",
        "SCENELOOM_ARK2_KEY": TEST_KEY,
        "SCENELOOM_ARK2_SERVICE": "ark",
        "SCENELOOM_ARK2_URL": f"{provider.url}/api/v3",
        "SCENELOOM_ARK2_USD_PER_SECOND": "0.025",
        "SCENELOOM_FAL_KEY": TEST_KEY,
        "SCENELOOM_FAL_URL": provider.url,
        "SCENELOOM_FAL_MODEL": "acme/clips/text-to-video",
        "SCENELOOM_FAL_USD_PER_SECOND": "0.025",
        "SCENELOOM_OPENAI_KEY": TEST_KEY,
        "SCENELOOM_OPENAI_URL": f"{provider.url}/v1",
        "SCENELOOM_OPENAI_IMAGE_USD": "0.10",
        "SCENELOOM_ALLOW_PRIVATE_DOWNLOADS": "true",
    }


async def test_one_video_is_made_by_three_providers(stage: Stage, provider: FakeProvider) -> None:
    clip = {"visual": "clip", "duration_seconds": 4}
    scenes = [
        {"prompt": "waves by ark", **clip},
        {"prompt": "waves by fal", **clip, "providers": {"clip": "fal"}},
        {"prompt": "waves by the second account", **clip, "providers": {"clip": "ark2"}},
        {"prompt": "waves by openai", "providers": {"image": "openai"}},
    ]
    stage.start_worker(**accounts(provider))
    await stage.submit("p1", {"title": "Waves", "scenes": scenes, "providers": {"clip": "ark"}})

    done = await stage.until("p1", is_completed)

    bought = sorted(entry.path for entry in provider.ledger.accepted())
    assert bought == [
        "/acme/clips/text-to-video",
        "/api/v3/contents/generations/tasks",
        "/api/v3/contents/generations/tasks",
        "/v1/images/generations",
    ]
    assert done.receipt.spent_usd == pytest.approx(0.40)
    assert provider.ledger.billed_usd() == pytest.approx(0.40)
    assert await stage.records(DEAD_LETTERS) == []


async def test_what_a_model_cannot_make_is_refused_before_anything_is_bought(
    stage: Stage, provider: FakeProvider
) -> None:
    stage.start_worker(**accounts(provider))
    scene = {"prompt": "waves", "visual": "clip", "duration_seconds": 2.5}
    await stage.submit("p1", {"title": "Waves", "scenes": [scene], "providers": {"clip": "ark"}})

    (event,) = await stage.until_records(PROJECT_EVENTS, 1)

    (fault,) = orjson.loads(event.value)["faults"]
    assert fault["path"] == "scenes[0].duration_seconds"
    assert "the nearest is 4, for $0.10" in fault["message"]
    assert provider.ledger.entries() == []
