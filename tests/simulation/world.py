"""One world: a log, providers, a store, workers that die and come back, a user, and what breaks."""

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final, cast

import httpx
import orjson
from pydantic import SecretStr

from models.commands import ApproveResend, CancelProject, SubmitProject
from models.credit_messages import GrantCredits
from models.job import Job
from models.ports import Clock
from models.work import Decision, JobKind, Offer, Output
from models.work import Question as Asked
from sceneloom.accounts import Account
from sceneloom.app import create_app
from sceneloom.custody import Custody
from sceneloom.outside import Outside, create_admission
from sceneloom.paid import paid_suppliers
from sceneloom.providers.wire import open_client
from sceneloom.settings import Settings
from sceneloom.testing.fake_provider.words import Family, Operation
from sceneloom.topics import (
    CREDIT_REQUESTS,
    JOBS_TABLE,
    PROJECT_EVENTS,
    PROJECT_REQUESTS,
    PROJECTS_TABLE,
    changelog_name,
    partition_of,
)
from sceneloom.workshop.makers import keep
from sceneloom.workshop.supplier import Progress
from sceneloom.workshop.workshop import Supplier, Workshop
from tests.fakes import START
from tests.simulation import faust_double
from tests.simulation.clockwork import Clockwork, Process
from tests.simulation.kafka import Group, Link, Log, Producer, Record
from tests.simulation.plan import Mood, Plan, Trouble
from tests.simulation.provider import CLIP_USD, HOST, SPEECH_USD, Internet, Providers, Question
from tests.simulation.storage import Assets, Storage

_KEY: Final = SecretStr("a-key")
USER: Final = "u1"
GRANTED: Final = 50_000_000


@cache
def settings_for(*, with_credits: bool, partitions: int) -> Settings:
    """Return the settings of every worker."""
    return Settings(
        _env_file=None,
        partitions=partitions,
        clip_provider="ark",
        speech_provider="openai",
        image_provider="openai",
        credits="table" if with_credits else "off",
        confirm_seconds=1800.0,
        accounts={
            "ark": Account(key=_KEY, url=f"{HOST}/api/v3", usd_per_second=CLIP_USD / 5, resolution="720p"),
            "openai": Account(key=_KEY, url=f"{HOST}/v1", speech_usd=SPEECH_USD, image_usd=SPEECH_USD),
        },
    )


class JumpingClock:
    """The wall clock of one worker: true, but for its jumps."""

    def __init__(self, clockwork: Clockwork) -> None:
        self._clockwork = clockwork
        self.ahead = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self._clockwork.now + self.ahead)


class Projector:
    """Makes films by no ffmpeg: a local maker that takes its time."""

    def __init__(self, assets: Assets, clockwork: Clockwork) -> None:
        self._assets = assets
        self._clockwork = clockwork

    async def make(self, job: Job, *, progress: Progress) -> Output:
        await asyncio.sleep(self._clockwork.between(0.1, 5.0))
        progress(0.5)
        await asyncio.sleep(self._clockwork.between(0.1, 5.0))
        url = await keep(self._assets, job.request.model_dump_json().encode(), media_type="video/mp4")
        return Output(url=url, media_type="video/mp4", seconds=10.0)


