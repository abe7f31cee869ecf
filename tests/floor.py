"""A worker without Kafka: the scenes agent and the job runner on fakes, so that many can share one store."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, get_args

import pydantic

from agents.scenes import ScenesAgent
from models.commands import CancelScene
from models.job import Job
from models.job_events import JobEvent
from models.ports import AssetStore, Clock, Message
from models.work import JobKind, Offer
from sceneloom.runner import JobRunner
from sceneloom.workshop.supplier import Maker, TaskMaker
from sceneloom.workshop.workshop import Supplier, Workshop
from tests.fakes import MemoryJobs, Outbox

_JOB_EVENTS: tuple[type[pydantic.BaseModel], ...] = get_args(get_args(JobEvent)[0])


class Floor(Outbox):
    """One worker; what its runner reports is handled by its agent, in order, as a topic would bring it."""

    def __init__(
        self,
        maker: Maker | TaskMaker,
        *,
        clock: Clock,
        assets: AssetStore,
        repeatable: bool = False,
        **supplier: Any,
    ) -> None:
        super().__init__()
        kind = JobKind.CLIP if isinstance(maker, TaskMaker) else JobKind.IMAGE
        self.supplier = Supplier(
            kind=kind,
            offer=Offer(provider="house", model="m1", cost_usd=0.15),
            maker=maker,
            repeatable=repeatable,
            **supplier,
        )
        self.workshop = Workshop(suppliers=[self.supplier], usual={kind: "house"}, assets=assets)
        self.rows = MemoryJobs()
        self.runner = JobRunner(
            workshop=self.workshop,
            publisher=self,
            clock=clock,
            durable=_at_once,
            is_member=_always,
            owns=lambda _: True,
        )
        self.agent = ScenesAgent(
            jobs=self.rows, queue=self.runner, publisher=self, offers=self.workshop, clock=clock
        )
        self._handled = 0

    def begin(self, job: Job) -> None:
        """Write *job* and take it up, as after a request or a takeover."""
        self.rows.put(job)
        self.runner.take(job)

    async def cancel(self, job: Job) -> None:
        command = CancelScene(project_id=job.project_id, scene_id=job.scene_id, attempt=1)
        await self.agent.handle(command, origin="test")

    def row(self, job: Job) -> Job:
        found = self.rows.get(job.job_id)
        assert found is not None
        return found

    async def work(self) -> bool:
        """Start what is due, handle what was reported, and tell whether there is more to wait for."""
        self.runner.start_due()
        news: Sequence[Message] = self.messages[self._handled :]
        self._handled = len(self.messages)
        for message in news:
            if isinstance(message, _JOB_EVENTS):
                await self.agent.handle(message, origin="test")  # type: ignore[arg-type]
        return bool(news or self.runner._working or self.runner._futures)


async def _at_once() -> None:
    return None


async def _always() -> bool:
    return True


async def settle(*floors: Floor, until: Callable[[], bool] | None = None) -> None:
    """Let all *floors* work until nothing is under way there, or until *until* is true."""
    async with asyncio.timeout(20):
        while True:
            busy = [await floor.work() for floor in floors]
            if until() if until is not None else not any(busy):
                return
            await asyncio.sleep(0.001)
