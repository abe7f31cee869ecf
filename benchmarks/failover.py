"""How soon the work of a worker goes on when it dies, and when it is restarted on purpose.

python -m benchmarks.failover [--projects 2000] [--json FILE]

A real Kafka, two workers with RocksDB and one standby, and as many open projects as are wanted, each with a
paid clip under way at the fake provider. One worker gets SIGKILL; later it gets SIGTERM, and is started again
under the same name of an instance. In between a new request goes to each partition.
"""

import argparse
import asyncio
import json
import logging
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import orjson
from aiohttp import web
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from rich.console import Console
from rich.table import Table

from benchmarks.process import share
from models.commands import SubmitProject
from sceneloom.brokers.kafka import KafkaBroker
from sceneloom.codec import encode
from sceneloom.settings import Settings
from sceneloom.testing.fake_provider import TEST_KEY, FakeProvider
from sceneloom.topic_admin import ensure_topics
from sceneloom.topics import PROJECT_EVENTS, PROJECT_REQUESTS, partition_of

KILL_SECONDS: Final = 15.0
RESTART_SECONDS: Final = 5.0
_PATIENCE: Final = 900.0
_NOT_OURS: Final = ("SCENELOOM_", "PYTHONDONTWRITEBYTECODE")
_TOLD_SECONDS: Final = 10.0
_STALLED_SECONDS: Final = 60.0
_HELD: Final = re.compile(r"custody\.partitions.*held=(\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """Seconds from the signal; `rebalances` are those that the peer saw. Polls follow their own schedule."""

    projects: int
    ended: float
    first_progress: float
    all_answered: float
    """When the new requests were answered, one on each partition; all sent once the worker had ended."""
    all_in_work: float
    half_polled: float
    all_polled: float
    rebalances: int


class Watched(FakeProvider):
    """A provider that remembers when each of its tasks was asked for last."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.polls: dict[str, list[float]] = {}

    def _app(self) -> web.Application:
        app = super()._app()

        @web.middleware
        async def note(request: web.Request, handler: Any) -> web.StreamResponse:
            if request.method == "GET":
                self.polls.setdefault(request.path.rpartition("/")[2], []).append(time.monotonic())
            response: web.StreamResponse = await handler(request)
            return response

        app.middlewares.append(note)
        return app


class Events:
    """When each project told that it was taken up again, or that its request was refused."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.resumed: dict[str, float] = {}
        self.answered: dict[str, float] = {}

    async def follow(self) -> None:
        """Read on, for ever."""
        kept = {"ProjectResumed": self.resumed, "ProjectRejected": self.answered}
        async with AIOKafkaConsumer(
            PROJECT_EVENTS, bootstrap_servers=self._settings.bootstrap, auto_offset_reset="earliest"
        ) as consumer:
            async for record in consumer:
                times = kept.get(orjson.loads(record.value)["type"])
                if times is not None:
                    times.setdefault(record.key.decode(), time.monotonic())


class Stage:
    """A broker, a provider and two workers."""

    def __init__(self, folder: Path, broker: KafkaBroker, provider: Watched) -> None:
        self.folder, self.provider = folder, provider
        self.settings = Settings(_env_file=None, broker=f"kafka://{broker.bootstrap}", partitions=8)
        self.workers: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, number: int) -> None:
        """Start worker *number* as its supervisor would, with its own data folder and instance."""
        own = {
            "BROKER": self.settings.broker,
            "STORE": "rocksdb",
            "STANDBYS": "1",
            "INSTANCE": f"worker-{number}",
            "DATA_FOLDER": str(self.folder / f"worker-{number}"),
            "ASSETS": str(self.folder / "assets"),
            "CLIP_PROVIDER": "ark",
            "ARK_KEY": TEST_KEY,
            "ARK_URL": f"{self.provider.url}/api/v3",
            "ARK_USD_PER_SECOND": "0.03",
            "PARALLEL_PAID": "64",
            "PAID_PER_MINUTE": "0",
            "ALLOW_PRIVATE_DOWNLOADS": "true",
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_OURS)}
        environment = kept | {f"SCENELOOM_{name}": value for name, value in own.items()}
        # An installed worker has its bytecode; this one has it from its second start on.
        environment["PYTHONPYCACHEPREFIX"] = str(self.folder / "bytecode")
        with self._log(number).open("ab") as log:
            command = [sys.executable, "-m", "sceneloom", "worker"]
            self.workers[number] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def held(self, number: int) -> list[int]:
        """Return how many partitions worker *number* held, after each of its rebalances."""
        log = self._log(number)
        return [int(held) for held in _HELD.findall(log.read_text(errors="replace"))] if log.exists() else []

    async def until(self, reached: Callable[[], bool], what: str) -> None:
        """Wait until *reached*. Raises `TimeoutError` that says *what* did not happen."""
        deadline = time.monotonic() + _PATIENCE
        while not reached():
            for number, worker in self.workers.items():
                if worker.poll() not in {None, -signal.SIGKILL}:
                    raise RuntimeError(f"worker {number} ended: {self._log(number).read_text()[-2000:]}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {_PATIENCE:g} s, {what}")
            await asyncio.sleep(0.05)

    async def until_shared(self) -> None:
        """Wait until each worker holds half of the partitions."""
        half = self.settings.partitions // 2
        await self.until(lambda: all(self.held(n)[-1:] == [half] for n in (1, 2)), "not evenly shared")

    async def until_ordered(self, count: int) -> None:
        """Wait until the provider has accepted *count* orders, and tell how it goes."""
        before, since, told = 0, time.monotonic(), 0.0
        while (there := len(self.provider.ledger.accepted())) < count:
            now = time.monotonic()
            if there > before:
                before, since = there, now
            if now - since > _STALLED_SECONDS:
                raise TimeoutError(f"{there} of {count} clips were ordered, and no more for a while")
            if now - told > _TOLD_SECONDS:
                told = now
                sys.stderr.write(f"{there} of {count} clips are ordered\n")
            await asyncio.sleep(0.5)

    async def submit(self, count: int) -> None:
        """Ask for *count* films of one clip, each in words of its own."""
        scenes = (
            {"prompt": f"slow waves, take {n}", "visual": "clip", "duration_seconds": 5} for n in range(count)
        )
        await self._send(
            {f"film-{n:05}": {"title": f"film {n}", "scenes": [scene]} for n, scene in enumerate(scenes)}
        )

    async def ask(self) -> set[str]:
        """Send a request that will be refused to each partition; return their projects."""
        names = {
            partition_of(name := f"asked-{uuid.uuid4()}", self.settings.partitions): name for _ in range(200)
        }
        await self._send({name: {"title": "empty", "scenes": []} for name in names.values()})
        return set(names.values())

    async def _send(self, requests: Mapping[str, object]) -> None:
        async with AIOKafkaProducer(bootstrap_servers=self.settings.bootstrap, linger_ms=20) as producer:
            for name, request in requests.items():
                command = SubmitProject(project_id=name, request=request)
                await producer.send(PROJECT_REQUESTS, encode(command), name.encode())

    def end(self) -> None:
        """End what was started."""
        for worker in self.workers.values():
            worker.kill()
            worker.wait()

    def _log(self, number: int) -> Path:
        return self.folder / f"worker-{number}.log"


async def measure(count: int, folder: Path) -> dict[str, Gap]:
    """Return what each way to end a worker costs, with *count* open projects."""
    broker = KafkaBroker(folder / "kafka")
    await asyncio.to_thread(broker.start)
    try:
        scenario = {"defaults": {"cost_usd": 0.15, "running": 1_000_000}}
        async with Watched(scenario) as provider:
            stage = Stage(folder, broker, provider)
            try:
                return await _measured(stage, count)
            finally:
                stage.end()
    finally:
        await asyncio.to_thread(broker.stop)


async def _measured(stage: Stage, count: int) -> dict[str, Gap]:
    await ensure_topics(stage.settings)
    events = Events(stage.settings)
    following = asyncio.create_task(events.follow())
    for number in (1, 2):
        stage.start(number)
    await stage.until_shared()
    await stage.submit(count)
    await stage.until_ordered(count)
    await _polled_since(stage, time.monotonic(), _tasks(stage))

    async def killed() -> None:
        stage.workers[1].kill()
        await asyncio.to_thread(stage.workers[1].wait)

    async def restarted() -> None:
        stage.workers[1].send_signal(signal.SIGTERM)
        await asyncio.to_thread(stage.workers[1].wait)
        stage.start(1)

    kill = await _gap(stage, events, killed)
    stage.start(1)
    await stage.until_shared()
    await _polled_since(stage, time.monotonic(), _tasks(stage))
    restart = await _gap(stage, events, restarted)
    following.cancel()
    if len(stage.provider.ledger.accepted()) != count:
        raise RuntimeError("a clip was ordered twice")
    return {"kill -9": kill, "restart": restart}


async def _gap(stage: Stage, events: Events, interrupt: Callable[[], Awaitable[None]]) -> Gap:
    known, tasks = len(stage.held(2)), _tasks(stage)
    events.resumed.clear()
    began = time.monotonic()
    await interrupt()
    ended = time.monotonic() - began
    asked = await stage.ask()
    await stage.until(lambda: bool(events.resumed), "nothing went on")
    await stage.until(lambda: asked <= events.answered.keys(), "not all requests were answered")
    partitions = stage.settings.partitions

    def missing() -> set[str]:
        taken_up = {partition_of(name, partitions) for name in events.resumed}
        return {name for name in tasks if partition_of(name, partitions) in taken_up} - events.resumed.keys()

    await stage.until(lambda: not missing(), "not all went on")
    times = sorted(at - began for at in events.resumed.values())
    polled = await _polled_since(stage, began, {name: tasks[name] for name in events.resumed})
    return Gap(
        projects=len(times),
        ended=round(ended, 2),
        first_progress=round(times[0], 2),
        all_answered=round(max(events.answered[name] for name in asked) - began, 2),
        all_in_work=round(times[-1], 2),
        half_polled=round(share(polled, 0.5), 1),
        all_polled=round(polled[-1], 1),
        rebalances=len(stage.held(2)) - known,
    )


def _tasks(stage: Stage) -> dict[str, str]:
    """Return the task of each project, which its prompt tells."""
    entries = stage.provider.ledger.accepted()
    return {f"film-{int(entry.prompt.rpartition(' ')[2]):05}": str(entry.task_id) for entry in entries}


async def _polled_since(stage: Stage, began: float, tasks: Mapping[str, str]) -> list[float]:
    """Wait until each of *tasks* was polled after *began*; return after how many seconds, sorted."""
    polls = stage.provider.polls
    wanted = tasks.values()
    await stage.until(
        lambda: all(polls.get(task, [0.0])[-1] > began for task in wanted), "not all were polled"
    )
    return sorted(next(at for at in polls[task] if at > began) - began for task in tasks.values())


def main() -> int:
    """Measure, tell, and return 1 where it took longer than promised."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failover", description=__doc__)
    parser.add_argument("--projects", type=int, default=2000, help="open projects (default: 2000)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured here too")
    chosen = parser.parse_args()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    if chosen.projects < 1:
        parser.error("--projects must be 1 or more")
    with tempfile.TemporaryDirectory(prefix="sceneloom-failover-") as folder:
        gaps = asyncio.run(measure(chosen.projects, Path(folder)))
    most = {"kill -9": KILL_SECONDS, "restart": RESTART_SECONDS}
    kept = all(gap.first_progress <= most[name] for name, gap in gaps.items())
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "load": os.getloadavg()}
    told = {"machine": machine, **{name: asdict(gap) for name, gap in gaps.items()}, "kept": kept}
    if chosen.json:
        chosen.json.write_text(json.dumps(told, indent=2) + "\n", "utf-8")
    table = Table("what", *gaps)
    for what in asdict(gaps["restart"]):
        table.add_row(what.replace("_", " "), *(str(getattr(gap, what)) for gap in gaps.values()))
    Console().print(table, f"load {machine['load']}, {machine['cores']} cores")
    promise = f"{KILL_SECONDS:g} s after kill -9, {RESTART_SECONDS:g} s after a restart"
    Console().print(f"promise kept: {promise}" if kept else f"PROMISE NOT KEPT: {promise}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
