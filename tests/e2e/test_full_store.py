"""The disk of the assets is full: what was paid for is fetched again later, and never bought again."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sceneloom.testing.fake_provider import FakeProvider
from sceneloom.topics import DEAD_LETTERS, JOB_EVENTS
from tests.e2e.stage import Stage
from tests.e2e.test_frozen import until_in_log
from tests.e2e.test_main_job import is_completed
from tests.e2e.test_paid import accepted, buying_pictures, clips, paying
from tests.small_disk import fill, small_disk

pytestmark = pytest.mark.kafka


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[FakeProvider]:
    scenario = {"defaults": {"cost_usd": 0.15, "queued": 1, "running": 8}}
    async with FakeProvider(scenario, ledger_file=tmp_path / "bills.jsonl") as provider:
        yield provider


@pytest.fixture
def small_store(stage: Stage) -> Iterator[Path]:
    """The disk on which the asset store is."""
    with small_disk(stage.folder / "assets", megabytes=64) as disk:
        yield disk
        stage.end()


async def test_a_paid_clip_that_cannot_be_stored_is_fetched_again_until_there_is_room(
    stage: Stage, provider: FakeProvider, small_store: Path
) -> None:
    stage.start_worker(**paying(provider))
    await stage.submit("p1", clips(1))
    await accepted(provider, 1)
    ballast = fill(small_store)
    await until_in_log(stage, 0, "runner.poll_failed")
    assert "No space left on device" in stage.log()

    ballast.unlink()
    done = await stage.until("p1", is_completed)

    assert len(provider.ledger.accepted()) == 1
    assert done.receipt.spent_usd == pytest.approx(0.15)
    assert await stage.records(DEAD_LETTERS) == []


async def test_a_paid_picture_that_cannot_be_stored_is_a_question_to_a_person_and_no_second_call(
    stage: Stage, provider: FakeProvider, small_store: Path
) -> None:
    provider.play({"defaults": {"cost_usd": 0.15, "latency": 5}})
    stage.start_worker(**buying_pictures(provider))
    await stage.submit("p1", {"title": "Waves", "scenes": [{"prompt": "waves"}]})

    await stage.until_events(JOB_EVENTS, lambda event: event["type"] == "SubmitIntended", 1)
    ballast = fill(small_store)
    asked = await stage.until("p1", lambda s: any(scene.questions for scene in s.scenes))

    (question,) = asked.scenes[0].questions
    assert (question.provider, question.cost_usd) == ("openai", 0.15)
    assert "No space left on device" in stage.log()
    ballast.unlink()
    approve = {"type": "ApproveResend", "project_id": "p1", "command_id": "a1", "job_id": question.job_id}
    assert len(provider.ledger.accepted()) == 1

    await stage.send("p1", approve)
    await stage.until("p1", is_completed)
    assert len(provider.ledger.accepted()) == 2, "the second call is the one that was approved"
