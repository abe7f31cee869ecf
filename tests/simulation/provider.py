"""The paid providers in memory: in the words of the real fakes, with their ledger, and as mean."""

import functools
import io
import wave
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, Final, cast

import av
import httpx
import numpy as np
import orjson

from sceneloom.testing.fake_provider.answers import Answer
from sceneloom.testing.fake_provider.ark import TASKS_PATH, Ark
from sceneloom.testing.fake_provider.ledger import Entry, Ledger
from sceneloom.testing.fake_provider.openai import SPEECH_PATH, OpenAI
from sceneloom.testing.fake_provider.outputs import FILES, Outputs
from sceneloom.testing.fake_provider.scenario import Behaviour
from sceneloom.testing.fake_provider.tasks import Phase, Task
from sceneloom.testing.fake_provider.words import Family, Fault, Operation, Problem
from tests.fakes import START
from tests.simulation.clockwork import Clockwork, Process

HOST: Final = "https://provider.test"
ORDER_SECONDS: Final = 110.0
"""The longest way of an order: whoever ordered has given up after 120."""

CLIP_USD: Final = 0.15
SPEECH_USD: Final = 0.05


@functools.cache
def a_clip() -> bytes:
    """Return a small MP4 of five seconds."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=5)
        stream.width = stream.height = 64
        for _ in range(25):
            frame = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), dtype=np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return file.getvalue()


@functools.cache
def a_voice() -> bytes:
    """Return a second of silence as WAV."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(16_000))
    return file.getvalue()


class WorldTime:
    """The time of everybody but a worker whose clock jumps: true."""

    def __init__(self, clockwork: Clockwork) -> None:
        self._clockwork = clockwork

    def now(self) -> datetime:
        return START + timedelta(seconds=self._clockwork.now)

    def elapsed(self) -> float:
        return self._clockwork.now


@dataclass(frozen=True, slots=True)
class Question:
    """One request, as a dialect reads it and a scenario decides about it."""

    family: Family
    operation: Operation
    path: str
    task_id: str | None
    request: httpx.Request
    place: SimpleNamespace
    body: dict[str, Any]
    process: str


Decide = Callable[[Question], Behaviour]
"""The scenario: what happens to a request."""


