"""The job runner, on fakes and a moved clock."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from typing import Any

import pytest

from models.errors import ErrorCode, ProviderFailure
from models.job import Job
from models.job_events import (
    JobFailed,
    JobPostponed,
    JobStillRunning,
    JobStopped,
    JobSubmitted,
    JobSucceeded,
    PollStalled,
    SubmitIntended,
    SubmitOutcomeUnknown,
    SubmitUnresolved,
)
from models.lifecycle import JobStatus, SubmitState
from models.policy import POLL_SCHEDULE
from models.ports import Absent, Adopted, Reconciled, Several, TaskReport
from models.shapes import AspectRatio
from models.work import ClipRequest, Decision, ImageRequest, JobKind, Offer, Output, Source, Tally
from sceneloom.assets.store import open_assets
from sceneloom.runner import JobRunner
from sceneloom.workshop.supplier import OutcomeUnknown, Progress
from sceneloom.workshop.workshop import Supplier, Workshop
from tests.fakes import START, MovedClock, Outbox

OUTPUT = Output(url="mem://out", media_type="image/png")


class House:
    """A provider that does what the test tells it, and counts what it was asked."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.answers: list[Any] = []

    async def _answer(self, call: str) -> Any:
        self.calls.append(call)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            return await answer()
        return answer


class OneCall(House):
    async def make(self, job: Job, *, progress: Progress) -> Output:
        await self._answer("make")
        return OUTPUT


class Tasks(House):
    async def submit(self, job: Job) -> str:
        return str(await self._answer("submit") or "task-1")

    async def poll(self, job: Job) -> TaskReport:
        report = await self._answer("poll")
        return report if isinstance(report, TaskReport) else TaskReport()

    async def find(self, job: Job, *, taken: Collection[str]) -> Reconciled | None:
        found: Reconciled | None = await self._answer("find")
        return found

    async def confirm(self, job: Job, named: str) -> str | None:
        task_id: str | None = await self._answer(f"confirm {named}")
        return task_id

    async def take_back(self, job: Job) -> bool:
        return bool(await self._answer("take_back"))

    async def collect(self, job: Job, report: TaskReport) -> Output:
        await self._answer("collect")
        return OUTPUT


class Bench:
    """A runner with its surroundings."""

    def __init__(
        self,
        maker: OneCall | Tasks,
        *,
        repeatable: bool,
        polls: Sequence[float] = POLL_SCHEDULE,
        confirm_seconds: float = 86_400,
        kind: JobKind | None = None,
    ) -> None:
        self.clock, self.outbox, self.maker = MovedClock(), Outbox(), maker
        self.durable_calls = 0
        self.set_back = 0.0
        """By how many seconds somebody has set the wall clock back; below zero, forward."""
        self.owned = True
        self.asked_the_broker: list[bool] = []
        self.confirmed: Callable[[], bool] = lambda: True
        self.taken: set[str] = set()
        kind = kind or (JobKind.CLIP if isinstance(maker, Tasks) else JobKind.IMAGE)
        supplier = Supplier(
            kind=kind,
            offer=Offer(provider="house", model="m1"),
            maker=maker,
            repeatable=repeatable,
            poll_schedule=polls,
        )
        self.assets = open_assets("memory://")
        self.runner = JobRunner(
            workshop=Workshop(suppliers=[supplier], usual={kind: "house"}, assets=self.assets),
            publisher=self.outbox,
            clock=self.clock,
            durable=self.durable,
            is_member=self.is_member,
            owns=lambda _: self.owned,
            taken=lambda: self.taken,
            confirm_seconds=confirm_seconds,
            steady=lambda: (self.clock.now() - START).total_seconds() + self.set_back,
        )

    async def durable(self) -> None:
        self.durable_calls += 1

    async def is_member(self) -> bool:
        self.asked_the_broker.append(self.confirmed())
        return self.asked_the_broker[-1]

    async def run(self) -> None:
        """Let everything that is due happen; an announced call waits until the test has written it."""
        self.runner.start_due()
        while tasks := self._busy():
            await asyncio.wait(tasks, timeout=0.02)
            self.runner.start_due()

    def _busy(self) -> list[asyncio.Task[None]]:
        waits = self.runner.buying.awaits_announcement
        return [task for job, task in self.runner._working.items() if not waits(job)]

    async def announced(self, job: Job) -> SubmitIntended:
        """Let the runner take *job*, and return the announcement of its call."""
        self.runner.take(job)
        await self.run()
        return self.outbox.of(SubmitIntended)[-1]

    async def announce(self, job: Job) -> Job:
        """Let the runner take *job* and announce its call, and return it as the scenes agent writes it."""
        return job.evolve(await self.announced(job))

    async def learn(self, job: Job, kind: type[Any]) -> Job:
        """Return *job* as the scenes agent writes it after the latest event of *kind*, and hand it back."""
        written = job.evolve(self.outbox.of(kind)[-1])
        self.runner.take(written)
        await self.run()
        return written

    def told(self) -> list[type[Any]]:
        return [type(message) for message in self.outbox.messages]


