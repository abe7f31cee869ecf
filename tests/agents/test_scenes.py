"""The scenes agent: from requests and events to jobs and results."""

from datetime import timedelta
from typing import Any

import pytest

from agents.scenes import ScenesAgent
from models.commands import CancelScene, RequestScene, ResolveSubmit, Want
from models.errors import ErrorCode
from models.job import Job
from models.job_events import (
    JobFailed,
    JobPostponed,
    JobStopped,
    JobSubmitted,
    JobSucceeded,
    SubmitIntended,
    SubmitOutcomeUnknown,
    SubmitUnresolved,
)
from models.lifecycle import JobStatus, SubmitState
from models.results import SceneCompleted, SceneFailed, SceneStopped, SceneUnclear
from models.work import Decision, ImageRequest, Output, Source, SpeechRequest
from tests.fakes import START, MemoryJobs, MovedClock, OneOffer, Outbox, Queue

IMAGE, SPEECH = "p1/scene-001/image", "p1/scene-001/speech"
OUTPUT = Output(url="mem://sea.png", media_type="image/png")


class House:
    """The agent on memory."""

    def __init__(self, *, fallback: str | None = None) -> None:
        self.clock, self.outbox, self.jobs, self.queue = MovedClock(), Outbox(), MemoryJobs(), Queue()
        self.agent = ScenesAgent(
            jobs=self.jobs,
            queue=self.queue,
            publisher=self.outbox,
            offers=OneOffer(0.15, fallback=fallback),
            clock=self.clock,
        )

    async def hear(self, *messages: Any) -> None:
        for message in messages:
            await self.agent.handle(message, origin="o")

    def event(self, kind: type[Any], job_id: str = IMAGE, **facts: object) -> Any:
        job = self.jobs.rows[job_id]
        return kind(
            event_id="e",
            project_id=job.project_id,
            job_id=job_id,
            attempt=job.attempt,
            call=job.postponed,
            submit=job.submit,
            occurred_at=self.clock.now(),
            **facts,
        )

    async def in_doubt(self) -> SubmitUnresolved:
        """Bring the picture into doubt, and return the message that asks."""
        await self.hear(a_scene())
        await self.hear(self.event(SubmitIntended), self.event(SubmitOutcomeUnknown))
        asked: SubmitUnresolved = self.event(SubmitUnresolved, until=self.clock.now() + timedelta(days=1))
        await self.hear(asked)
        return asked

    def job(self, job_id: str = IMAGE) -> Job:
        return self.jobs.rows[job_id]


def a_scene(number: int = 1, *, budget: float | None = None) -> RequestScene:
    picture = Want(request=ImageRequest(prompt="sea", width=64, height=64))
    speech = Want(request=SpeechRequest(text="the sea", language="en"))
    return RequestScene(
        project_id="p1",
        scene_id=f"scene-{number:03d}",
        attempt=1,
        user_id="u1",
        budget_usd=budget,
        wants=(picture, speech),
    )


async def test_a_call_that_the_budget_has_no_room_for_is_refused_at_its_announcement() -> None:
    house = House()
    await house.hear(a_scene(budget=0.20))
    await house.hear(house.event(SubmitIntended))
    announced = house.event(SubmitIntended, SPEECH)

    await house.hear(announced, announced)

    assert house.job(SPEECH).error_code is ErrorCode.BUDGET_EXCEEDED
    assert SPEECH not in house.queue.taken
    assert house.job(IMAGE).submit is SubmitState.INTENDED


async def test_the_budget_is_that_of_the_whole_project() -> None:
    house = House()
    await house.hear(a_scene(1, budget=0.30), a_scene(2, budget=0.30))
    await house.hear(house.event(SubmitIntended), house.event(SubmitIntended, SPEECH))

    await house.hear(house.event(SubmitIntended, "p1/scene-002/image"))

    assert house.job("p1/scene-002/image").error_code is ErrorCode.BUDGET_EXCEEDED


async def test_another_provider_stands_in_once_and_a_late_event_of_the_first_changes_nothing() -> None:
    house = House(fallback="other")
    await house.hear(a_scene())
    failed = house.event(JobFailed, error_code=ErrorCode.PROVIDER_AUTH)

    await house.hear(failed, failed)

    job = house.job()
    assert (job.attempt, job.offer.provider, job.status) == (2, "other", JobStatus.QUEUED)
    assert house.queue.taken[IMAGE] == job
    await house.hear(house.event(JobFailed, error_code=ErrorCode.PROVIDER_AUTH))
    assert house.job().status is JobStatus.FAILED


async def test_without_a_fallback_a_provider_that_is_away_fails_the_scene() -> None:
    house = House()
    await house.hear(a_scene())
    await house.hear(house.event(JobSucceeded, SPEECH, output=OUTPUT, source=Source.MADE))
    await house.hear(house.event(JobFailed, error_code=ErrorCode.PROVIDER_AUTH))

    (result,) = house.outbox.of(SceneFailed)
    assert result.error_code is ErrorCode.PROVIDER_AUTH


