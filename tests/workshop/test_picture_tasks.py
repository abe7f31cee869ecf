"""A picture that is a task is ordered once, asked about by its id, and fitted when it is there."""

import io
from collections.abc import Collection
from typing import Any

import pytest
from PIL import Image
from structlog.testing import capture_logs

from models.commands import Want
from models.errors import ErrorCode, ProviderFailure
from models.job import Job
from models.ports import Absent, AssetStore, Reconciled, TaskReport
from models.work import ImageRequest, JobKind, Offer
from sceneloom.assets.store import open_assets
from sceneloom.workshop.pictures import PictureTaskMaker
from sceneloom.workshop.workshop import Supplier, Workshop
from tests.fakes import START
from tests.providers.wires.openai import png


class Host:
    """A provider of tasks."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def submit(self, job: Job) -> str:
        self.calls.append("submit")
        return "task-1"

    async def poll(self, task_id: str) -> TaskReport:
        self.calls.append(f"poll {task_id}")
        return TaskReport(done=True, output=png(72, 128))

    async def candidates(self, job: Job, *, taken: Collection[str] = ()) -> Reconciled:
        self.calls.append("list")
        return Absent()

    async def cancel(self, task_id: str) -> bool:
        self.calls.append(f"cancel {task_id}")
        return True

    def normalize_error(self, error: Exception) -> ErrorCode:
        return ErrorCode.PROVIDER_UNAVAILABLE

    def cost_per_call(self) -> float:
        return 0.1


async def _fetched(url: str) -> bytes:
    return png(300, 300)


def a_workshop() -> tuple[Workshop, Host, AssetStore]:
    host, assets = Host(), open_assets("memory://")
    supplier = Supplier(
        kind=JobKind.IMAGE,
        offer=Offer(provider="host", model="m", cost_usd=0.1),
        maker=PictureTaskMaker(provider=host, assets=assets, fetch=_fetched),
        repeatable=False,
    )
    workshop = Workshop(suppliers=[supplier], usual={JobKind.IMAGE: "host"}, assets=assets)
    return workshop, host, assets


def a_picture(**facts: Any) -> Job:
    return Job(
        project_id="p1",
        scene_id="scene-001",
        user_id="u1",
        offer=Offer(provider="host", model="m", cost_usd=0.1),
        request=ImageRequest(prompt="sea", width=108, height=192, **facts),
        provider_task_id="task-1",
        intended_at=START,
        created_at=START,
    )


async def test_a_picture_goes_the_way_of_a_task() -> None:
    workshop, host, assets = a_workshop()
    job = a_picture()

    assert workshop.is_task(job)
    assert workshop.needs_intent(job)
    assert await workshop.submit(job) == "task-1"
    output = await workshop.collect(job, await workshop.poll(job))
    assert await workshop.find(job, taken=()) == Absent()
    assert await workshop.take_back(job)

    assert host.calls == ["submit", "poll task-1", "list", "cancel task-1"]
    with Image.open(io.BytesIO(await assets.get(output.url))) as picture:
        assert picture.size == (108, 192)


async def test_the_users_own_picture_is_fetched_and_never_ordered() -> None:
    workshop, host, _ = a_workshop()
    job = a_picture(picture_url="https://pictures.example/own.png")

    assert not workshop.is_task(job)
    assert not workshop.needs_intent(job)
    assert (await workshop.make(job, progress=lambda _: None)).media_type == "image/png"
    assert host.calls == []


async def test_only_a_picture_that_is_ordered_is_offered_as_a_task() -> None:
    workshop, _, _ = a_workshop()
    own = a_picture(picture_url="https://pictures.example/own.png").request
    assert workshop.offer_for(Want(request=own)) == Offer(provider="host", model="m")
    ordered = workshop.offer_for(Want(request=a_picture().request))
    assert ordered == Offer(provider="host", model="m", cost_usd=0.1, as_task=True)


async def test_a_row_of_an_older_release_that_calls_an_own_picture_a_task_is_the_same_job() -> None:
    workshop, _, _ = a_workshop()
    now = a_picture(picture_url="https://pictures.example/own.png")
    written = now.model_dump(mode="json")
    before = Job.model_validate(written | {"offer": written["offer"] | {"as_task": True}})
    assert before.offer.as_task
    assert before.fingerprint == now.fingerprint
    assert not workshop.is_task(before)
    assert not workshop.needs_intent(before)


async def test_a_picture_in_another_shape_is_kept_and_told() -> None:
    workshop, _, _ = a_workshop()
    with capture_logs() as logs:
        await workshop.collect(a_picture(), TaskReport(done=True, output=png(40, 40)))
    (told,) = [log for log in logs if log["event"] == "makers.not_as_ordered"]
    assert (told["asked"], told["got"]) == ("9:16", "40x40")


@pytest.mark.parametrize("report", [TaskReport(done=True), TaskReport(done=True, output=b"<html>")])
async def test_a_task_without_a_picture_has_no_output(report: TaskReport) -> None:
    workshop, _, _ = a_workshop()
    with pytest.raises(ProviderFailure) as failure:
        await workshop.collect(a_picture(), report)
    assert failure.value.code is ErrorCode.OUTPUT_MISSING
