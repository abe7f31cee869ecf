"""A stage for one test: topics of its own on a broker, workers, and what comes out."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import orjson
from aiokafka import AIOKafkaProducer, ConsumerRecord

from models.snapshot import ProjectSnapshot
from sceneloom.client import Reader, read_state
from sceneloom.clock import SystemClock
from sceneloom.monitoring.watch import Watch
from sceneloom.settings import Settings
from sceneloom.topics import JOB_EVENTS, PROJECT_REQUESTS, PROJECT_STATES, topic_name
from tests.e2e.house import Ledger

PATIENCE_SECONDS: Final = 120.0


class RunningWorker(Protocol):
    """A process of a worker."""

    pid: int

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while the worker runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code. Raises `subprocess.TimeoutExpired`."""

    def send_signal(self, sig: int, /) -> None:
        """Send a signal."""

    def kill(self) -> None:
        """End the worker as kill -9 does."""


class Stage:
    """The system under test, as a producer, a consumer and an operator see it."""

    session_seconds = 6
    """How long a worker may be silent: the least that Kafka allows."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self.ledger = Ledger(folder / "ledger.txt")
        self.workers: list[RunningWorker] = []
        self.started = 0

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of a process that works on this stage's topics."""
        return {
            **os.environ,
            "SCENELOOM_BROKER": self.settings.broker,
            "SCENELOOM_TOPIC_PREFIX": self.settings.topic_prefix,
            "SCENELOOM_PARTITIONS": str(self.settings.partitions),
            **more,
        }

    def start_worker(
        self, module: str = "tests.e2e.house", *, folder: str = "", **house: str
    ) -> subprocess.Popen[bytes]:
        """Start a worker with a fresh folder for its data, or with the one that is named."""
        environment, log_file = self.next_worker(folder, **house)
        with log_file.open("wb") as log:
            worker = subprocess.Popen([sys.executable, "-m", module], env=environment, stdout=log, stderr=log)
        self.workers.append(worker)
        return worker

    def next_worker(self, folder: str = "", **house: str) -> tuple[dict[str, str], Path]:
        """Return the environment of the next worker, and the file for its log."""
        number = self.started
        self.started += 1
        usual = {
            "SCENELOOM_DATA_FOLDER": str(self.folder / (folder or f"worker-{number}")),
            "SCENELOOM_ASSETS": str(self.folder / "assets"),
            "SCENELOOM_SESSION_SECONDS": str(self.session_seconds),
            "SCENELOOM_COMMIT_SECONDS": "0.5",
            "HOUSE_LEDGER": str(self.folder / "ledger.txt"),
        }
        return self.environment(**usual | house), self.folder / f"worker-{number}.log"

    def log(self, number: int = 0) -> str:
        return (self.folder / f"worker-{number}.log").read_text(errors="replace")

    async def send(
        self, key: str | None, value: Mapping[str, Any] | bytes | None, topic: str = PROJECT_REQUESTS
    ) -> None:
        raw = value if isinstance(value, bytes) or value is None else orjson.dumps(value)
        await self.send_all([(key, raw)], topic)

    async def send_all(
        self,
        messages: Iterable[tuple[str | None, bytes | None]],
        topic: str = PROJECT_REQUESTS,
        partition: int | None = None,
    ) -> None:
        name = topic_name(self.settings, topic)
        async with AIOKafkaProducer(
            bootstrap_servers=self.settings.bootstrap, acks="all", max_request_size=8_000_000
        ) as producer:
            for key, value in messages:
                raw_key = None if key is None else key.encode()
                await producer.send_and_wait(name, value, key=raw_key, partition=partition)

    async def submit(self, project_id: str, request: Mapping[str, Any]) -> None:
        await self.send(
            project_id, {"type": "SubmitProject", "project_id": project_id, "request": dict(request)}
        )

    async def until(self, project_id: str, reached: Callable[[ProjectSnapshot], bool]) -> ProjectSnapshot:
        """Wait for a snapshot of the project that is as *reached* wants it."""
        latest: ProjectSnapshot | None = None
        for _ in range(int(PATIENCE_SECONDS / 0.2)):
            latest = await read_state(self.settings, project_id)
            if latest is not None and reached(latest):
                return latest
            for number, worker in enumerate(self.workers):
                assert worker.poll() in {None, -signal.SIGKILL}, self.log(number)[-3000:]
            await asyncio.sleep(0.2)
        where = latest and (latest.state, latest.version)
        raise AssertionError(f"not reached, but {where}\n{self.log(self.started - 1)[-2000:]}")

    async def until_committed(self) -> None:
        """Wait until the workers have committed all that is on their topics."""
        waiting = None
        async with Watch(self.settings, clock=SystemClock()) as watch:
            for _ in range(int(PATIENCE_SECONDS / 0.2)):
                waiting = (await watch.look()).group.waiting
                if waiting == 0:
                    return
                await asyncio.sleep(0.2)
        raise AssertionError(f"{waiting} messages are not committed\n{self.log(self.started - 1)[-2000:]}")

    async def until_all(
        self, names: Iterable[str], reached: Callable[[ProjectSnapshot], bool]
    ) -> dict[str, ProjectSnapshot]:
        """Wait until the latest snapshots of all projects *names* are as *reached* wants them."""
        latest: dict[str, ProjectSnapshot] = {}
        for _ in range(int(PATIENCE_SECONDS / 0.5)):
            for record in await self.records(PROJECT_STATES):
                latest[record.key.decode()] = ProjectSnapshot.model_validate_json(record.value)
            if all(name in latest and reached(latest[name]) for name in names):
                return {name: latest[name] for name in names}
            await asyncio.sleep(0.5)
        open_ones = [name for name in names if name not in latest or not reached(latest[name])]
        raise AssertionError(f"not reached: {open_ones}\n{self.log(self.started - 1)[-2000:]}")

    async def records(self, topic: str) -> list[ConsumerRecord]:
        """Return everything on *topic* now."""
        async with Reader(self.settings, topic) as reader:
            return [record async for record in reader.history()]

    async def succeeded(self) -> set[str]:
        """Return the jobs, as the ledger names them, whose success was reported."""
        events = [orjson.loads(record.value) for record in await self.records(JOB_EVENTS)]
        return {f"{e['job_id']} {e['attempt']}" for e in events if e["type"] == "JobSucceeded"}

    async def until_events(
        self, topic: str, wanted: Callable[[dict[str, Any]], bool], count: int
    ) -> list[dict[str, Any]]:
        """Wait until *count* messages on *topic* are *wanted*, and return those."""
        found: list[dict[str, Any]] = []
        for _ in range(int(PATIENCE_SECONDS / 0.2)):
            events = [orjson.loads(record.value) for record in await self.records(topic)]
            found = [event for event in events if wanted(event)]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.2)
        raise AssertionError(f"{len(found)} of {count} messages on {topic}\n{self.log()[-3000:]}")

    async def until_records(self, topic: str, count: int) -> list[ConsumerRecord]:
        """Wait until *topic* holds *count* messages, and return them."""
        records: list[ConsumerRecord] = []
        for _ in range(int(PATIENCE_SECONDS / 0.2)):
            records = await self.records(topic)
            if len(records) >= count:
                return records
            await asyncio.sleep(0.2)
        raise AssertionError(f"{len(records)} of {count} messages on {topic}\n{self.log()[-3000:]}")

    def end(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
            worker.wait(10)


def header(record: ConsumerRecord, name: str) -> str:
    """Return the header *name* of *record* as text."""
    return str(dict(record.headers)[name].decode())