async def test_an_unclear_call_is_asked_about_again_when_its_message_comes_again() -> None:
    house = House()
    asked = await house.in_doubt()
    await house.hear(asked)

    first, second = house.outbox.of(SceneUnclear)
    assert first.question == second.question
    assert first.question.cost_usd == 0.15


async def test_a_decision_is_carried_out_once() -> None:
    house = House()
    await house.in_doubt()
    resend = ResolveSubmit(project_id="p1", job_id=IMAGE, attempt=1, call=0, decision=Decision.RESEND)

    await house.hear(resend, resend)

    assert house.job().postponed == 1
    assert house.job().tally.orphaned == 1
    assert house.queue.taken[IMAGE] == house.job()


async def test_a_decision_about_a_job_that_is_not_there_changes_nothing() -> None:
    house = House()
    await house.hear(
        ResolveSubmit(project_id="p1", job_id=IMAGE, attempt=1, call=0, decision=Decision.RESEND)
    )

    assert house.jobs.rows == {}


async def test_a_cancelled_job_stays_with_the_runner_until_its_cost_is_known() -> None:
    house = House()
    await house.hear(a_scene())
    await house.hear(house.event(SubmitIntended), house.event(JobSubmitted, provider_task_id="t-1"))
    cancel = CancelScene(project_id="p1", scene_id="scene-001", attempt=1)

    await house.hear(cancel, cancel)
    assert list(house.queue.taken) == [IMAGE]
    stopped = house.outbox.of(SceneStopped)
    assert stopped[0] == stopped[-1]
    assert stopped[0].tally.orphaned == 1

    await house.hear(house.event(JobStopped, billed=False))
    assert house.queue.taken == {}
    last = house.outbox.of(SceneStopped)[-1]
    assert last.tally.orphaned == 0
    assert last.revision > stopped[0].revision


async def test_a_scene_that_was_finished_before_its_cancellation_says_so() -> None:
    house = House()
    await house.hear(a_scene())
    for job in (IMAGE, SPEECH):
        await house.hear(house.event(JobSucceeded, job, output=OUTPUT, source=Source.MADE))

    await house.hear(CancelScene(project_id="p1", scene_id="scene-001", attempt=1))

    assert len(house.outbox.of(SceneCompleted)) == 2
    assert house.outbox.of(SceneStopped) == []


async def accepted(house: House, task_id: str = "t-1") -> None:
    await house.hear(a_scene())
    await house.hear(house.event(SubmitIntended), house.event(JobSubmitted, provider_task_id=task_id))


async def test_a_search_that_ends_late_does_not_throw_away_the_task_that_was_found_meanwhile() -> None:
    house = House()
    await house.hear(a_scene())
    await house.hear(house.event(SubmitIntended), house.event(SubmitOutcomeUnknown))
    late = house.event(JobPostponed, due_at=START, error_code=ErrorCode.PROVIDER_UNAVAILABLE)

    await house.hear(house.event(JobSubmitted, provider_task_id="t-1"), late)

    assert house.job().provider_task_id == "t-1"
    assert house.job().submit is SubmitState.ACCEPTED


async def test_a_question_that_ends_late_does_not_fail_the_task_that_a_person_named() -> None:
    house = House()
    await house.in_doubt()
    late = house.event(JobFailed, error_code=ErrorCode.SUBMIT_UNKNOWN)
    adopt = ResolveSubmit(
        project_id="p1", job_id=IMAGE, attempt=1, call=0, decision=Decision.ADOPT, provider_task_id="t-1"
    )

    await house.hear(adopt, late)

    assert house.job().status is JobStatus.RUNNING
    assert house.job().provider_task_id == "t-1"


async def test_a_task_that_was_taken_back_at_its_deadline_is_no_orphan_of_a_cancelled_project() -> None:
    house = House()
    await accepted(house)
    late = house.event(JobFailed, error_code=ErrorCode.PROVIDER_TIMEOUT, taken_back=True)

    await house.hear(CancelScene(project_id="p1", scene_id="scene-001", attempt=1), late)

    assert house.job().tally.orphaned == 0
    assert house.job().is_settled


@pytest.mark.parametrize("code", [ErrorCode.PROVIDER_UNAVAILABLE, ErrorCode.PROVIDER_RATE_LIMITED])
async def test_a_task_that_was_accepted_and_failed_is_not_bought_again_from_another_provider(
    code: ErrorCode,
) -> None:
    house = House(fallback="other")
    await accepted(house)

    await house.hear(house.event(JobFailed, error_code=code))

    assert house.job().status is JobStatus.FAILED
    assert house.job().offer.provider == "house"
