"""How long one message occupies the scenes agent, and how long a takeover occupies the whole worker."""

import time
from dataclasses import dataclass

from agents.recovery import RecoveryAgent
from agents.scenes import ScenesAgent
from benchmarks.jobs import PARTITIONS, accepted_jobs
from benchmarks.process import share
from models.commands import RequestScene, Want
from models.identifiers import event_id
from models.job import Job
from models.job_events import JobStillRunning
from models.ports import Message
from models.work import ImageRequest, SpeechRequest
from sceneloom.assets.store import open_assets
from sceneloom.clock import SystemClock
from sceneloom.codec import encode
from sceneloom.outside import offline_suppliers, usual_providers
from sceneloom.providers.motion import Motion
from sceneloom.providers.storyboard import Storyboard
from sceneloom.providers.studio import Studio
from sceneloom.settings import Settings
from sceneloom.workshop.makers import fetch_from
from sceneloom.workshop.workshop import Workshop
from tables.jobs import JobTable
from tables.projects import ProjectTable


@dataclass(frozen=True, kw_only=True, slots=True)
class Agents:
    """Milliseconds a message, without Kafka; seconds that a takeover of so many rows takes in one go."""

    messages: int
    request_ms_p50: float
    request_ms_p99: float
    event_ms_p50: float
    event_ms_p99: float
    rows: int
    takeover_seconds: float
    takeover_us_per_row: float
    task_ids_ms: float


class _Queue:
    def __init__(self) -> None:
        self.taken: dict[str, Job] = {}

    def take(self, job: Job, /) -> None:
        self.taken[job.job_id] = job

    def hint(self, job: Job, provider_task_id: str | None, /) -> None:
        raise NotImplementedError(job.job_id, provider_task_id)

    def drop(self, job: Job, /) -> None:
        self.taken.pop(job.job_id, None)


class _Encoded:
    """Turns messages into bytes, as the publisher does before it sends them."""

    def __init__(self) -> None:
        self.bytes = 0

    async def publish(self, message: Message, /) -> None:
        self.bytes += len(encode(message))


def _workshop(settings: Settings) -> Workshop:
    assets = open_assets("memory://")
    studio = Studio(children=1)
    motion = Motion(pictures=Storyboard(studio), fetch=fetch_from(assets, allow_private=False), parallel=1)
    suppliers = offline_suppliers(settings, assets, drawing=studio, speaking=studio, motion=motion)
    return Workshop(suppliers=suppliers, usual=usual_providers(settings), assets=assets)


def _a_scene(number: int) -> RequestScene:
    prompt = f"The lighthouse in the evening, from a boat, take {number}"
    return RequestScene(
        project_id=f"new-{number:06}",
        scene_id="scene-001",
        attempt=1,
        user_id="u1",
        wants=(
            Want(request=ImageRequest(prompt=prompt, width=1080, height=1920)),
            Want(request=SpeechRequest(text=prompt, language="en")),
        ),
    )


async def measure(rows: int, messages: int) -> Agents:
    """Measure with *rows* jobs in the table."""
    clock, queue, publisher = SystemClock(), _Queue(), _Encoded()
    stored: dict[bytes, Job] = {}
    table = JobTable(stored, partitions=PARTITIONS)
    for job in accepted_jobs(rows, now=clock.now()):
        table.put(job)
    agent = ScenesAgent(
        jobs=table, queue=queue, publisher=publisher, offers=_workshop(Settings(_env_file=None)), clock=clock
    )
    requests, events = [], []
    known = list(stored.values())
    for number in range(messages):
        began = time.perf_counter()
        await agent.handle(_a_scene(number), origin="bench")
        requests.append((time.perf_counter() - began) * 1000)
        job = known[number % len(known)]
        progress = round((number // len(known) + 1) / 1000, 3)
        news = JobStillRunning(
            event_id=event_id("bench", number),
            project_id=job.project_id,
            job_id=job.job_id,
            attempt=1,
            progress=progress,
            occurred_at=clock.now(),
        )
        began = time.perf_counter()
        await agent.handle(news, origin="bench")
        events.append((time.perf_counter() - began) * 1000)
    requests.sort()
    events.sort()
    recovery = RecoveryAgent(
        projects=ProjectTable({}, partitions=PARTITIONS), jobs=table, queue=_Queue(), publisher=publisher
    )
    began = time.perf_counter()
    everything = range(PARTITIONS)
    taken, _ = await recovery.take_over(everything, new=everything)
    took = time.perf_counter() - began
    began = time.perf_counter()
    table.task_ids()
    listed = time.perf_counter() - began
    return Agents(
        messages=2 * messages,
        request_ms_p50=round(share(requests, 0.5), 3),
        request_ms_p99=round(share(requests, 0.99), 3),
        event_ms_p50=round(share(events, 0.5), 3),
        event_ms_p99=round(share(events, 0.99), 3),
        rows=taken,
        takeover_seconds=round(took, 3),
        takeover_us_per_row=round(took / max(1, taken) * 1e6, 1),
        task_ids_ms=round(listed * 1000, 1),
    )
