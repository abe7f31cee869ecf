"""Which jobs there are, by their rows: what is stuck, and what was given up and may still be billed."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from models.job import Job
from models.lifecycle import JobStatus
from models.work import Tally
from sceneloom.operations.latest import Latest, read_latest
from sceneloom.outside import without_store
from sceneloom.settings import Settings
from sceneloom.topics import JOBS_TABLE, changelog_name

LAST_LOOK: Final = timedelta(seconds=120)
"""How long after its deadline a job may be open: a worker ends it with its next look, a minute apart."""

Deadline = Callable[[Job], timedelta]
"""How long the call of a job may take in all."""


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job as an operator sees it at one moment."""

    job: Job
    age: timedelta
    deadline_at: datetime | None
    """When its call is given up; None while no call is under way."""
    stuck: bool

    @property
    def calls(self) -> int:
        """How many calls this attempt has made or announced."""
        return self.job.postponed + (self.job.submit is not None or self.job.source is not None)

    @property
    def orphaned(self) -> bool:
        """Whether a call of this job, of any attempt, was given up while it may still be billed."""
        return self.job.tally.orphaned > 0


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFilter:
    """Which jobs are wanted: those that meet everything that is named."""

    project_id: str | None = None
    job_id: str | None = None
    statuses: Collection[JobStatus] = ()
    provider: str | None = None
    older_than: timedelta | None = None
    stuck: bool = False
    orphaned: bool = False

    def wants(self, line: JobLine) -> bool:
        """Tell whether the job of *line* is wanted."""
        job = line.job
        return (
            (self.project_id is None or job.project_id == self.project_id)
            and (self.job_id is None or job.job_id == self.job_id)
            and (not self.statuses or job.status in self.statuses)
            and (self.provider is None or job.offer.provider == self.provider)
            and (self.older_than is None or line.age > self.older_than)
            and (line.stuck or not self.stuck)
            and (line.orphaned or not self.orphaned)
        )


async def read_jobs(settings: Settings) -> Latest[Job]:
    """Return the latest row of every job. Raises `BrokerUnreachable` and `TopicsMissing`."""
    changelog = changelog_name(settings, JOBS_TABLE).removeprefix(settings.topic_prefix)
    return await read_latest(settings, changelog, Job.model_validate_json)


def deadlines(settings: Settings) -> Deadline:
    """Return the deadlines that a worker with the same settings keeps. Raises `ValueError` as it does."""
    return without_store(settings).workshop.deadline


def not_set_here(settings: Settings, jobs: Collection[Job]) -> list[str]:
    """Return the providers of *jobs* that *settings* do not have, so that their deadlines are guesses."""
    if not jobs:
        return []
    workshop = without_store(settings).workshop
    return sorted({job.offer.provider for job in jobs if job.offer.provider not in workshop.names(job.kind)})


def line(job: Job, now: datetime, deadline: Deadline) -> JobLine:
    """Return how *job* looks at *now*.

    It is stuck when its call is open for longer than its deadline and the last look allow: no worker has the
    job then. One that waits for a person has the time of that question; one that waits for a call has no end.
    """
    deadline_at = _deadline_at(job, deadline)
    stuck = deadline_at is not None and now > deadline_at + LAST_LOOK
    return JobLine(job, now - job.created_at, deadline_at, stuck)


def _deadline_at(job: Job, deadline: Deadline) -> datetime | None:
    # A cancelled job is looked after, too, until it is known whether its call is billed.
    if job.submit is None or job.is_settled:
        return None
    since = job.submitted_at or job.intended_at or job.created_at
    return job.confirm_until or since + deadline(job)


def chosen(jobs: Iterable[Job], wanted: JobFilter, now: datetime, deadline: Deadline) -> list[JobLine]:
    """Return the jobs that are *wanted*, the newest first."""
    lines = (line(job, now, deadline) for job in jobs)
    found = [each for each in lines if wanted.wants(each)]
    return sorted(found, key=lambda each: (each.age, each.job.job_id))


def total(lines: Iterable[JobLine]) -> Tally:
    """Return what the jobs of *lines* have cost over all their attempts."""
    return sum((each.job.tally for each in lines), Tally())