class Worker:
    """One process with the real worker in it."""

    def __init__(self, world: "World", slot: int, name: str) -> None:
        self.slot = slot
        self.clock = JumpingClock(world.clockwork)
        self.link = Link(world.clockwork)
        self.process = Process(world.clockwork, name)  # type: ignore[abstract]  # has all that is asked of it
        self.process.ends = lambda why: world.end(self, why)
        self.producer = Producer(world.log, self.process, self.link, slow=world.plan.slow_broker)
        self.app: faust_double.App | None = None
        self._world = world

    async def main(self) -> None:
        """Do what `sceneloom worker` does."""
        world = self._world
        transport = Internet(world.providers, self.process, world.watch)
        self.process.client = open_client(transport=transport, trust_env=False)
        settings = world.settings
        self.app = cast("faust_double.App", create_app(settings, self._outside(settings)))
        self.app.connect(
            log=world.log,
            group=world.group,
            producer=self.producer,
            link=self.link,
            ends=self.process.ends,
        )
        await self.app.run()

    def _outside(self, settings: Settings) -> Outside:
        world, clock = self._world, cast("Clock", self.clock)
        assets = Assets(world.storage, self.process)
        client = cast("httpx.AsyncClient", self.process.client)
        film = Supplier(
            kind=JobKind.RENDER,
            offer=Offer(provider="ffmpeg", model="film-1"),
            maker=Projector(assets, world.clockwork),
            repeatable=True,
            parallel=1,
        )
        workshop = Workshop(
            suppliers=[film, *paid_suppliers(settings, assets, client=client, clock=clock)],
            usual={
                JobKind.IMAGE: "openai",
                JobKind.SPEECH: "openai",
                JobKind.CLIP: "ark",
                JobKind.RENDER: "ffmpeg",
            },
            assets=assets,
        )
        return Outside(clock=clock, admission=create_admission(workshop, assets), workshop=workshop)

    @property
    def custody(self) -> Any:
        """What watches the partitions, once the worker has begun to work."""
        services = self.app.services if self.app else ()
        return next((service for service in services if isinstance(service, Custody)), None)

    def has(self, project_id: str) -> bool:
        """Tell whether this worker knows itself to be the owner of the project."""
        app = self.app
        if app is None or app.rebalancing or app.in_recovery:
            return False
        return partition_of(project_id, self._world.plan.partitions) in app._active