def an_image(**changes: Any) -> Job:
    return Job(
        project_id="p1",
        scene_id="scene-001",
        user_id="u1",
        offer=Offer(provider="house", model="m1"),
        request=ImageRequest(prompt="sea", width=64, height=64),
        created_at=START,
    ).model_copy(update=changes)


def a_clip(**changes: Any) -> Job:
    request = ClipRequest(prompt="sea", aspect_ratio=AspectRatio.SQUARE, duration_seconds=5.0)
    return an_image(request=request, **changes)


def accepted(**changes: Any) -> Job:
    return a_clip(
        status=JobStatus.RUNNING,
        submit=SubmitState.ACCEPTED,
        provider_task_id="task-1",
        submitted_at=START,
        **changes,
    )


async def test_a_local_job_is_made_at_once_and_reported() -> None:
    bench = Bench(OneCall(), repeatable=True)

    bench.runner.take(an_image())
    await bench.run()

    (event,) = bench.outbox.messages
    assert isinstance(event, JobSucceeded)
    assert event.source is Source.MADE


@pytest.mark.parametrize("maker", [OneCall, Tasks])
async def test_a_call_that_is_free_and_has_no_clear_end_is_made_again(maker: type[OneCall | Tasks]) -> None:
    bench = Bench(maker(), repeatable=True)
    bench.maker.answers = [OutcomeUnknown("the line broke")]

    bench.runner.take(an_image() if maker is OneCall else await bench.announce(a_clip()))
    await bench.run()

    last = bench.outbox.messages[-1]
    assert isinstance(last, JobPostponed)
    assert last.error_code is ErrorCode.PROVIDER_UNAVAILABLE


async def test_a_job_taken_twice_is_made_once() -> None:
    bench = Bench(OneCall(), repeatable=True)

    bench.runner.take(an_image())
    bench.runner.take(an_image())
    await bench.run()
    bench.runner.take(an_image())
    await bench.run()

    assert bench.maker.calls == ["make"]


async def test_nothing_is_bought_before_the_intent_is_written_and_durable() -> None:
    bench = Bench(OneCall(), repeatable=False)

    written = await bench.announce(an_image())
    assert bench.told() == [SubmitIntended]
    assert bench.maker.calls == []

    bench.runner.take(written)
    await bench.run()
    assert bench.durable_calls == 1
    assert bench.told() == [SubmitIntended, JobSucceeded]


async def test_nothing_is_bought_for_a_partition_that_has_moved_away() -> None:
    bench = Bench(OneCall(), repeatable=False)
    written = await bench.announce(an_image())

    bench.owned = False
    bench.runner.take(written)
    await bench.run()

    assert bench.maker.calls == []


async def test_an_intent_of_a_dead_worker_is_an_unknown_outcome_and_not_called_again() -> None:
    bench = Bench(OneCall(), repeatable=False)

    bench.runner.take(an_image(status=JobStatus.RUNNING, submit=SubmitState.INTENDED))
    await bench.run()

    assert bench.told() == [SubmitOutcomeUnknown]
    assert bench.maker.calls == []


