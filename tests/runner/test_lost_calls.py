"""Calls whose partition, store or worker goes away just then: none is made twice, and none is lost."""

import asyncio
from typing import Any

import pytest

from models.job_events import (
    JobPostponed,
    JobSubmitted,
    JobSucceeded,
    SubmitIntended,
    SubmitOutcomeUnknown,
)
from models.lifecycle import JobStatus, SubmitState
from models.ports import Absent
from models.work import Offer
from sceneloom.assets.errors import AssetStoreUnavailable
from sceneloom.assets.store import ObjectAssets
from sceneloom.providers.wire import MAY_BUY, NotAllowed
from sceneloom.runner.runner import AGAIN_SECONDS
from sceneloom.workshop.supplier import OutcomeUnknown
from tests.fakes import START
from tests.runner.test_runner import Bench, OneCall, Tasks, a_clip, an_image

PRICED = Offer(provider="house", model="m1", cost_usd=0.15)


class Store:
    """The asset store, which can be slow or away."""

    def __init__(self, bench: Bench) -> None:
        self._assets: ObjectAssets = bench.assets
        self.gate: asyncio.Event | None = None
        self.away = False
        bench.runner._workshop._assets = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._assets, name)

    async def recall(self, key: str) -> Any:
        if self.away:
            raise AssetStoreUnavailable("the store is away")
        if self.gate is not None:
            await self.gate.wait()
        return await self._assets.recall(key)


async def test_a_call_that_waits_for_the_store_is_not_made_for_a_partition_that_went_away_meanwhile() -> None:
    bench = Bench(OneCall(), repeatable=False)
    store = Store(bench)
    written = await bench.announce(an_image())
    store.gate = asyncio.Event()
    bench.runner.take(written)
    bench.runner.start_due()
    await asyncio.sleep(0)

    bench.owned = False
    bench.runner.release()
    store.gate.set()
    await bench.run()

    assert bench.maker.calls == []


async def test_the_last_thing_before_a_paid_request_is_to_ask_whether_it_is_still_ours() -> None:
    bench = Bench(Tasks(), repeatable=False)
    asked: list[bool] = []

    async def submitting() -> str:
        bench.owned = False  # while the adapter prepares its order
        asked.append(await MAY_BUY.get()())
        return "task-1"

    bench.maker.answers = [submitting]
    bench.runner.take(await bench.announce(a_clip()))
    await bench.run()

    assert asked == [False]


async def test_a_call_waits_until_the_broker_confirms_that_its_partition_is_ours() -> None:
    bench = Bench(Tasks(), repeatable=False)
    allowed: list[bool] = []

    async def submitting() -> str:
        allowed.append(await MAY_BUY.get()())
        return "task-1"

    bench.confirmed = lambda: len(bench.asked_the_broker) >= 2
    bench.maker.answers = [submitting]
    bench.runner.take(await bench.announce(a_clip()))
    await bench.run()

    assert bench.asked_the_broker == [False, False, True]
    assert allowed == [True]


@pytest.mark.parametrize("says", [False, True], ids=["the broker says no", "the broker says yes, and late"])
async def test_a_call_whose_partition_went_away_while_the_broker_was_asked_may_not_be_made(
    says: object,
) -> None:
    bench = Bench(Tasks(), repeatable=False)
    allowed: list[bool] = []

    def confirmed() -> bool:
        bench.owned = False
        return bool(says)

    async def submitting() -> str:
        allowed.append(await MAY_BUY.get()())
        return "task-1"

    bench.confirmed = confirmed
    bench.maker.answers = [submitting]
    bench.runner.take(await bench.announce(a_clip()))
    await bench.run()

    assert allowed == [False]


async def test_a_call_that_was_withheld_is_made_when_its_partition_comes_back_untouched() -> None:
    bench = Bench(Tasks(), repeatable=False)

    async def gone() -> str:
        bench.owned = False
        raise NotAllowed("/tasks")

    bench.maker.answers = [gone, "task-1"]
    written = await bench.announce(a_clip())
    bench.runner.take(written)
    await bench.run()
    assert bench.told() == [SubmitIntended]

    bench.owned = True
    bench.runner.release()  # it went away, and nobody else has had it
    bench.runner.take(written)
    await bench.run()

    assert bench.told() == [SubmitIntended, JobSubmitted]


async def test_a_call_whose_word_came_too_late_to_leave_is_made_once_the_broker_answers_again() -> None:
    bench = Bench(Tasks(), repeatable=False)
    bench.maker.answers = [NotAllowed("/tasks"), NotAllowed("/tasks"), "task-1"]
    bench.runner.take(await bench.announce(a_clip()))
    await bench.run()

    assert bench.told() == [SubmitIntended, JobSubmitted]