class World:
    """Everything that there is in one simulation."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.clockwork = Clockwork(plan.seed)
        self.settings = settings_for(with_credits=plan.credits, partitions=plan.partitions)
        self.log = Log(self.clockwork, partitions=plan.partitions)
        self.group = Group(self.clockwork, self.log)
        self.storage = Storage(self.clockwork, slow=plan.slow_store)
        self.providers = Providers(self.clockwork, Mood(plan, self.clockwork.random))
        self.workers: list[Worker] = []
        self.dead: list[Worker] = []
        self.violations: list[str] = []
        self.approved: dict[str, int] = {}
        """How often somebody has approved another call for a job."""
        self.crashes = 0
        self.last_trouble = 0.0
        self.projects = [f"p{number + 1}" for number in range(plan.projects)]
        self._starts = 0
        self._troubles = list(plan.troubles)

    # -- the beginning

    def begin(self) -> None:
        """Start the workers, and let the user ask for films."""
        self.log.listen(self._read)
        for slot in range(self.plan.workers):
            self.start(slot)
        if self.plan.credits:
            grant = GrantCredits(user_id=USER, grant_id="g1", micros=GRANTED)
            self.log.publish(CREDIT_REQUESTS, USER, grant.model_dump_json().encode())
        for project in self.projects:
            command = SubmitProject(
                project_id=project, command_id=f"c-{project}", request=self._request(project)
            )
            self._ask(command)

    def _request(self, project: str) -> dict[str, Any]:
        return {
            "title": f"Film {project}",
            "user_id": USER,
            "aspect_ratio": "1:1",
            "scenes": [
                {
                    "prompt": f"{project} shows {number}",
                    "visual": "clip",
                    **({"narration": f"{project} tells {number}."} if self.plan.narrated else {}),
                }
                for number in range(1, self.plan.clips + 1)
            ],
        }

    def _ask(self, command: Any) -> None:
        self.log.publish(PROJECT_REQUESTS, command.project_id, command.model_dump_json().encode())

    # -- workers

    def start(self, slot: int) -> None:
        """Start a worker, as a supervisor does."""
        self._starts += 1
        worker = Worker(self, slot, f"w{slot}.{self._starts}")
        self.workers.append(worker)
        self.clockwork.note("start", worker.process.name)
        worker.process.start(worker.main)

    def crash(self, worker: Worker) -> None:
        """Kill a worker as by kill -9: not another line of it runs."""
        self.crashes += 1
        self.clockwork.note("crash", worker.process.name)
        self._bury(worker, arrives=0.5)

    def end(self, worker: Worker, why: str) -> None:
        """Hear that a worker ends by itself."""
        if worker.process.is_alive:
            self.clockwork.note("end", worker.process.name, why)
            self._bury(worker, arrives=0.5 if worker.link.is_up and not why.startswith("exit") else 0.0)

    def _bury(self, worker: Worker, *, arrives: float) -> None:
        worker.process.kill(arrives)
        worker.producer.land_some(arrives)
        self.workers.remove(worker)
        self.dead.append(worker)
        if worker.app is not None:
            self.group.miss(worker.app)
        self.last_trouble = self.clockwork.now
        self.clockwork.later(self.clockwork.between(0.5, 8.0), lambda: self.start(worker.slot))

    # -- what breaks

    def trouble(self, happened: int) -> None:
        """Let break what is due after so much has *happened*."""
        while self._troubles and self._troubles[0].at <= happened:
            self._break(self._troubles.pop(0))

    def _break(self, trouble: Trouble) -> None:  # noqa: C901 -- one match over all kinds reads best whole
        dice = self.clockwork.random
        alive = [worker for worker in self.workers if worker.app is not None and not worker.process.is_frozen]
        self.last_trouble = self.clockwork.now
        self.clockwork.note("trouble", trouble.kind, trouble.amount)
        match trouble.kind:
            case "store":
                self.storage.go_away(trouble.amount)
            case "cancel":
                self._ask(CancelProject(project_id=dice.choice(self.projects), command_id="cancel"))
            case "shuffle":
                self.group.shuffle()
            case "duplicate":
                self._duplicate()
            case _ if not alive:
                pass
            case "crash":
                self.crash(dice.choice(alive))
            case "freeze":
                self._freeze(dice.choice(alive), trouble.amount)
            case "cut":
                self._cut(dice.choice(alive), trouble.amount)
            case "clock":
                dice.choice(alive).clock.ahead += trouble.amount
            case "stop":
                self._stop(dice.choice(alive))

    def _duplicate(self) -> None:
        """Have messages come again that came long ago, as from a producer that tries once more."""
        topics = (PROJECT_REQUESTS, "scene-requests", "job-events", "scene-results")
        records = [record for topic in topics for record in self.log.all(topic)]
        for record in self.clockwork.random.sample(records, min(5, len(records))):
            self.log.append(record.topic, record.partition, record.key, record.value, record.headers)

    def _freeze(self, worker: Worker, seconds: float) -> None:
        worker.process.freeze()
        assert worker.app is not None
        self.group.miss(worker.app)

        def wake() -> None:
            if worker.process.is_alive:
                self.clockwork.note("wake", worker.process.name)
                app = worker.app
                assert app is not None
                worker.process.thaw(lambda: self.group.heard_again(app))

        self.clockwork.later(seconds, wake)

    def _cut(self, worker: Worker, seconds: float) -> None:
        assert worker.app is not None
        worker.link.cut(seconds)
        self.clockwork.later(seconds, worker.app.wake, worker.process)
        self.group.miss(worker.app)
        self.group.heard_again(worker.app)

    def _stop(self, worker: Worker) -> None:
        """Stop a worker as planned: it lets paid calls end, and leaves the group."""

        async def stop() -> None:
            app = worker.app
            assert app is not None
            app.should_stop = True
            if worker.custody is not None:
                await worker.custody.stop()
            self.group.leave(app)
            worker.process.ends("stopped")

        worker.process.start(stop)

    # -- the user, and who looks over every shoulder

    def _read(self, record: Record) -> None:
        if record.topic == PROJECT_EVENTS and self.plan.answers:
            event = orjson.loads(record.value or b"{}")
            if event.get("type") == "ConfirmationNeeded":
                asked = Asked.model_validate(event["question"])
                self.clockwork.later(
                    self.clockwork.between(1.0, 900.0), lambda: self._decide(event["project_id"], asked)
                )

    def _decide(self, project_id: str, asked: Asked) -> None:
        """Look into the provider's console, and decide; sometimes wrongly, or for another order anyway."""
        dice = self.clockwork.random
        found = [
            e
            for e in self.providers.ledger.accepted()
            if e.reference == f"{asked.job_id}/{asked.attempt}.{asked.call}"
        ]
        decision, task = dice.choice((Decision.RESEND, Decision.RESEND, Decision.GIVE_UP)), None
        if asked.kind is JobKind.CLIP and found and dice.random() < 0.7:
            decision, task = Decision.ADOPT, found[0].task_id
        if decision is Decision.RESEND:
            self.approved[asked.job_id] = self.approved.get(asked.job_id, 0) + 1
        self._ask(
            ApproveResend(
                project_id=project_id,
                command_id=f"decide-{asked.job_id}-{asked.call}".replace("/", "-"),
                job_id=asked.job_id,
                decision=decision,
                provider_task_id=task,
            )
        )

    def watch(self, question: Question) -> None:
        """Look at a request at the moment it leaves: a paid one needs an announcement, and an owner."""
        if question.operation is not Operation.SUBMIT:
            return
        worker = next(worker for worker in self.workers if worker.process.name == question.process)
        job, call = self._job_of(question)
        self.clockwork.note("order", question.process, job, call)
        if not worker.has(job.partition("/")[0]):
            self.violations.append(f"{question.process} orders {job} {call}, which is not its own")
        if not self._is_announced(worker, job, call):
            self.violations.append(f"{question.process} orders {job} {call}, which is not announced")

    def _job_of(self, question: Question) -> tuple[str, tuple[int, int]]:
        if question.family is Family.TASKS:
            job, _, numbers = question.request.headers["X-Client-Request-Id"].rpartition("/")
            attempt, _, call = numbers.partition(".")
            return job, (int(attempt), int(call))
        for row in self.latest(JOBS_TABLE).values():
            if row["request"].get("text") == question.body["input"]:
                job = f"{row['project_id']}/{row['scene_id']}/{row['request']['kind']}"
                return job, (row["attempt"], row["postponed"])
        return "unknown", (0, 0)

    def _is_announced(self, worker: Worker, job: str, call: tuple[int, int]) -> bool:
        topic = changelog_name(self.settings, JOBS_TABLE)
        for record in reversed(self.log.all(topic)):
            if (
                record.key == job.encode()
                and (topic, record.partition, record.offset) in worker.producer.heard
            ):
                row = orjson.loads(record.value or b"{}")
                if row["submit"] == "intended" and (row["attempt"], row["postponed"]) == call:
                    return True
        return False

    def latest(self, table: str) -> dict[str, dict[str, Any]]:
        """Return the newest row of each key, as it is durable."""
        rows: dict[str, dict[str, Any]] = {}
        for record in self.log.all(changelog_name(self.settings, table)):
            row, key = orjson.loads(record.value or b"{}"), (record.key or b"").decode()
            if row["version"] >= rows.get(key, row)["version"]:
                rows[key] = row
        return rows

    # -- the end

    def unsettled(self) -> Iterator[str]:
        """Yield what is left to do, as far as anybody can see."""
        for worker in list(self.workers):
            if worker.custody is not None and (worker.custody.crashed or worker.custody._runner.crashed):
                self.end(worker, "a service of it crashed")
        if len(self.workers) < self.plan.workers:
            yield "a worker is down"
        for worker in self.workers:
            app, name = worker.app, worker.process.name
            if app is None or worker.custody is None or not app.flows or worker.process.is_frozen:
                yield f"{name} does not work"
                continue
            dealt = frozenset(p for p, owner in self.group.owners.items() if owner == name)
            if (app._generation, app._active) != (self.group.generation, dealt):
                yield f"{name} does not know yet what is dealt"
            topics = {topic for channel in app._channels for topic in channel.topics}
            yield from (f"{topic} is not read" for topic in sorted(topics) if not self.log.is_read(topic))
            runner = worker.custody._runner
            if runner.waiting or runner.in_work:
                yield f"{name} has jobs: {sorted({*runner._jobs, *runner._working})}"
        rows = self.latest(PROJECTS_TABLE)
        for project in self.projects:
            state = rows.get(project, {}).get("state")
            if state not in {"Completed", "Failed", "Cancelled"}:
                yield f"{project} is {state}"

    def bury(self) -> None:
        """Close what is left of all processes."""
        self.clockwork.end()
        for worker in [*self.workers, *self.dead]:
            worker.process.bury()