def unclear(job: Job) -> Job:
    return job.model_copy(
        update={"status": JobStatus.RUNNING, "submit": SubmitState.UNKNOWN, "intended_at": START}
    )


async def test_an_unclear_call_that_nobody_can_look_up_waits_a_day_for_a_person_and_fails_visibly() -> None:
    bench = Bench(OneCall(), repeatable=False)

    bench.runner.take(unclear(an_image()))
    await bench.run()
    (asked,) = bench.outbox.of(SubmitUnresolved)
    assert asked.until == START + timedelta(days=1)
    await bench.learn(unclear(an_image()), SubmitUnresolved)
    bench.clock.advance(86_399)
    await bench.run()
    assert bench.told() == [SubmitUnresolved]

    bench.clock.advance(1)
    await bench.run()

    assert bench.maker.calls == []
    (event,) = bench.outbox.of(JobFailed)
    assert event.error_code is ErrorCode.SUBMIT_UNKNOWN


async def test_where_nobody_is_to_be_asked_an_unclear_call_fails_at_once() -> None:
    bench = Bench(OneCall(), repeatable=False, confirm_seconds=0)

    bench.runner.take(unclear(an_image()))
    await bench.run()

    (event,) = bench.outbox.messages
    assert isinstance(event, JobFailed)
    assert event.error_code is ErrorCode.SUBMIT_UNKNOWN


async def test_a_call_that_a_person_approves_is_made_again() -> None:
    bench = Bench(OneCall(), repeatable=False)
    bench.runner.take(unclear(an_image()))
    await bench.run()
    asked = await bench.learn(unclear(an_image()), SubmitUnresolved)

    approved = asked.resolve(Decision.RESEND, attempt=1, call=0, task_id=None, at=bench.clock.now())
    written = approved.evolve(await bench.announced(approved))
    bench.runner.take(written)
    await bench.run()

    assert bench.maker.calls == ["make"]
    assert bench.told() == [SubmitUnresolved, SubmitIntended, JobSucceeded]


async def test_a_lost_task_that_the_list_shows_is_adopted() -> None:
    bench = Bench(Tasks(), repeatable=False)
    bench.maker.answers = [Absent(), Adopted("task-9", certain=True)]

    bench.runner.take(unclear(a_clip()))
    await bench.run()
    assert bench.told() == []

    bench.clock.advance(20)
    await bench.run()
    (event,) = bench.outbox.messages
    assert isinstance(event, JobSubmitted)
    assert event.provider_task_id == "task-9"


async def test_a_lost_task_is_ordered_again_only_when_the_list_had_time_to_show_it() -> None:
    bench = Bench(Tasks(), repeatable=False)
    bench.maker.answers = [Absent()] * 20

    bench.runner.take(unclear(a_clip()))
    for _ in range(12):
        await bench.run()
        bench.clock.advance(20)
    assert bench.told() == []

    await bench.run()
    assert bench.told() == [JobPostponed]


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        pytest.param(Several(("t1", "t2")), 240, id="several tasks fit"),
        pytest.param(ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE), 600, id="the list cannot be read"),
    ],
)
async def test_a_list_that_does_not_tell_leads_to_a_question_and_no_second_order(
    answer: object, seconds: int
) -> None:
    bench = Bench(Tasks(), repeatable=False)
    bench.maker.answers = [answer] * 100

    bench.runner.take(unclear(a_clip()))
    while not bench.told():
        await bench.run()
        bench.clock.advance(20)

    assert set(bench.maker.calls) == {"find"}
    assert bench.told() == [SubmitUnresolved]
    assert bench.clock.now() == START + timedelta(seconds=seconds + 20)