async def test_a_store_that_is_away_before_the_call_asks_nobody_and_the_call_is_made_later() -> None:
    bench = Bench(OneCall(), repeatable=False)
    store = Store(bench)
    written = await bench.announce(an_image())
    store.away = True
    bench.runner.take(written)
    await bench.run()
    assert bench.told() == [SubmitIntended]

    store.away = False
    bench.clock.advance(AGAIN_SECONDS)
    await bench.run()

    assert bench.maker.calls == ["make"]
    assert bench.told() == [SubmitIntended, JobSucceeded]


async def test_an_order_that_cannot_read_its_picture_was_not_sent_and_is_made_later() -> None:
    bench = Bench(Tasks(), repeatable=False)
    bench.maker.answers = [AssetStoreUnavailable("the store is away"), "task-1"]
    bench.runner.take(await bench.announce(a_clip()))
    await bench.run()
    assert bench.told() == [SubmitIntended]

    bench.clock.advance(AGAIN_SECONDS)
    await bench.run()

    assert bench.told() == [SubmitIntended, JobSubmitted]


async def test_the_grace_of_a_list_begins_when_a_call_became_unclear_not_when_it_was_announced() -> None:
    bench = Bench(Tasks(), repeatable=False)
    announced = await bench.announce(a_clip())
    bench.owned = False  # a rebalance
    bench.runner.release()
    for _ in range(30):
        await asyncio.sleep(0.1)
        if not bench.runner.buying.awaits_announcement(announced.job_id):
            break
    bench.clock.advance(400)
    bench.owned = True
    bench.maker.answers = [OutcomeUnknown("read timeout"), *[Absent()] * 20]
    bench.runner.take(announced)
    await bench.run()

    job = await bench.learn(announced, SubmitOutcomeUnknown)
    for _ in range(11):
        bench.clock.advance(20)
        await bench.run()
    assert JobPostponed not in bench.told()
    assert job.unclear_at is not None
    assert job.unclear_at > START

    bench.clock.advance(20)
    await bench.run()
    assert bench.told()[-1] is JobPostponed


async def test_an_output_that_came_before_its_worker_died_is_found_before_anybody_is_asked() -> None:
    first, second = Bench(OneCall(), repeatable=False), Bench(OneCall(), repeatable=False)
    url = await first.assets.put(b"picture", media_type="image/png")
    job = an_image(offer=PRICED, status=JobStatus.RUNNING, submit=SubmitState.UNKNOWN, intended_at=START)
    key = f"made/{job.fingerprint[:2]}/{job.fingerprint}"
    made = {"output": {"url": url, "media_type": "image/png"}, "job_id": job.job_id, "attempt": 1}
    second.runner._workshop._assets = first.assets
    await first.assets.remember(key, made)

    second.runner.take(job)
    await second.run()

    (event,) = second.outbox.messages
    assert isinstance(event, JobSucceeded)
    assert job.evolve(event).tally.spent_usd == 0.15
    assert job.evolve(event).tally.orphaned == 0


async def test_a_search_that_ends_after_its_partition_went_away_says_nothing() -> None:
    old, new = Bench(Tasks(), repeatable=False), Bench(Tasks(), repeatable=False)
    row = a_clip(status=JobStatus.RUNNING, submit=SubmitState.UNKNOWN, intended_at=START, unclear_at=START)
    listing = asyncio.Event()

    async def slow() -> Absent:
        await listing.wait()
        return Absent()

    old.maker.answers = [slow]
    for bench in (old, new):
        bench.clock.advance(300)
    old.runner.take(row)
    old.runner.start_due()
    await asyncio.sleep(0)
    old.owned = False
    old.runner.release()
    new.maker.answers = ["task-7"]
    new.runner.take(row)
    new.runner.hint(row, "task-7")
    await new.run()

    listing.set()
    await old.run()

    assert new.told()[0] is JobSubmitted
    assert old.told() == []


async def test_a_search_that_ends_too_late_does_not_keep_anybody_from_polling_the_task_that_was_found() -> (
    None
):
    bench = Bench(Tasks(), repeatable=False)
    row = a_clip(status=JobStatus.RUNNING, submit=SubmitState.UNKNOWN, intended_at=START, unclear_at=START)
    listing = asyncio.Event()

    async def slow() -> Absent:
        await listing.wait()
        return Absent()

    bench.maker.answers = [slow, "polled"]
    bench.clock.advance(300)
    bench.runner.take(row)
    bench.runner.start_due()
    await asyncio.sleep(0)
    listing.set()
    await bench.run()
    assert bench.told() == [JobPostponed], "told of a row that says by now that the task is there"

    found = row.model_copy(
        update={
            "submit": SubmitState.ACCEPTED,
            "provider_task_id": "task-7",
            "submitted_at": bench.clock.now(),
            "version": row.version + 1,
        }
    )
    bench.runner.take(found)
    bench.clock.advance(30)
    await bench.run()

    assert bench.maker.calls[-1] == "poll"
