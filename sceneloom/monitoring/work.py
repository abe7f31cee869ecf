"""Counts of the work in flight, kept up to date row by row: lag does not tell how far a film is. No I/O.

A row is counted in when it comes and counted out when its successor does, so that neither takes longer
with more rows.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from models.job import Job
from models.lifecycle import JobStatus, ProjectState, SubmitState
from models.policy import POLL_SCHEDULE, deadline
from models.project import OPEN
from models.snapshot import ProjectSnapshot
from models.values import Value
from models.work import ClipRequest

GRACE: Final = timedelta(seconds=60)
"""How much later than planned a poll may be before it is overdue: the one before it may take that long."""

_MICRO: Final = 1_000_000


class OpenJob(NamedTuple):
    """A job of which more will be learned.

    `since` is None for a cancelled one, whose paid call is still looked after.
    """

    since: datetime | None
    unknown: bool
    asks: bool
    overdue_from: datetime | None


class Money(NamedTuple):
    """Whole millionths of a US dollar, which add up without rounding."""

    spent: int = 0
    orphaned: int = 0


class WorkCounts(Value):
    """How much work there is, at one moment. Money in US dollars, ages in seconds."""

    jobs: Mapping[JobStatus, Mapping[str, int]]
    """How many jobs there are, by status and within it by provider."""
    projects: Mapping[ProjectState, int]
    oldest_seconds: float | None
    """The age of the oldest job that is not finished, None where all are."""
    overdue: int
    """Jobs that should have been polled by now, and for which nothing has happened."""
    unknown: int
    """Jobs of which nobody can tell yet whether their provider accepted them."""
    questions: int
    """Jobs that wait until a person says what became of their call."""
    delayed_projects: int
    spent_usd: float
    """What all attempts have cost, orphans included."""
    saved_usd: float
    """What caches and kept work have saved, by the receipts."""
    orphaned_usd: float
    unreadable: int
    """Rows that are not understood, and counted nowhere else."""


class _Project(NamedTuple):
    state: ProjectState
    delayed: bool
    saved: int


class WorkBook:
    """The jobs and the projects, as their compacted topics tell them."""

    def __init__(self) -> None:
        self._jobs: dict[bytes, tuple[JobStatus, str, Money]] = {}
        self._open: dict[bytes, OpenJob] = {}
        self._projects: dict[bytes, _Project] = {}
        self._by_status: Counter[tuple[JobStatus, str]] = Counter()
        self._by_state: Counter[ProjectState] = Counter()
        self._delayed = self._saved = 0
        self._money = Money()
        self._unreadable: set[bytes] = set()

    def put_job(self, key: bytes, job: Job | None) -> None:
        """Take the latest row of a job; None where it was removed."""
        self._unreadable.discard(key)
        known = self._jobs.pop(key, None)
        self._open.pop(key, None)
        if known is not None:
            self._count_job(known, -1)
        if job is None:
            return
        row = self._jobs[key] = (job.status, job.offer.provider, _money(job))
        self._count_job(row, 1)
        if not job.is_settled:
            self._open[key] = OpenJob(
                since=None if job.finished else job.created_at,
                unknown=job.submit is SubmitState.UNKNOWN,
                asks=job.question is not None,
                overdue_from=overdue_from(job),
            )

    def put_project(self, key: bytes, project: ProjectSnapshot | None) -> None:
        """Take the latest snapshot of a project; None where it was removed."""
        self._unreadable.discard(key)
        known = self._projects.pop(key, None)
        if known is not None:
            self._count_project(known, -1)
        if project is None:
            return
        delayed = project.state in OPEN and any(scene.delayed for scene in project.scenes)
        row = self._projects[key] = _Project(
            project.state, delayed, round(project.receipt.saved_usd * _MICRO)
        )
        self._count_project(row, 1)

    def put_unreadable(self, key: bytes) -> None:
        """Take note of a row that is not understood, perhaps of a newer release."""
        self.put_job(key, None)
        self.put_project(key, None)
        self._unreadable.add(key)

    def counts(self, now: datetime) -> WorkCounts:
        """Return how the work stands at *now*."""
        opened = self._open.values()
        oldest = min((job.since for job in opened if job.since), default=None)
        return WorkCounts(
            jobs=self._jobs_by_status(),
            projects={state: count for state, count in self._by_state.items() if count},
            oldest_seconds=None if oldest is None else (now - oldest).total_seconds(),
            overdue=sum(job.overdue_from is not None and now > job.overdue_from for job in opened),
            unknown=sum(job.unknown for job in opened),
            questions=sum(job.asks for job in opened),
            delayed_projects=self._delayed,
            spent_usd=self._money.spent / _MICRO,
            saved_usd=self._saved / _MICRO,
            orphaned_usd=self._money.orphaned / _MICRO,
            unreadable=len(self._unreadable),
        )

    def _jobs_by_status(self) -> dict[JobStatus, dict[str, int]]:
        found: dict[JobStatus, dict[str, int]] = {}
        for (status, provider), count in sorted(self._by_status.items()):
            if count:
                found.setdefault(status, {})[provider] = count
        return found

    def _count_job(self, row: tuple[JobStatus, str, Money], sign: int) -> None:
        status, provider, money = row
        self._by_status[status, provider] += sign
        self._money = Money(
            self._money.spent + sign * money.spent, self._money.orphaned + sign * money.orphaned
        )

    def _count_project(self, row: _Project, sign: int) -> None:
        self._by_state[row.state] += sign
        self._delayed += sign * row.delayed
        self._saved += sign * row.saved


def overdue_from(job: Job) -> datetime | None:
    """Return from when on a poll of *job* is overdue, None where no poll is planned.

    A row does not tell when its task was polled last. But a task that was polled is delayed once the poll
    schedule has run out, and ends at its deadline at the latest.
    """
    seconds = job.request.duration_seconds if isinstance(job.request, ClipRequest) else 0.0
    match job.submit:
        case SubmitState.ACCEPTED if job.submitted_at is not None:
            delayed = job.status is JobStatus.DELAYED
            whole = deadline(seconds) if delayed else timedelta(seconds=sum(POLL_SCHEDULE))
            return job.submitted_at + whole + GRACE
        case SubmitState.UNKNOWN if job.intended_at is not None:
            return job.intended_at + deadline(seconds) + GRACE
        case _:
            return None


def _money(job: Job) -> Money:
    tally = job.tally
    return Money(round(tally.spent_usd * _MICRO), round(tally.orphaned_usd * _MICRO))