async def test_a_call_that_was_never_accepted_is_made_five_times_at_most_and_leaves_no_orphan() -> None:
    bench = Bench(Tasks(), repeatable=False)
    bench.maker.answers = [Absent()]
    lost = unclear(a_clip(postponed=4, offer=Offer(provider="house", model="m1", cost_usd=0.15)))

    bench.clock.advance(240)
    bench.runner.take(lost)
    await bench.run()

    (event,) = bench.outbox.of(JobFailed)
    failed = lost.evolve(event)
    assert failed.error_code is ErrorCode.PROVIDER_UNAVAILABLE
    assert failed.tally == Tally()


def cancelled(job: Job) -> Job:
    return job.model_copy(update={"offer": Offer(provider="house", model="m1", cost_usd=0.15)}).cancel()


@pytest.mark.parametrize(("answer", "orphans"), [(True, 0), (False, 1)])
async def test_the_task_of_a_cancelled_job_is_taken_back_or_counts_as_an_orphan(
    *, answer: bool, orphans: int
) -> None:
    bench = Bench(Tasks(), repeatable=False)
    bench.maker.answers = [answer]
    job = cancelled(accepted())

    bench.runner.take(job)
    await bench.run()

    assert bench.maker.calls == ["take_back"]
    (event,) = bench.outbox.of(JobStopped)
    settled = job.evolve(event)
    assert settled.is_settled
    assert settled.tally.orphaned == orphans


async def test_a_provider_that_is_away_is_asked_again_to_take_a_task_back_until_the_deadline() -> None:
    bench = Bench(Tasks(), repeatable=False)
    bench.maker.answers = [ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE)] * 100
    bench.runner.take(cancelled(accepted()))

    for _ in range(29):
        await bench.run()
        bench.clock.advance(20)
    assert bench.told() == []
    bench.clock.advance(20)
    await bench.run()

    (event,) = bench.outbox.of(JobStopped)
    assert event.billed


async def test_a_call_that_was_announced_and_not_made_when_its_job_was_cancelled_cost_nothing() -> None:
    bench = Bench(Tasks(), repeatable=False)
    written = await bench.announce(a_clip(offer=Offer(provider="house", model="m1", cost_usd=0.15)))
    job = written.cancel()

    bench.runner.take(job)
    await bench.run()

    assert bench.maker.calls == []
    (event,) = bench.outbox.of(JobStopped)
    assert job.evolve(event).tally == Tally()


async def test_the_answer_to_a_paid_call_counts_though_its_job_was_cancelled_meanwhile() -> None:
    bench = Bench(Tasks(), repeatable=False)
    let_go, called = asyncio.Event(), asyncio.Event()

    async def slow() -> str:
        called.set()
        await let_go.wait()
        return "task-7"

    bench.maker.answers = [slow]
    written = await bench.announce(a_clip(offer=Offer(provider="house", model="m1", cost_usd=0.15)))
    bench.runner.take(written)
    await called.wait()
    job = written.cancel()
    bench.runner.take(job)
    let_go.set()
    await bench.run()
    (submitted,) = bench.outbox.of(JobSubmitted)
    bench.maker.answers = [True]
    bench.runner.take(job.evolve(submitted))
    await bench.run()

    assert bench.maker.calls == ["submit", "take_back"]
    told: list[type[Any]] = [SubmitIntended, JobSubmitted, JobStopped]
    assert bench.told() == told


async def test_an_unclear_call_of_a_cancelled_job_is_looked_for_and_then_stopped() -> None:
    bench = Bench(Tasks(), repeatable=False)
    bench.maker.answers = [Adopted("task-9", certain=True), True]
    job = cancelled(unclear(a_clip()))

    bench.runner.take(job)
    await bench.run()
    adopted = await bench.learn(job, JobSubmitted)
    (event,) = bench.outbox.of(JobStopped)

    assert adopted.evolve(event).tally == Tally()


async def test_a_cancelled_job_asks_nobody_and_ends_with_an_orphan() -> None:
    bench = Bench(OneCall(), repeatable=False)
    job = cancelled(unclear(an_image()))

    bench.runner.take(job)
    await bench.run()

    (event,) = bench.outbox.messages
    assert isinstance(event, JobStopped)
    assert job.evolve(event).tally.orphaned == 1


