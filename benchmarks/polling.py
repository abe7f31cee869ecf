"""One worker with very many accepted jobs: whether it polls each in time, and how much memory it needs."""

import asyncio
import gc
import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import sceneloom.app  # noqa: F401 -- a worker has all of it in memory
from benchmarks.jobs import PARTITIONS, accepted_jobs
from benchmarks.process import bare_task_microseconds, peak_megabytes, share
from models.identifiers import share_of
from models.job import Job
from models.policy import POLL_SCHEDULE, slow_poll
from models.ports import Clock, Message, Reconciled, TaskReport
from models.work import JobKind, Offer, Output
from sceneloom.assets.store import open_assets
from sceneloom.clock import SystemClock
from sceneloom.runner import JobRunner
from sceneloom.workshop.workshop import Supplier, Workshop
from tables.jobs import JobTable


@dataclass(frozen=True, kw_only=True, slots=True)
class Polling:
    """What was measured: seconds late, megabytes, the share of one core; a bare task does nothing."""

    jobs: int
    seconds: float
    fill_seconds: float
    polls: int
    polls_expected: float
    late_p50: float
    late_p99: float
    late_max: float
    late_max_after_takeover: float
    peak_mb: float
    mb_before: float
    cpu_share: float
    cpu_us_per_poll: float
    bare_tasks_per_poll: float


class Punctual:
    """A supplier that answers at once, and writes down how late each poll comes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: dict[str, datetime] = {}
        self.late: list[float] = []
        self.late_at_first: list[float] = []
        self.since: datetime | None = None
        """When the queue was full; polls that were due before are late by what the filling took."""

    def expect(self, job: Job, since: datetime) -> None:
        """Reckon with the first poll of *job* after *since*."""
        self._last[job.job_id] = since

    async def poll(self, job: Job) -> TaskReport:
        """Answer that the task goes on."""
        now, last = self._clock.now(), self._last[job.job_id]
        due = slow_poll(job.submitted_at or last, last, POLL_SCHEDULE, jitter=share_of(job.job_id))
        if self.since is None or due >= self.since:
            self.late.append((now - due).total_seconds())
        else:
            self.late_at_first.append((now - due).total_seconds())
        self._last[job.job_id] = now
        return TaskReport()

    def overdue(self, jobs: Collection[Job]) -> list[float]:
        """Return by how much the polls are late that did not come at all."""
        now = self._clock.now()
        dues = (
            slow_poll(
                job.submitted_at or now,
                self._last[job.job_id],
                POLL_SCHEDULE,
                jitter=share_of(job.job_id),
            )
            for job in jobs
        )
        return [(now - due).total_seconds() for due in dues if due < now]

    async def submit(self, job: Job) -> str:
        """Fail: all tasks are under way."""
        raise NotImplementedError(job.job_id)

    async def find(self, job: Job, *, taken: Collection[str]) -> Reconciled | None:
        """Fail: no task got lost."""
        raise NotImplementedError(job.job_id, taken)

    async def confirm(self, job: Job, named: str) -> str | None:
        """Fail: nothing hints at a task."""
        raise NotImplementedError(job.job_id, named)

    async def take_back(self, job: Job) -> bool:
        """Fail: no task reaches its deadline."""
        raise NotImplementedError(job.job_id)

    async def collect(self, job: Job, report: TaskReport) -> Output:
        """Fail: no task ends."""
        raise NotImplementedError(job.job_id, report)


class _Silent:
    async def publish(self, message: Message, /) -> None:
        raise AssertionError(f"nothing is news here: {message}")


async def _at_once() -> None:
    return None


async def _always() -> bool:
    return True


async def measure(count: int, seconds: float) -> Polling:
    """Fill a runner with *count* jobs, let it poll for so many real *seconds*, and return what was seen."""
    clock = SystemClock()
    maker = Punctual(clock)
    supplier = Supplier(
        kind=JobKind.CLIP,
        offer=Offer(provider="house", model="house-1"),
        maker=maker,
        repeatable=False,
        deadline_seconds=172_800.0,
    )
    runner = JobRunner(
        workshop=Workshop(
            suppliers=[supplier], usual={JobKind.CLIP: "house"}, assets=open_assets("memory://")
        ),
        publisher=_Silent(),
        clock=clock,
        durable=_at_once,
        is_member=_always,
        owns=lambda _: True,
    )
    bare = await bare_task_microseconds()
    gc.collect()
    before = peak_megabytes()
    rows: dict[bytes, Job] = {}
    table = JobTable(rows, partitions=PARTITIONS)
    for job in accepted_jobs(count, now=clock.now()):
        table.put(job)
    began = time.perf_counter()
    for job in rows.values():
        maker.expect(job, clock.now())
        runner.take(job)
    filled = time.perf_counter() - began
    maker.since = clock.now()
    await runner.start()
    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.sleep(seconds)
    cpu, took = time.process_time() - cpu, time.perf_counter() - began
    late = sorted([*maker.late, *maker.overdue(rows.values())])
    polls = len(maker.late) + len(maker.late_at_first)
    await runner.stop()
    return Polling(
        jobs=count,
        seconds=round(took, 1),
        fill_seconds=round(filled, 2),
        polls=polls,
        polls_expected=round(count * (took + filled) / POLL_SCHEDULE[-1]),
        late_p50=round(share(late, 0.50), 4),
        late_p99=round(share(late, 0.99), 4),
        late_max=round(late[-1], 4) if late else 0.0,
        late_max_after_takeover=round(max(maker.late_at_first, default=0.0), 4),
        peak_mb=round(peak_megabytes()),
        mb_before=round(before),
        cpu_share=round(cpu / took, 3),
        cpu_us_per_poll=round(cpu / max(1, polls) * 1e6, 1),
        bare_tasks_per_poll=round(cpu / max(1, polls) * 1e6 / bare, 1),
    )
