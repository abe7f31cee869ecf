"""What the job runner waits for: a provider that rests, an equal job, and a task of two days."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from models.errors import ErrorCode, OutcomeUnknown, ProviderFailure
from models.job import Job
from models.job_events import JobFailed, JobPostponed, JobStopped, PollStalled, SubmitIntended
from models.lifecycle import JobStatus, SubmitState
from models.ports import TaskReport
from models.work import Output, Source
from sceneloom.assets.errors import AssetStoreUnavailable
from sceneloom.assets.store import ObjectAssets, open_assets
from sceneloom.workshop.single_flight import LOOK_SECONDS
from sceneloom.workshop.supplier import Progress
from tests.fakes import START, MovedClock
from tests.floor import Floor, settle
from tests.runner.test_runner import House, a_clip, an_image

Opener = Callable[[], ObjectAssets]


@pytest.fixture(params=["memory", "folder"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    if request.param == "folder":
        return lambda: open_assets(str(tmp_path / "store"))
    shared = open_assets("memory://")
    return lambda: shared


class Studio(House):
    """Makes pictures that are really in the store."""

    def __init__(self, assets: ObjectAssets, *answers: Any) -> None:
        super().__init__()
        self.assets, self.answers = assets, list(answers)

    async def make(self, job: Job, *, progress: Progress) -> Output:
        await self._answer("make")
        url = await self.assets.put(job.job_id.encode(), media_type="image/png")
        return Output(url=url, media_type="image/png")


class Tasks(House):
    """Runs tasks that end when the test says so."""

    def __init__(self, assets: ObjectAssets, *, done_at: timedelta | None = None) -> None:
        super().__init__()
        self.assets, self.done_at, self.clock = assets, done_at, MovedClock()

    async def submit(self, job: Job) -> str:
        await self._answer("submit")
        return f"task of {job.job_id}"

    async def poll(self, job: Job) -> TaskReport:
        await self._answer("poll")
        return TaskReport(done=self.done_at is not None and self.clock.now() >= START + self.done_at)

    async def find(self, job: Job, *, taken: object) -> None:
        return None

    async def confirm(self, job: Job, named: str) -> str | None:
        return None

    async def take_back(self, job: Job) -> bool:
        await self._answer("take_back")
        return False

    async def collect(self, job: Job, report: TaskReport) -> Output:
        url = await self.assets.put(b"clip", media_type="video/mp4")
        return Output(url=url, media_type="video/mp4", seconds=5.0)


class Held:
    """An answer that comes when the test lets it."""

    def __init__(self, answer: Exception | None = None) -> None:
        self.called, self.go, self.answer = asyncio.Event(), asyncio.Event(), answer

    async def __call__(self) -> None:
        self.called.set()
        await self.go.wait()
        if self.answer is not None:
            raise self.answer


def of_project(number: int, job: Job | None = None, **changes: Any) -> Job:
    return (job or an_image()).model_copy(update={"project_id": f"p{number}", **changes})


def down(code: ErrorCode = ErrorCode.PROVIDER_UNAVAILABLE, **facts: Any) -> ProviderFailure:
    return ProviderFailure(code, **facts)


# -- a provider that rests


async def test_while_the_provider_rests_jobs_wait_unannounced_and_with_all_their_calls_left() -> None:
    clock, assets = MovedClock(), open_assets("memory://")
    maker = Studio(assets, *[down()] * 5)
    floor = Floor(maker, clock=clock, assets=assets, parallel=1)
    jobs = [
        of_project(n, request=an_image().request.model_copy(update={"prompt": f"sea {n}"})) for n in range(9)
    ]
    for job in jobs:
        floor.begin(job)
    await settle(floor)

    assert maker.calls == ["make"] * 5
    assert len(floor.of(SubmitIntended)) == len(floor.of(JobPostponed)) == 5
    assert sorted(floor.row(job).postponed for job in jobs) == [0] * 4 + [1] * 5
    clock.advance(29)
    await settle(floor)
    assert maker.calls == ["make"] * 5

    clock.advance(5)
    await settle(floor)
    clock.advance(10)
    await settle(floor)
    assert {floor.row(job).status for job in jobs} == {JobStatus.SUCCEEDED}
    assert maker.calls == ["make"] * 14


async def test_a_trial_that_fails_costs_one_job_one_call_and_the_others_nothing() -> None:
    clock, assets = MovedClock(), open_assets("memory://")
    maker = Studio(assets, *[down()] * 100)
    floor = Floor(maker, clock=clock, assets=assets, parallel=4)
    jobs = [
        of_project(n, request=an_image().request.model_copy(update={"prompt": f"sea {n}"})) for n in range(8)
    ]
    for job in jobs:
        floor.begin(job)
    await settle(floor)
    before = len(maker.calls)

    clock.advance(34)
    await settle(floor)

    assert len(maker.calls) == before + 1


async def test_outcomes_that_nobody_knows_open_the_breaker_too() -> None:
    clock, assets = MovedClock(), open_assets("memory://")
    maker = Studio(assets, *[OutcomeUnknown("timeout")] * 5)
    floor = Floor(maker, clock=clock, assets=assets, parallel=1)
    for n in range(8):
        floor.begin(of_project(n, request=an_image().request.model_copy(update={"prompt": f"sea {n}"})))

    await settle(floor)

    assert maker.calls == ["make"] * 5


async def test_one_limited_job_keeps_the_others_from_meeting_the_same_limit() -> None:
    clock, assets = MovedClock(), open_assets("memory://")
    maker = Studio(assets, down(ErrorCode.PROVIDER_RATE_LIMITED, retry_after=40.0))
    floor = Floor(maker, clock=clock, assets=assets, parallel=1)
    jobs = [
        of_project(n, request=an_image().request.model_copy(update={"prompt": f"sea {n}"})) for n in range(4)
    ]
    for job in jobs:
        floor.begin(job)
    await settle(floor)
    assert maker.calls == ["make"]

    clock.advance(45)
    await settle(floor)

    assert {floor.row(job).status for job in jobs} == {JobStatus.SUCCEEDED}
    assert sorted(floor.row(job).postponed for job in jobs) == [0, 0, 0, 1]


async def test_what_is_in_the_store_is_served_while_the_provider_rests() -> None:
    clock, assets = MovedClock(), open_assets("memory://")
    maker = Studio(assets)
    floor = Floor(maker, clock=clock, assets=assets)
    floor.begin(of_project(1))
    await settle(floor)
    for _ in range(5):
        floor.workshop.learned(an_image(), down(), clock.now())

    floor.begin(of_project(2))
    await settle(floor)

    assert floor.row(of_project(2)).source is Source.CACHED


async def test_after_an_hour_jobs_fail_visibly_instead_of_waiting_for_ever() -> None:
    clock, assets = MovedClock(), open_assets("memory://")
    maker = Studio(assets, *[down()] * 1000)
    floor = Floor(maker, clock=clock, assets=assets, parallel=1)
    jobs = [
        of_project(n, request=an_image().request.model_copy(update={"prompt": f"sea {n}"})) for n in range(40)
    ]
    for job in jobs:
        floor.begin(job)
    for _ in range(80):
        await settle(floor)
        clock.advance(60)
    await settle(floor)

    assert {floor.row(job).status for job in jobs} == {JobStatus.FAILED}
    assert {floor.row(job).error_code for job in jobs} == {ErrorCode.PROVIDER_UNAVAILABLE}
    assert len(maker.calls) < 30


# -- an equal job


async def test_equal_paid_pictures_on_two_workers_at_the_same_moment_are_bought_once(opened: Opener) -> None:
    clock, held = MovedClock(), Held()
    first = Floor(Studio(opened(), held), clock=clock, assets=opened())
    second = Floor(Studio(opened(), held), clock=clock, assets=opened())
    first.begin(of_project(1))
    second.begin(of_project(2))
    await settle(first, second, until=held.called.is_set)
    for _ in range(5):
        clock.advance(2)
        await settle(
            first, second, until=lambda: len(first.runner._working) + len(second.runner._working) == 1
        )

    held.go.set()
    await settle(first, second)
    clock.advance(2)
    await settle(first, second)

    made = [first.row(of_project(1)), second.row(of_project(2))]
    assert {job.status for job in made} == {JobStatus.SUCCEEDED}
    assert sorted(str(job.source) for job in made) == ["cached", "made"]
    assert len(first.supplier.maker.calls + second.supplier.maker.calls) == 1  # type: ignore[union-attr]
    assert len(first.of(SubmitIntended) + second.of(SubmitIntended)) == 1


async def started(opened: Opener, answer: Held, clock: MovedClock) -> Floor:
    """Return a worker that is buying the picture of project 1."""
    floor = Floor(Studio(opened(), answer), clock=clock, assets=opened())
    floor.begin(of_project(1))
    await settle(floor, until=answer.called.is_set)
    return floor


async def waiting(opened: Opener, clock: MovedClock, **supplier: Any) -> Floor:
    """Return a worker on which project 2 waits for the same picture."""
    floor = Floor(Studio(opened()), clock=clock, assets=opened(), **supplier)
    floor.begin(of_project(2))
    await settle(floor)
    assert floor.messages == []
    return floor


async def test_when_the_first_fails_the_one_that_waited_buys_itself(opened: Opener) -> None:
    clock, held = MovedClock(), Held(down(ErrorCode.MODERATION_REJECTED))
    first = await started(opened, held, clock)
    second = await waiting(opened, clock)

    held.go.set()
    await settle(first)
    clock.advance(2)
    await settle(second)

    assert first.row(of_project(1)).status is JobStatus.FAILED
    assert second.row(of_project(2)).source is Source.MADE


async def test_while_the_first_is_only_postponed_the_other_goes_on_waiting(opened: Opener) -> None:
    clock, held = MovedClock(), Held(down())
    first = await started(opened, held, clock)
    second = await waiting(opened, clock)

    held.go.set()
    await settle(first)
    clock.advance(2)
    await settle(first, second)

    assert first.row(of_project(1)).source is Source.MADE
    clock.advance(2)
    await settle(second)
    assert second.row(of_project(2)).source is Source.CACHED


async def test_when_the_first_is_cancelled_before_its_call_the_other_buys(opened: Opener) -> None:
    clock = MovedClock()
    first = Floor(
        Studio(opened(), down(ErrorCode.PROVIDER_RATE_LIMITED, retry_after=600.0)),
        clock=clock,
        assets=opened(),
    )
    first.begin(of_project(1))
    await settle(first)
    second = await waiting(opened, clock)

    await first.cancel(of_project(1))
    await settle(first)
    clock.advance(2)
    await settle(second)

    assert second.row(of_project(2)).source is Source.MADE


async def test_who_waits_for_an_equal_job_keeps_no_place_from_others(opened: Opener) -> None:
    clock, held = MovedClock(), Held()
    await started(opened, held, clock)
    second = await waiting(opened, clock, parallel=1)

    other = of_project(3, request=an_image().request.model_copy(update={"prompt": "a hill"}))
    second.begin(other)
    await settle(second)

    assert second.row(other).source is Source.MADE
    held.go.set()


async def test_a_task_whose_worker_died_keeps_its_lease_on_the_next_one(opened: Opener) -> None:
    clock = MovedClock()
    dead = Floor(Tasks(opened()), clock=clock, assets=opened())
    dead.begin(of_project(1, a_clip()))
    await settle(dead)
    row = dead.row(of_project(1, a_clip()))
    assert row.submit is SubmitState.ACCEPTED

    maker = Tasks(opened(), done_at=timedelta(seconds=15))
    maker.clock = clock
    alive = Floor(maker, clock=clock, assets=opened())
    alive.begin(row)
    alive.begin(of_project(2, a_clip()))
    for _ in range(12):
        await settle(alive)
        clock.advance(2)

    assert "submit" not in maker.calls
    assert alive.row(of_project(1, a_clip())).source is Source.MADE
    assert alive.row(of_project(2, a_clip())).source is Source.CACHED


async def test_who_wants_no_cache_neither_looks_nor_waits(opened: Opener) -> None:
    clock, held = MovedClock(), Held()
    await started(opened, held, clock)
    second = Floor(Studio(opened()), clock=clock, assets=opened())

    second.begin(of_project(2, use_cache=False))
    await settle(second)

    assert second.row(of_project(2)).source is Source.MADE
    held.go.set()


async def test_local_work_takes_no_leases(tmp_path: Path) -> None:
    assets = open_assets(str(tmp_path))
    floor = Floor(Studio(assets), clock=MovedClock(), assets=assets, repeatable=True)
    floor.begin(of_project(1))
    await settle(floor)

    assert floor.row(of_project(1)).source is Source.MADE
    assert not (tmp_path / "entries" / "claims").exists()


async def test_a_store_that_is_away_neither_loses_the_job_nor_lets_it_buy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, assets = MovedClock(), open_assets("memory://")
    floor = Floor(Studio(assets), clock=clock, assets=assets)

    async def away(*_: object) -> bool:
        raise AssetStoreUnavailable("the store is away")

    with monkeypatch.context() as patch:
        patch.setattr(assets, "claim", away)
        floor.begin(of_project(1))
        for _ in range(5):
            await settle(floor)
            clock.advance(5)
        assert floor.messages == []

    await settle(floor)
    assert floor.row(of_project(1)).source is Source.MADE


# -- a task of two days


async def through(floor: Floor, clock: MovedClock, *, most: timedelta) -> None:
    """Move the clock from one due moment to the next, as long as the job is open and *most* is not over."""
    while (first := floor.runner.agenda.first) is not None and first <= START + most:
        clock.time = max(clock.time, first)
        floor.runner.start_due()
        while floor.runner._working:
            await asyncio.wait(floor.runner._working.values())
        await floor.work()


async def test_a_task_of_47_hours_is_polled_as_the_schedule_says_and_collected() -> None:
    assets, hours = open_assets("memory://"), timedelta(hours=1)
    maker = Tasks(assets, done_at=47 * hours)
    clock = maker.clock
    floor = Floor(maker, clock=clock, assets=assets, deadline_seconds=172_800)
    job = of_project(1, a_clip())
    floor.begin(job)
    await settle(floor)

    await through(floor, clock, most=49 * hours)

    assert floor.row(job).source is Source.MADE
    assert len(floor.of(PollStalled)) == 1
    # 5 polls in the first two minutes, then one a minute; the last is the first that finds it done.
    assert maker.calls.count("poll") in {5 + 47 * 60 - 2, 5 + 47 * 60 - 2 + 1}
    assert timedelta() <= clock.now() - START - 47 * hours <= timedelta(seconds=60)


async def test_a_task_without_end_is_given_up_at_its_deadline_of_48_hours_and_not_before() -> None:
    assets, hours = open_assets("memory://"), timedelta(hours=1)
    maker = Tasks(assets)
    clock = maker.clock
    floor = Floor(maker, clock=clock, assets=assets, deadline_seconds=172_800)
    job = of_project(1, a_clip())
    floor.begin(job)
    await settle(floor)

    await through(floor, clock, most=48 * hours - timedelta(seconds=1))
    assert floor.row(job).status is JobStatus.DELAYED
    await through(floor, clock, most=49 * hours)

    assert floor.row(job).error_code is ErrorCode.PROVIDER_TIMEOUT
    assert len(floor.of(PollStalled)) == len(floor.of(JobFailed)) == 1
    assert floor.of(JobStopped) == []
    assert timedelta() <= clock.now() - START - 48 * hours <= timedelta(seconds=60)


async def test_a_lease_ends_with_its_job_also_right_after_a_rebalance() -> None:
    clock, assets = MovedClock(), open_assets("memory://")
    maker = Tasks(assets)
    floor = Floor(maker, clock=clock, assets=assets)
    first, second = (a_clip(project_id=name) for name in ("p1", "p2"))
    floor.begin(first)
    await settle(floor)
    running = floor.row(first)
    floor.runner.release()  # the partitions are being handed out again

    failed = JobFailed(
        event_id="e",
        project_id=running.project_id,
        job_id=running.job_id,
        attempt=running.attempt,
        call=running.postponed,
        submit=running.submit,
        occurred_at=clock.now(),
        error_code=ErrorCode.MODERATION_REJECTED,
    )
    await floor.agent.handle(failed, origin="o")
    floor.begin(second)
    await settle(floor)  # it may look before the lease is released, which happens beside all else
    clock.advance(LOOK_SECONDS)
    await settle(floor)

    assert maker.calls.count("submit") == 2
