"""Stand-ins for the ports, as strict as the real things."""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from models.checks import parse_request
from models.commands import Want
from models.job import Job
from models.ports import Message
from models.project import Project
from models.request import ProjectRequest
from models.work import Offer

M = TypeVar("M")

START = datetime(2026, 1, 1, tzinfo=UTC)


class MovedClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> datetime:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class MemoryProjects:
    """Keeps projects, and refuses a version that is not newer, as a changelog reader would see it."""

    def __init__(self) -> None:
        self.rows: dict[str, Project] = {}

    def get(self, project_id: str, /) -> Project | None:
        return self.rows.get(project_id)

    def put(self, project: Project, /) -> None:
        known = self.rows.get(project.project_id)
        assert known is None or project.version > known.version
        self.rows[project.project_id] = project

    def open_projects(self, partitions: Collection[int], /) -> Iterator[Project]:
        return (project for project in self.rows.values() if project.is_open)


class MemoryJobs:
    """Keeps jobs, and refuses a version that is not newer."""

    def __init__(self) -> None:
        self.rows: dict[str, Job] = {}

    def get(self, job_id: str, /) -> Job | None:
        return self.rows.get(job_id)

    def put(self, job: Job, /) -> None:
        known = self.rows.get(job.job_id)
        assert known is None or job.version > known.version
        self.rows[job.job_id] = job

    def jobs(self, partitions: Collection[int], /) -> Iterator[Job]:
        return iter(list(self.rows.values()))

    def jobs_of(self, project_id: str, /) -> Iterator[Job]:
        return (job for job in self.rows.values() if job.project_id == project_id)


class Queue:
    """Remembers what was handed to the runner."""

    def __init__(self) -> None:
        self.taken: dict[str, Job] = {}
        self.hints: list[tuple[str, str | None]] = []

    def take(self, job: Job, /) -> None:
        self.taken[job.job_id] = job

    def hint(self, job: Job, provider_task_id: str | None, /) -> None:
        self.hints.append((job.job_id, provider_task_id))

    def drop(self, job: Job, /) -> None:
        self.taken.pop(job.job_id, None)


class Outbox:
    """Keeps every message that was published, in order."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def publish(self, message: Message, /) -> None:
        self.messages.append(message)

    def of(self, kind: type[M]) -> list[M]:
        return [message for message in self.messages if isinstance(message, kind)]


class PlainAdmission:
    """Checks only what the request itself can tell."""

    def check(self, raw: object, *, folder: object = None) -> ProjectRequest:
        return parse_request(raw)


class OneOffer:
    """Everything is made by one provider, at one price."""

    def __init__(self, cost_usd: float = 0.0, fallback: str | None = None) -> None:
        self.cost_usd = cost_usd
        self.fallback = fallback

    def offer_for(self, want: Want, /) -> Offer:
        return Offer(provider=want.provider or "house", model="m1", cost_usd=self.cost_usd)

    def fallback_for(self, job: Job, /) -> Offer | None:
        if self.fallback is None or job.stands_in_for is not None:
            return None
        return Offer(provider=self.fallback, model="m1", cost_usd=self.cost_usd)


def a_request(scenes: int = 2, *, narrated: bool = True, title: str = "The lighthouse") -> dict[str, object]:
    """Return a raw request with so many scenes."""
    return {
        "title": title,
        "user_id": "u1",
        "scenes": [
            {
                "prompt": f"{title}, scene {n}",
                **({"narration": f"{title}, scene {n}."} if narrated else {}),
            }
            for n in range(1, scenes + 1)
        ],
    }