class Providers:
    """Ark and OpenAI, with the ledger that judges."""

    def __init__(self, clockwork: Clockwork, decide: Decide) -> None:
        self.ledger = Ledger()
        self.tasks: dict[str, Task] = {}
        self._clockwork = clockwork
        self._decide = decide
        self._time = cast("Any", WorldTime(clockwork))
        outputs = Outputs(self._time)
        desk = cast("Any", None)  # what needs one is not asked here
        self._dialects: dict[Family, Ark | OpenAI] = {
            Family.TASKS: Ark(desk, outputs, self._time),
            Family.BLOCKING: OpenAI(desk, outputs, self._time),
        }

    def decide(self, request: httpx.Request, process: str) -> tuple[Question, Behaviour]:
        """Read *request* and settle what shall happen to it."""
        question = _read(request, process)
        return question, self._decide(question)

    def serve(self, question: Question, behaviour: Behaviour) -> Answer:
        """Answer a request that has arrived; whether the answer gets home is another question."""
        if question.operation is Operation.DOWNLOAD:
            return self._file(question, behaviour)
        dialect = self._dialects[question.family]
        acts = behaviour.accepted or not behaviour.goes_wrong or behaviour.fault is Fault.HALF_BODY
        answer = None
        if question.operation is Operation.SUBMIT:
            answer = self._order(question, behaviour, acts=acts)
        elif acts:
            answer = self._tell(question)
        if answer is None or behaviour.refuses:
            answer = dialect.problem(behaviour.error or Problem.UNAVAILABLE)
        return answer.dictated_by(behaviour)

    def _order(self, question: Question, behaviour: Behaviour, *, acts: bool) -> Answer | None:
        dialect = self._dialects[question.family]
        order = dialect.order(cast("Any", question.place), question.body)
        entry = self.ledger.receive(
            at=self._time.now(),
            family=question.family,
            operation=question.operation,
            method="POST",
            path=question.path,
            model=order.model,
            prompt=order.prompt,
            reference=question.request.headers.get("X-Client-Request-Id"),
        )
        if not acts:
            self._clockwork.note("refused", question.process, entry.reference or entry.prompt)
            return None
        task = Task(
            id=f"task-{len(self.tasks) + 1}",
            family=question.family,
            entry=entry.number,
            order=order,
            place=len(self.tasks),
            home=HOST,
            behaviour=behaviour,
            accepted_at=self._clockwork.now,
            created=self._time.now(),
        )
        self.tasks[task.id] = task
        cost = CLIP_USD if question.family is Family.TASKS else SPEECH_USD
        self.ledger.change(entry.number, accepted=True, task_id=task.id, cost_usd=cost)
        self._clockwork.note("accepted", question.process, task.id, entry.reference or entry.prompt)
        if question.family is Family.BLOCKING:
            return Answer(200, a_voice(), "audio/wav")
        return Answer.of({"id": task.id})

    def _tell(self, question: Question) -> Answer:
        ark = cast("Ark", self._dialects[Family.TASKS])
        now = self._clockwork.now
        if question.operation is Operation.LIST:
            listed = [task for task in self.tasks.values() if task.family is Family.TASKS]
            return Answer.of({"items": [ark._record(task) for task in listed if task.is_listed(now)]})
        task = self.tasks.get(question.task_id or "")
        if task is None or not task.is_known(now):
            return ark.problem(Problem.NOT_FOUND)
        if question.operation is Operation.POLL:
            return Answer.of(ark._record(task))
        if task.standing(now).phase is not Phase.QUEUED:
            return ark.problem(Problem.CONFLICT)
        task.cancelled_at = now
        self.ledger.change(task.entry, cancelled=True, refunded_usd=self._entry(task).cost_usd)
        return Answer.of({})

    def _file(self, question: Question, behaviour: Behaviour) -> Answer:
        if behaviour.goes_wrong:
            return Answer(behaviour.status or 503, b"later")
        content = a_clip()
        return Answer(
            200, content[: len(content) // 2] if behaviour.output.content == "truncated" else content
        )

    def _entry(self, task: Task) -> Entry:
        return next(entry for entry in self.ledger.entries(task_id=task.id) if entry.accepted)


class Internet(httpx.AsyncBaseTransport):
    """How the requests of one process reach the providers, and their answers the process."""

    def __init__(self, providers: Providers, process: Process, watch: Callable[[Question], None]) -> None:
        self._providers = providers
        self._process = process
        self._watch = watch

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        world = self._process.clockwork
        question, behaviour = self._providers.decide(request, self._process.name)
        self._watch(question)
        if behaviour.fault is Fault.DISCONNECT and not behaviour.accepted and world.happens(0.5):
            raise httpx.ConnectError("refused by the simulation", request=request)
        is_order = question.operation is Operation.SUBMIT
        there = world.between(0.01, ORDER_SECONDS if world.happens(0.1) else 3.0) if is_order else None
        answer = await self._process.ask(
            lambda: self._providers.serve(question, behaviour),
            there=there,
            back=behaviour.latency + world.between(0.01, 2.0),
        )
        match behaviour.fault:
            case Fault.HANG:
                raise httpx.ReadTimeout("hung by the simulation", request=request)
            case Fault.DISCONNECT:
                raise httpx.ReadError("cut by the simulation", request=request)
            case Fault.HALF_BODY:
                stream: Any = _Half(answer.body)
            case _:
                stream = _Whole(answer.body)
        return httpx.Response(
            answer.status,
            headers={"content-type": answer.content_type, **answer.headers},
            stream=stream,
            request=request,
        )


class _Whole(httpx.AsyncByteStream):
    def __init__(self, content: bytes) -> None:
        self._content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._content


class _Half(_Whole):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._content[: len(self._content) // 2]
        raise httpx.ReadError("cut in the middle by the simulation")


def _read(request: httpx.Request, process: str) -> Question:
    path = request.url.path
    operation, family, task_id = Operation.SUBMIT, Family.BLOCKING, None
    if path.startswith(FILES):
        operation, family, task_id = Operation.DOWNLOAD, Family.TASKS, path.split("/")[2]
    elif path == TASKS_PATH:
        family = Family.TASKS
        operation = Operation.SUBMIT if request.method == "POST" else Operation.LIST
    elif path.startswith(TASKS_PATH):
        family, task_id = Family.TASKS, path.rpartition("/")[2]
        operation = Operation.CANCEL if request.method == "DELETE" else Operation.POLL
    else:
        assert path == SPEECH_PATH
    body = orjson.loads(request.content) if request.method == "POST" else {}
    place = SimpleNamespace(path=path, headers=request.headers, query=request.url.params)
    return Question(family, operation, path, task_id, request, place, body, process)
