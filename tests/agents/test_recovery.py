"""The recovery agent takes up what was in flight."""

from agents.recovery import RecoveryAgent
from models import decisions
from models.checks import parse_request
from models.commands import TakeOverProject
from models.job import Job
from models.lifecycle import JobStatus
from models.project import Project
from models.work import ImageRequest, Offer, Output, Source, SpeechRequest
from tests.fakes import START, MemoryJobs, MemoryProjects, Outbox, Queue, a_request

ALL = frozenset(range(8))


def a_project(name: str) -> Project:
    first, second = decisions.submit(name, parse_request(a_request(1)), now=START)
    return Project.begin(first).evolve(second)


def jobs_of(name: str) -> tuple[Job, Job]:
    picture = Job(
        project_id=name,
        scene_id="scene-001",
        user_id="u1",
        offer=Offer(provider="house", model="m1", cost_usd=0.15),
        request=ImageRequest(prompt="sea", width=64, height=64),
        status=JobStatus.SUCCEEDED,
        output=Output(url="mem://sea.png", media_type="image/png"),
        source=Source.MADE,
        created_at=START,
    )
    speech = picture.model_copy(
        update={
            "request": SpeechRequest(text="the sea", language="en"),
            "status": JobStatus.QUEUED,
            "source": None,
            "output": None,
        }
    )
    return picture, speech


async def test_open_jobs_are_queued_and_the_interruption_is_noted_with_what_is_kept() -> None:
    projects, jobs, queue, outbox = MemoryProjects(), MemoryJobs(), Queue(), Outbox()
    projects.put(a_project("p1"))
    for job in jobs_of("p1"):
        jobs.put(job)
    recovery = RecoveryAgent(projects=projects, jobs=jobs, queue=queue, publisher=outbox)

    assert await recovery.take_over(ALL, new=ALL) == (1, 1)

    assert set(queue.taken) == {"p1/scene-001/speech"}
    (command,) = outbox.of(TakeOverProject)
    assert (command.kept.bought, command.kept.spent_usd) == (1, 0.15)
    assert command.expected_version == 2


async def test_the_same_interruption_has_the_same_name() -> None:
    projects, outbox = MemoryProjects(), Outbox()
    projects.put(a_project("p1"))
    recovery = RecoveryAgent(projects=projects, jobs=MemoryJobs(), queue=Queue(), publisher=outbox)

    await recovery.take_over(ALL, new=ALL)
    await recovery.take_over(ALL, new=ALL)

    first, second = outbox.of(TakeOverProject)
    assert first == second
