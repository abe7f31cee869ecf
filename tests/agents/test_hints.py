"""The scenes agent and hints: it passes on those that are about the call a job waits for."""

import pytest

from agents.scenes import ScenesAgent
from models.job import Job
from models.job_events import PollNow
from models.lifecycle import JobStatus
from tests.fakes import START, MemoryJobs, MovedClock, OneOffer, Outbox, Queue
from tests.runner.test_runner import accepted


def a_hint(job: Job, **changes: object) -> PollNow:
    facts = {
        "event_id": "e1",
        "project_id": job.project_id,
        "job_id": job.job_id,
        "attempt": job.attempt,
        "call": job.postponed,
        "occurred_at": START,
        "provider_task_id": "task-1",
    }
    return PollNow.model_validate(facts | changes)


class Bench:
    def __init__(self, *jobs: Job) -> None:
        self.jobs, self.queue, self.outbox = MemoryJobs(), Queue(), Outbox()
        for job in jobs:
            self.jobs.put(job)
        self.agent = ScenesAgent(
            jobs=self.jobs, queue=self.queue, publisher=self.outbox, offers=OneOffer(), clock=MovedClock()
        )

    async def hear(self, hint: PollNow) -> None:
        before = dict(self.jobs.rows)
        await self.agent.handle(hint, origin="o1")
        assert self.jobs.rows == before
        assert self.outbox.messages == []


async def test_a_hint_is_passed_to_the_runner_and_is_no_fact() -> None:
    bench = Bench(accepted())
    for _ in range(2):
        await bench.hear(a_hint(accepted()))

    assert bench.queue.hints == [(accepted().job_id, "task-1")] * 2


@pytest.mark.parametrize("changes", [{"attempt": 2}, {"call": 1}, {"job_id": "p1/scene-009/clip"}])
async def test_a_hint_about_something_else_is_passed_over(changes: dict[str, object]) -> None:
    bench = Bench(accepted())
    await bench.hear(a_hint(accepted(), **changes))

    assert bench.queue.hints == []


async def test_a_hint_about_a_job_that_is_over_does_nothing() -> None:
    bench = Bench(accepted().model_copy(update={"status": JobStatus.SUCCEEDED}))
    await bench.hear(a_hint(accepted()))

    assert bench.queue.hints == []