@pytest.mark.parametrize("error", [OutcomeUnknown("read timeout"), RuntimeError("a bug after the call")])
async def test_a_paid_call_that_ends_unclear_becomes_a_visible_state(error: Exception) -> None:
    bench = Bench(OneCall(), repeatable=False)
    bench.maker.answers = [error]
    bench.runner.take(await bench.announce(an_image()))
    await bench.run()

    assert bench.told() == [SubmitIntended, SubmitOutcomeUnknown]


async def test_a_refusal_that_is_worth_another_call_is_postponed_as_the_provider_says() -> None:
    bench = Bench(OneCall(), repeatable=True)
    bench.maker.answers = [ProviderFailure(ErrorCode.PROVIDER_RATE_LIMITED, retry_after=90.0)]

    bench.runner.take(an_image())
    await bench.run()

    (event,) = bench.outbox.messages
    assert isinstance(event, JobPostponed)
    assert event.due_at == START + timedelta(seconds=90)


async def test_a_postponed_job_is_called_again_when_it_is_due_and_not_before() -> None:
    bench = Bench(OneCall(), repeatable=True)

    bench.runner.take(an_image(postponed=1, due_at=START + timedelta(seconds=90)))
    bench.clock.advance(89)
    await bench.run()
    assert bench.maker.calls == []

    bench.clock.advance(1)
    await bench.run()
    assert bench.maker.calls == ["make"]


async def test_a_refusal_that_another_call_cannot_mend_fails_the_job() -> None:
    bench = Bench(OneCall(), repeatable=True)
    bench.maker.answers = [ProviderFailure(ErrorCode.MODERATION_REJECTED)]

    bench.runner.take(an_image())
    await bench.run()

    assert bench.told() == [JobFailed]


async def test_a_task_is_submitted_once_and_then_polled_until_it_is_collected() -> None:
    bench = Bench(Tasks(), repeatable=False)
    bench.runner.take(await bench.announce(a_clip()))
    await bench.run()
    assert bench.told() == [SubmitIntended, JobSubmitted]

    bench.maker.answers = [TaskReport(progress=0.4), TaskReport(done=True)]
    bench.runner.take(accepted(version=3))
    bench.clock.advance(5)
    await bench.run()
    bench.clock.advance(10)
    await bench.run()

    assert bench.told()[2:] == [JobStillRunning, JobSucceeded]
    assert bench.maker.calls == ["submit", "poll", "poll", "collect"]


async def test_a_poll_that_fails_says_nothing_about_the_task() -> None:
    bench = Bench(Tasks(), repeatable=False)
    bench.maker.answers = [ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE), TaskReport(done=True)]

    bench.runner.take(accepted())
    bench.clock.advance(5)
    await bench.run()
    assert bench.told() == []

    bench.clock.advance(10)
    await bench.run()
    assert bench.told() == [JobSucceeded]


@pytest.mark.parametrize("kind", [JobKind.CLIP, JobKind.IMAGE])
async def test_what_a_task_has_made_is_fetched_with_two_more_polls_before_it_is_missing(
    kind: JobKind,
) -> None:
    bench = Bench(Tasks(), repeatable=False, kind=kind)
    unusable = ProviderFailure(ErrorCode.OUTPUT_MISSING, "no picture and no clip")
    bench.maker.answers = [TaskReport(done=True), unusable] * 3
    made = an_image() if kind is JobKind.IMAGE else a_clip()
    bench.runner.take(accepted().model_copy(update={"request": made.request}))

    for wait in (5, 10):
        bench.clock.advance(wait)
        await bench.run()
        assert bench.told() == []
    bench.clock.advance(15)
    await bench.run()

    assert bench.maker.calls == ["poll", "collect"] * 3
    (event,) = bench.outbox.of(JobFailed)
    assert event.error_code is ErrorCode.OUTPUT_MISSING


async def test_a_task_that_the_provider_calls_failed_is_over() -> None:
    bench = Bench(Tasks(), repeatable=False)
    bench.maker.answers = [TaskReport(error_code=ErrorCode.MODERATION_REJECTED)]

    bench.runner.take(accepted())
    bench.clock.advance(5)
    await bench.run()

    assert bench.told() == [JobFailed]


