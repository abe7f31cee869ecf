"""The whole system on one machine for one film: a broker in memory, a worker that may be killed, a folder."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from aiokafka import ConsumerRecord
from pydantic import SecretStr

from models.commands import RequestScene
from models.identifiers import job_id
from models.job_events import JobSucceeded
from models.snapshot import ProjectSnapshot
from models.work import Source
from sceneloom.brokers.embedded import EmbeddedBroker
from sceneloom.client import Reader, job_event_in, scene_request_in, snapshot_in
from sceneloom.settings import Settings
from sceneloom.topic_admin import ensure_topics
from sceneloom.topics import JOB_EVENTS, PROJECT_STATES, SCENE_REQUESTS

_STOP_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.2
_LOG_LINES: Final = 15
_WORKER: Final = ("-m", "sceneloom", "worker", "--until-stdin-closes")
_EXAMPLE: Final = Path("examples") / "lighthouse.yaml"


class WorkerDied(Exception):
    """The worker ended by itself; the message holds the end of its log."""


class NoExample(Exception):
    """The example request is not where this program lies."""


def example() -> Path:
    """Return the example request: in the package, or beside it in a source tree. Raises `NoExample`."""
    package = Path(__file__).parent
    for folder in (package, package.parent):
        if (folder / _EXAMPLE).is_file():
            return folder / _EXAMPLE
    raise NoExample(f"{_EXAMPLE} is not part of this installation: give a request, `sceneloom demo FILE`")


class Demo:
    """One worker at a time, with everything it writes in *folder*, whatever the user's own settings say.

    *more* are further settings, by their names in `Settings`.
    """

    def __init__(self, folder: Path, bootstrap: str, more: Mapping[str, Any]) -> None:
        self._chosen: dict[str, Any] = {
            "broker": f"kafka://{bootstrap}",
            "embedded_broker": True,
            "partitions": 2,
            "data_folder": folder / "data",
            # The embedded broker lets a worker join after half of this.
            "session_seconds": 2.0,
            "commit_seconds": 0.5,
            **more,
        }
        self.settings = Settings.model_construct(**self._chosen)
        self.log = folder / "worker.log"
        self._folder = folder
        self._worker: subprocess.Popen[bytes] | None = None
        self._groups: list[int] = []

    def start_worker(self) -> None:
        """Start a worker in a process group of its own; it also ends when we are killed."""
        environment = {name: text for name, text in os.environ.items() if not name.startswith("SCENELOOM_")}
        environment |= {f"SCENELOOM_{name.upper()}": _plain(value) for name, value in self._chosen.items()}
        with self.log.open("ab") as output:
            self._worker = subprocess.Popen(
                [sys.executable, *_WORKER],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env=environment,
                start_new_session=True,
            )
        self._groups.append(self._worker.pid)

    def kill_worker(self) -> int:
        """End the worker, and nothing but the worker, with SIGKILL; return its process id."""
        worker, self._worker = self._worker, None
        if worker is None:
            raise WorkerDied("there is no worker to kill")
        worker.kill()
        worker.wait()
        _let_go(worker)
        return worker.pid

    async def guard(self) -> NoReturn:
        """Wait for ever. Raises `WorkerDied` when the worker ends by itself."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            code = self._worker.poll() if self._worker else None
            if code is not None:
                raise WorkerDied(
                    f"the worker ended with exit code {code}; {self.log} ends with:\n{self.last_lines()}"
                )

    def last_lines(self) -> str:
        """Return the end of the worker's log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-_LOG_LINES:])

    def close(self) -> None:
        """End the worker in good order, then whatever is left of it and of the workers before it."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(_STOP_SECONDS)
        for group in self._groups:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        if worker is not None:
            worker.wait()
            _let_go(worker)


@contextlib.asynccontextmanager
async def running(folder: Path, **more: Any) -> AsyncIterator[Demo]:
    """Run the embedded broker and a worker with *more* settings, and leave no process behind."""
    broker = EmbeddedBroker(folder=folder)
    try:
        await asyncio.to_thread(broker.start)
        demo = Demo(folder, broker.bootstrap, more)
        try:
            await ensure_topics(demo.settings)
            demo.start_worker()
            yield demo
        finally:
            demo.close()
    finally:
        broker.stop()


@dataclass(frozen=True, slots=True)
class Crash:
    """What a worker that was killed had finished, and what was in its hands, as job ids."""

    pid: int
    finished: frozenset[str]
    in_flight: frozenset[str]


async def crash(demo: Demo, project_id: str) -> Crash:
    """Kill the worker once an asset is finished and counted while others are in flight; start another."""
    jobs = _JobLog()
    topics = (SCENE_REQUESTS, JOB_EVENTS, PROJECT_STATES)
    async with Reader(demo.settings, *topics, project_id=project_id) as reader:
        counted = False
        async for record in reader.news():
            jobs.note(record)
            counted = counted or _counts_an_asset(snapshot_in(record))
            if counted and jobs.finished and jobs.in_flight:
                break
    killed = Crash(demo.kill_worker(), frozenset(jobs.finished), frozenset(jobs.in_flight))
    demo.start_worker()
    return killed


@dataclass(frozen=True, slots=True)
class Proof:
    """What job-events say after a crash: how many assets there are, and whether one was made twice."""

    assets: int
    kept: int
    started_again: int
    made_twice: tuple[str, ...]


async def prove(settings: Settings, project_id: str, crash: Crash) -> Proof:
    """Read every job event of the project, and compare what came before the *crash* with what came after."""
    jobs = _JobLog()
    async with Reader(settings, SCENE_REQUESTS, JOB_EVENTS, project_id=project_id) as reader:
        async for record in reader.history():
            jobs.note(record)
    return Proof(
        assets=len(jobs.finished),
        kept=len(crash.finished & jobs.finished),
        started_again=len(crash.in_flight & jobs.finished),
        made_twice=tuple(sorted(job for job, outputs in jobs.made.items() if len(outputs) > 1)),
    )


class _JobLog:
    """Which jobs were asked for, and what was made for each, as the topics tell it.

    What a worker told right before it was killed is told again by the next one, which finds it in the store.
    """

    def __init__(self) -> None:
        self.asked: set[str] = set()
        self.finished: set[str] = set()
        self.made: defaultdict[str, set[str]] = defaultdict(set)

    @property
    def in_flight(self) -> set[str]:
        return self.asked - self.finished

    def note(self, record: ConsumerRecord) -> None:
        request = scene_request_in(record)
        if request is not None:
            self.asked.update(_jobs_of(request))
        event = job_event_in(record)
        if isinstance(event, JobSucceeded):
            self.finished.add(event.job_id)
            if event.source is Source.MADE:
                self.made[event.job_id].add(event.output.url)


def _jobs_of(request: RequestScene) -> Iterable[str]:
    return (job_id(request.project_id, request.scene_id, want.kind) for want in request.wants)


def _counts_an_asset(snapshot: ProjectSnapshot | None) -> bool:
    return snapshot is not None and any(
        scene.image_url or scene.audio_url or scene.clip_url for scene in snapshot.scenes
    )


def _plain(value: object) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def _let_go(worker: subprocess.Popen[bytes]) -> None:
    if worker.stdin:
        worker.stdin.close()
