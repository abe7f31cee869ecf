"""Leases in the asset store: of equal jobs, one buys at a time."""

import asyncio
import random
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from models.job import Job
from models.work import ImageRequest, Offer
from sceneloom.assets.errors import AssetStoreUnavailable
from sceneloom.assets.store import ObjectAssets, open_assets
from sceneloom.workshop.single_flight import MARGIN, SingleFlight
from tests.fakes import START

NEEDS = timedelta(minutes=10)
LONG_AFTER = START + 2 * (NEEDS + MARGIN)

Opener = Callable[[], ObjectAssets]
"""Opens the one store of a test, as each worker does for itself."""


@pytest.fixture(params=["memory", "folder"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    if request.param == "folder":
        return lambda: open_assets(str(tmp_path / "store"))
    shared = open_assets("memory://")
    return lambda: shared


def a_job(number: int = 1, *, attempt: int = 1, prompt: str = "sea") -> Job:
    return Job(
        project_id=f"p{number}",
        scene_id="scene-001",
        user_id="u1",
        attempt=attempt,
        offer=Offer(provider="house", model="m1", cost_usd=0.15),
        request=ImageRequest(prompt=prompt, width=64, height=64),
        created_at=START,
    )


async def winners(opened: Opener, jobs: list[Job], now: datetime) -> list[Job]:
    """Let each job claim through a store of its own, all at once; return those that may buy."""
    won = await asyncio.gather(*(SingleFlight(opened()).claim(job, now, needs=NEEDS) for job in jobs))
    return [job for job, may in zip(jobs, won, strict=True) if may]


async def test_of_equal_jobs_at_the_same_moment_exactly_one_may_buy(opened: Opener) -> None:
    jobs = [a_job(number) for number in range(20)]

    assert len(await winners(opened, jobs, START)) == 1


async def test_jobs_that_differ_do_not_wait_for_one_another(opened: Opener) -> None:
    jobs = [a_job(number, prompt=f"sea {number}") for number in range(5)]

    assert await winners(opened, jobs, START) == jobs


async def test_the_lease_is_the_jobs_so_another_worker_goes_on_with_it(opened: Opener) -> None:
    assert await winners(opened, [a_job(1)], START) == [a_job(1)]

    assert await winners(opened, [a_job(2)], START) == []
    assert await winners(opened, [a_job(1)], START) == [a_job(1)]


async def test_after_a_release_exactly_one_of_those_that_waited_may_buy(opened: Opener) -> None:
    await winners(opened, [a_job(0)], START)
    waiting = [a_job(number) for number in range(1, 20)]
    assert await winners(opened, waiting, START) == []

    await SingleFlight(opened()).release(a_job(0))

    assert len(await winners(opened, waiting, START)) == 1
    assert len(await winners(opened, waiting, START)) == 1


async def test_a_lease_whose_time_is_up_is_taken_by_exactly_one_and_lost_for_its_owner(
    opened: Opener,
) -> None:
    await winners(opened, [a_job(0)], START)
    waiting = [a_job(number) for number in range(1, 20)]
    assert await winners(opened, waiting, LONG_AFTER - timedelta(seconds=1)) == []

    assert len(await winners(opened, waiting, LONG_AFTER)) == 1
    assert await winners(opened, [a_job(0)], LONG_AFTER) == []


async def test_an_owner_that_is_held_up_renews_its_lease_before_it_calls(opened: Opener) -> None:
    await winners(opened, [a_job(0)], START)
    late = LONG_AFTER - timedelta(minutes=1)

    assert await winners(opened, [a_job(0)], late) == [a_job(0)]

    assert await winners(opened, [a_job(1)], late + NEEDS + MARGIN) == []


async def test_the_next_attempt_has_a_lease_of_its_own_which_the_earlier_one_cannot_release(
    opened: Opener,
) -> None:
    flight = SingleFlight(opened())
    await winners(opened, [a_job(0)], START)
    retried = a_job(0, attempt=2)
    assert await winners(opened, [retried], START) == [retried]

    await flight.release(a_job(0))

    assert await winners(opened, [a_job(1)], START) == []
    await flight.release(retried)
    assert await winners(opened, [a_job(1)], START) == [a_job(1)]


async def test_who_holds_no_lease_releases_nothing(opened: Opener) -> None:
    await SingleFlight(opened()).release(a_job(1))
    await winners(opened, [a_job(0)], START)
    await SingleFlight(opened()).release(a_job(1))

    assert await winners(opened, [a_job(1)], START) == []


class Shuffled(ObjectAssets):
    """The store of a test, in which other tasks may come first before and after every step."""

    def __init__(self, assets: ObjectAssets, chance: random.Random) -> None:
        self._assets, self._chance = assets, chance

    async def _others(self) -> None:
        for _ in range(self._chance.randrange(4)):
            await asyncio.sleep(0)

    async def claim(self, key: str, entry: Mapping[str, object]) -> bool:
        await self._others()
        won = await self._assets.claim(key, entry)
        await self._others()
        return won

    async def recall(self, key: str) -> Mapping[str, object] | None:
        await self._others()
        entry = await self._assets.recall(key)
        await self._others()
        return entry

    async def remember(self, key: str, entry: Mapping[str, object]) -> None:
        await self._others()
        await self._assets.remember(key, entry)


@pytest.mark.parametrize("seed", range(20))
async def test_whatever_comes_first_two_never_buy_at_once_and_all_come_to_their_turn(seed: int) -> None:
    shared, chance = open_assets("memory://"), random.Random(seed)  # noqa: S311 -- an order of events that can be played again
    buying: set[str] = set()
    served: list[str] = []

    async def work(job: Job) -> None:
        flight = SingleFlight(Shuffled(shared, chance))
        while not await flight.claim(job, START, needs=NEEDS):  # noqa: ASYNC110 -- it polls, as the runner does
            await asyncio.sleep(0)
        buying.add(job.job_id)
        for _ in range(chance.randrange(5)):
            await asyncio.sleep(0)
            assert buying == {job.job_id}
        buying.discard(job.job_id)
        served.append(job.job_id)
        await flight.release(job)

    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        for number in range(6):
            tasks.create_task(work(a_job(number)))

    assert sorted(served) == [f"p{number}/scene-001/image" for number in range(6)]


class Hesitant(ObjectAssets):
    """The store of a worker that stops right before it takes a lease which it has seen to be over."""

    def __init__(self, assets: ObjectAssets) -> None:
        self._assets = assets
        self.recall = assets.recall  # type: ignore[method-assign]
        self.stopped, self.go = asyncio.Event(), asyncio.Event()

    async def claim(self, key: str, entry: Mapping[str, object]) -> bool:
        self.stopped.set()
        await self.go.wait()
        return await self._assets.claim(key, entry)


async def test_who_takes_a_lease_late_loses_to_who_took_it_meanwhile(opened: Opener) -> None:
    await winners(opened, [a_job(0)], START)
    store = Hesitant(opened())
    late = asyncio.create_task(SingleFlight(store).claim(a_job(1), LONG_AFTER, needs=NEEDS))
    await store.stopped.wait()

    await SingleFlight(opened()).release(a_job(0))
    assert await winners(opened, [a_job(2)], LONG_AFTER) == [a_job(2)]
    store.go.set()

    assert await late is False


class Forgetful(ObjectAssets):
    """A store whose answer to a claim gets lost, so that the client tries again and is told False."""

    def __init__(self, assets: ObjectAssets) -> None:
        self._assets = assets
        self.recall = assets.recall  # type: ignore[method-assign]

    async def claim(self, key: str, entry: Mapping[str, object]) -> bool:
        await self._assets.claim(key, entry)
        return False


async def test_a_claim_whose_answer_was_lost_is_recognised_as_ones_own(opened: Opener) -> None:
    flight = SingleFlight(Forgetful(opened()))

    assert await flight.claim(a_job(0), START, needs=NEEDS)
    assert not await flight.claim(a_job(1), START, needs=NEEDS)


async def test_an_entry_that_nobody_can_read_binds_nobody(tmp_path: Path) -> None:
    store = open_assets(str(tmp_path))
    job = a_job(0)
    folder = tmp_path / "entries" / "claims" / job.fingerprint[:2] / job.fingerprint
    folder.mkdir(parents=True)
    (folder / "0.json").write_text("{ half an ent")

    assert await winners(lambda: store, [a_job(0)], START) == [a_job(0)]
    assert await winners(lambda: store, [a_job(1)], START) == []


class Away(ObjectAssets):
    """A store that cannot be reached."""

    def __init__(self) -> None:
        pass

    async def recall(self, key: str) -> Mapping[str, object] | None:
        raise AssetStoreUnavailable("the store is away")


async def test_a_store_that_is_away_lets_nobody_buy_and_a_release_does_not_fail() -> None:
    flight = SingleFlight(Away())

    with pytest.raises(AssetStoreUnavailable):
        await flight.claim(a_job(0), START, needs=NEEDS)
    with capture_logs() as logs:
        await flight.release(a_job(0))

    assert [line["event"] for line in logs] == ["single_flight.not_released"]