async def test_a_task_without_end_is_delayed_after_its_schedule_and_given_up_at_its_deadline() -> None:
    bench = Bench(Tasks(), repeatable=False)
    bench.runner.take(accepted())
    for _ in range(130):
        bench.clock.advance(1)
        await bench.run()
    assert bench.told() == [PollStalled]
    assert bench.maker.calls == ["poll"] * 5

    bench.runner.take(accepted(version=9).model_copy(update={"status": JobStatus.DELAYED}))
    for _ in range(600):
        bench.clock.advance(1)
        await bench.run()

    assert bench.told() == [PollStalled, JobFailed]
    assert bench.maker.calls[-1] == "take_back"


async def test_a_task_that_the_provider_takes_back_at_its_deadline_is_no_orphan() -> None:
    bench = Bench(Tasks(), repeatable=False)
    bench.maker.answers = [TaskReport(), True]
    job = accepted(offer=Offer(provider="house", model="m1", cost_usd=0.15)).model_copy(
        update={"status": JobStatus.DELAYED}
    )

    bench.clock.advance(600)
    bench.runner.take(job)
    bench.clock.advance(60)
    await bench.run()

    (event,) = bench.outbox.of(JobFailed)
    failed = job.evolve(event)
    assert failed.error_code is ErrorCode.PROVIDER_TIMEOUT
    assert failed.tally == Tally()


async def test_a_dropped_job_is_given_up() -> None:
    bench = Bench(OneCall(), repeatable=True)
    started = asyncio.Event()

    async def hang() -> None:
        started.set()
        await asyncio.Event().wait()

    bench.maker.answers = [hang]
    bench.runner.take(an_image())
    bench.runner.start_due()
    await started.wait()

    bench.runner.drop(an_image())
    await bench.run()

    assert bench.told() == []


async def test_an_equal_request_is_served_from_the_store_and_not_made() -> None:
    bench = Bench(OneCall(), repeatable=False)
    url = await bench.assets.put(b"picture", media_type="image/png")
    output = OUTPUT.model_copy(update={"url": url})
    job = an_image()
    key = f"made/{job.fingerprint[:2]}/{job.fingerprint}"
    await bench.assets.remember(
        key, {"output": output.model_dump(mode="json"), "job_id": "another", "attempt": 1}
    )
    bench.runner.take(job)
    await bench.run()

    (event,) = bench.outbox.messages
    assert isinstance(event, JobSucceeded)
    assert event.source is Source.CACHED
    assert bench.maker.calls == []


async def test_a_job_that_wants_a_new_asset_takes_only_what_it_made_itself() -> None:
    bench = Bench(OneCall(), repeatable=True)
    job = an_image(use_cache=False)
    url = await bench.assets.put(b"picture", media_type="image/png")
    key = f"made/{job.fingerprint[:2]}/{job.fingerprint}"
    made = {"output": OUTPUT.model_copy(update={"url": url}).model_dump(mode="json"), "attempt": 1}

    await bench.assets.remember(key, {**made, "job_id": "another"})
    bench.runner.take(job)
    await bench.run()
    assert bench.maker.calls == ["make"]

    await bench.assets.remember(key, {**made, "job_id": job.job_id})
    bench.runner.take(job.model_copy(update={"postponed": 1}))
    await bench.run()
    assert bench.maker.calls == ["make"]


async def test_a_cache_entry_whose_asset_is_gone_is_not_believed() -> None:
    bench = Bench(OneCall(), repeatable=True)
    job = an_image()
    gone = OUTPUT.model_copy(update={"url": f"{bench.assets.base_url}/assets/ab/{'ab' * 32}.png"})
    await bench.assets.remember(
        f"made/{job.fingerprint[:2]}/{job.fingerprint}",
        {"output": gone.model_dump(mode="json"), "job_id": "another", "attempt": 1},
    )

    bench.runner.take(job)
    await bench.run()

    assert bench.maker.calls == ["make"]
