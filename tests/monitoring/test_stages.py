from datetime import timedelta
from typing import Any

from prometheus_client import CollectorRegistry

from models.commands import CancelProject
from models.errors import ErrorCode
from models.job import Job
from models.job_events import (
    JobEvent,
    JobFailed,
    JobPostponed,
    JobSubmitted,
    JobSucceeded,
    SubmitIntended,
    SubmitOutcomeUnknown,
)
from models.work import JobKind, Output, Source
from sceneloom.monitoring.stages import StageTimes
from tests.fakes import START, Outbox
from tests.monitoring.rows import a_job

ARK = {"kind": "image", "provider": "ark"}


class Stages:
    """One job, whose events are published and then applied to its row."""

    def __init__(self, job: Job | None = None) -> None:
        self.registry = CollectorRegistry()
        self.outbox = Outbox()
        self.row = job
        self.times = StageTimes(self.outbox, job=lambda _id: self.row, registry=self.registry)

    async def tell(self, kind: type[Any], seconds: float, **facts: object) -> None:
        assert self.row
        event: JobEvent = kind(
            event_id=f"e{seconds}",
            project_id=self.row.project_id,
            job_id=self.row.job_id,
            attempt=self.row.attempt,
            call=self.row.postponed,
            occurred_at=START + timedelta(seconds=seconds),
            **facts,
        )
        await self.times.publish(event)
        self.row = self.row.evolve(event)

    def took(self, histogram: str, **labels: str) -> tuple[float, float]:
        """Return how many were observed, and the sum of their seconds."""
        name = f"sceneloom_{histogram}_seconds"
        count = self.registry.get_sample_value(f"{name}_count", ARK | labels)
        return count or 0.0, self.registry.get_sample_value(f"{name}_sum", ARK | labels) or 0.0


OUTPUT = Output(url="file:///a.png", media_type="image/png")


async def test_a_task_is_measured_from_order_to_acceptance_and_from_there_to_its_end() -> None:
    stages = Stages(a_job())
    await stages.tell(SubmitIntended, 5)
    await stages.tell(JobSubmitted, 7, provider_task_id="t1")
    await stages.tell(JobSucceeded, 37, output=OUTPUT, source=Source.MADE)
    assert stages.took("call", outcome="accepted") == (1, 2)
    assert stages.took("task", outcome="made") == (1, 30)
    assert stages.took("job", outcome="made") == (1, 37)


async def test_a_call_that_answers_with_the_output_itself_has_no_task() -> None:
    stages = Stages(a_job())
    await stages.tell(SubmitIntended, 5)
    await stages.tell(JobSucceeded, 9, output=OUTPUT, source=Source.MADE)
    assert stages.took("call", outcome="made") == (1, 4)
    assert stages.took("task", outcome="made") == (0, 0)
    assert stages.took("job", outcome="made") == (1, 9)


async def test_local_work_is_measured_as_a_whole() -> None:
    stages = Stages(a_job())
    await stages.tell(JobSucceeded, 3, output=OUTPUT, source=Source.CACHED)
    assert stages.took("job", outcome="cached") == (1, 3)
    assert stages.took("call", outcome="cached") == (0, 0)


async def test_a_call_that_is_made_again_is_counted_with_its_reason_and_does_not_end_the_job() -> None:
    stages = Stages(a_job())
    limited = ErrorCode.PROVIDER_RATE_LIMITED
    await stages.tell(SubmitIntended, 1)
    await stages.tell(JobPostponed, 2, error_code=limited, due_at=START + timedelta(seconds=9))
    await stages.tell(SubmitIntended, 10)
    await stages.tell(JobFailed, 14, error_code=ErrorCode.PROVIDER_AUTH)
    postponed = stages.registry.get_sample_value(
        "sceneloom_calls_postponed_total", ARK | {"error_code": limited}
    )
    assert postponed == 1
    assert stages.took("call", outcome=limited) == (1, 1)
    assert stages.took("call", outcome="provider_auth") == (1, 4)
    assert stages.took("job", outcome=limited) == (0, 0)
    assert stages.took("job", outcome="provider_auth") == (1, 14)


async def test_a_cached_answer_after_a_postponed_call_is_no_call() -> None:
    stages = Stages(a_job())
    await stages.tell(SubmitIntended, 1)
    await stages.tell(
        JobPostponed, 2, error_code=ErrorCode.PROVIDER_UNAVAILABLE, due_at=START + timedelta(seconds=9)
    )
    await stages.tell(JobSucceeded, 90, output=OUTPUT, source=Source.CACHED)
    assert stages.took("call", outcome="cached") == (0, 0)


async def test_an_unclear_call_is_measured_as_such() -> None:
    stages = Stages(a_job())
    await stages.tell(SubmitIntended, 1)
    await stages.tell(SubmitOutcomeUnknown, 61)
    assert stages.took("call", outcome="unknown") == (1, 60)


async def test_everything_is_passed_on_and_what_is_nobodys_job_is_not_measured() -> None:
    stages = Stages()
    command = CancelProject(project_id="film-1", command_id="c1")
    lost = JobSucceeded(
        event_id="e",
        project_id="film-1",
        job_id="gone",
        attempt=1,
        occurred_at=START,
        output=OUTPUT,
        source=Source.MADE,
    )
    await stages.times.publish(command)
    await stages.times.publish(lost)
    assert stages.outbox.messages == [command, lost]
    assert not [sample for family in stages.registry.collect() for sample in family.samples]


async def test_what_an_earlier_attempt_says_late_is_not_measured() -> None:
    stages = Stages(a_job(attempt=2))
    assert stages.row
    await stages.times.publish(
        JobFailed(
            event_id="e",
            project_id="film-1",
            job_id=stages.row.job_id,
            attempt=1,
            occurred_at=START,
            error_code=ErrorCode.PROVIDER_TIMEOUT,
        )
    )
    assert stages.took("job", outcome="provider_timeout") == (0, 0)


def test_calls_are_counted_from_zero_so_that_a_rate_shows_the_first_one() -> None:
    registry = CollectorRegistry()
    StageTimes(Outbox(), job=lambda _id: None, registry=registry, announced=[(JobKind.CLIP, "ark")])
    place = {"kind": "clip", "provider": "ark"}
    for outcome in ("accepted", "made", "unknown"):
        assert registry.get_sample_value("sceneloom_call_seconds_count", place | {"outcome": outcome}) == 0
    for name in ("task", "job"):
        made = place | {"outcome": "made"}
        assert registry.get_sample_value(f"sceneloom_{name}_seconds_count", made) == 0
