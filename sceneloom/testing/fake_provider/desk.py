"""Takes every request: checks the key, writes the ledger, asks the director, and only then acts."""

import json
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any
from uuid import uuid4

from aiohttp import web

from sceneloom.testing.fake_provider import answers
from sceneloom.testing.fake_provider.answers import Answer
from sceneloom.testing.fake_provider.clocks import Time
from sceneloom.testing.fake_provider.dialect import Dialect, problem_of
from sceneloom.testing.fake_provider.director import Call, Director
from sceneloom.testing.fake_provider.gate import Gate
from sceneloom.testing.fake_provider.hanging import Hanging
from sceneloom.testing.fake_provider.ledger import Entry, Ledger
from sceneloom.testing.fake_provider.reception import Reception
from sceneloom.testing.fake_provider.scenario import Behaviour, Scenario
from sceneloom.testing.fake_provider.tasks import BadOrder, Order, Phase, Task
from sceneloom.testing.fake_provider.webhooks import Webhooks
from sceneloom.testing.fake_provider.words import Family, Fault, Operation, Problem

_PREFIXES = {Family.TASKS: "cgt-", Family.QUEUE: "", Family.BLOCKING: "call-"}


@dataclass(frozen=True, slots=True)
class _Visit:
    """One request that got past the reception, and what shall happen to it."""

    request: web.Request
    dialect: Dialect
    entry: Entry
    behaviour: Behaviour


class Desk:
    """Keeps the tasks of all families."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        clock: Time,
        ledger: Ledger,
        webhooks: Webhooks,
        keys: Collection[str],
    ) -> None:
        self._clock = clock
        self._ledger = ledger
        self._webhooks = webhooks
        self._reception = Reception(ledger, clock, keys)
        self._tasks: dict[str, Task] = {}
        self._lines: defaultdict[Family, deque[Task]] = defaultdict(deque)
        self._places: Counter[Family] = Counter()
        self._repeats: dict[tuple[Family, str], tuple[str, str]] = {}
        self._hanging = Hanging()
        self.play(scenario)

    def play(self, scenario: Scenario) -> None:
        """Go on with *scenario*; tasks keep the behaviour that they were accepted with."""
        self.scenario = scenario
        self._director = Director(scenario)
        self._gate = Gate(scenario.limits, self._clock)

    def reset(self) -> None:
        """Forget all tasks, keys and counts, and let go of the clients that hang."""
        self._tasks.clear()
        self._lines.clear()
        self._repeats.clear()
        self._hanging.release()
        self.play(self.scenario)

    def close(self) -> None:
        """Let go of the clients that hang."""
        self._hanging.release()

    def task(self, task_id: str, family: Family | None = None) -> Task | None:
        """Return the task if the provider (still) knows it."""
        task = self._tasks.get(task_id)
        is_known = task is not None and task.is_known(self._clock.elapsed()) and family in {None, task.family}
        return task if is_known else None

    def listed(self, family: Family) -> Iterator[Task]:
        """Yield the tasks that the list of *family* shows, the newest first."""
        now = self._clock.elapsed()
        for task in reversed(self._tasks.values()):
            if task.family is family and task.is_listed(now):
                yield task

    def queued_before(self, task: Task) -> int:
        """Return how many tasks of its family came before *task* and after the oldest that still waits."""
        now, line = self._clock.elapsed(), self._lines[task.family]
        while line and line[0].standing(now).phase is not Phase.QUEUED:
            line.popleft()
        return max(0, task.place - line[0].place) if line else 0

    def cancel(self, task: Task) -> None:
        """Stop *task* now, and give the money back unless failures are billed."""
        task.cancelled_at = self._clock.elapsed()
        refund = {} if task.behaviour.bill_failures else {"refunded_usd": task.behaviour.cost_usd}
        self._ledger.change(task.entry, cancelled=True, **refund)
        self._webhooks.changed(task)

    async def take_order(self, request: web.Request, dialect: Dialect) -> web.StreamResponse:
        """Answer a request that makes a job."""
        raw = await request.read()
        try:
            order = dialect.order(request, _object_in(raw))
        except BadOrder as bad:
            entry = self._reception.receive(request, Call(dialect.family, Operation.SUBMIT, request.path))
            bad_request = dialect.problem(Problem.INVALID_REQUEST, bad.message)
            return self._send(entry, self._reception.refusal(request, dialect) or bad_request)
        call = Call(dialect.family, Operation.SUBMIT, request.path, model=order.model, prompt=order.prompt)
        entry = self._reception.receive(request, call, reference=order.reference)
        refusal = self._reception.refusal(request, dialect)
        if refusal is None and not self._gate.lets_in():
            refusal = self._gate.closed(dialect)
        if refusal is not None:
            return self._send(entry, refusal)
        visit = _Visit(request, dialect, entry, self._direct(entry, call))
        fingerprint = sha256(request.path_qs.encode() + b"\n" + raw).hexdigest()
        return await self._perform(visit, lambda: self._decide(visit, order, fingerprint))

    async def take_question(
        self,
        request: web.Request,
        dialect: Dialect,
        operation: Operation,
        answer: Callable[[], Awaitable[Answer]],
        *,
        needs_key: bool = True,
    ) -> web.StreamResponse:
        """Answer a request about one task, or about all, with *answer* unless a rule wants otherwise."""
        task_id = request.match_info.get("id")
        task = self._tasks.get(task_id) if task_id else None
        call = Call(dialect.family, operation, request.path, task_id=task_id)
        if task is not None:
            call = replace(call, model=task.order.model, prompt=task.order.prompt)
        entry = self._reception.receive(request, call)
        refusal = self._reception.refusal(request, dialect) if needs_key else None
        if refusal is not None:
            return self._send(entry, refusal)
        return await self._perform(_Visit(request, dialect, entry, self._direct(entry, call)), answer)

    def _direct(self, entry: Entry, call: Call) -> Behaviour:
        behaviour, rule = self._director.direct(call)
        if rule is not None:
            self._ledger.change(entry.number, rule=rule)
        return behaviour

    async def _perform(self, visit: _Visit, decide: Callable[[], Awaitable[Answer]]) -> web.StreamResponse:
        behaviour = visit.behaviour
        await self._clock.sleep(behaviour.latency)
        acts = behaviour.accepted or not behaviour.goes_wrong or behaviour.fault is Fault.HALF_BODY
        answer = await decide() if acts else None
        if answer is None or behaviour.refuses:
            answer = visit.dialect.problem(behaviour.error or problem_of(behaviour.status or 500))
        if behaviour.fault is None:
            return self._send(visit.entry, answer.dictated_by(behaviour))
        self._ledger.change(visit.entry.number, fault=str(behaviour.fault))
        match behaviour.fault:
            case Fault.HALF_BODY:
                return await answers.send_half(visit.request, answer)
            case Fault.HANG:
                await self._hanging.wait(visit.request)
            case Fault.DISCONNECT:
                pass
        return answers.disconnect(visit.request)

    async def _decide(self, visit: _Visit, order: Order, fingerprint: str) -> Answer:
        dialect, honours = visit.dialect, visit.behaviour.idempotency
        key = visit.request.headers.get("Idempotency-Key")
        if key is not None and honours == "refused":
            return dialect.problem(Problem.INVALID_REQUEST, "The header Idempotency-Key is not supported.")
        known = self._repeats.get((dialect.family, key)) if key is not None else None
        if known is not None and honours == "honoured":
            return await self._repeat(visit, known, fingerprint)
        if self._gate.is_full(self._tasks.values()):
            return self._gate.closed(dialect)
        task = self._accept(visit, order)
        if key is not None:
            self._repeats.setdefault((dialect.family, key), (task.id, fingerprint))
        if dialect.family is Family.BLOCKING and task.ends_at is None:
            await self._hanging.wait(visit.request)
        return await dialect.accepted(task)

    async def _repeat(self, visit: _Visit, known: tuple[str, str], fingerprint: str) -> Answer:
        task_id, first = known
        if first != fingerprint:
            return visit.dialect.problem(
                Problem.CONFLICT, "This Idempotency-Key was used before, with another request."
            )
        self._ledger.change(visit.entry.number, repeats=task_id)
        return await visit.dialect.accepted(self._tasks[task_id])

    def _accept(self, visit: _Visit, order: Order) -> Task:
        """Make the task and write down that it is billed, both before any answer leaves."""
        task = Task(
            id=f"{_PREFIXES[visit.dialect.family]}{uuid4()}",
            family=visit.dialect.family,
            entry=visit.entry.number,
            order=order,
            place=self._places[visit.dialect.family],
            home=f"{visit.request.scheme}://{visit.request.host}",
            behaviour=visit.behaviour,
            accepted_at=self._clock.elapsed(),
            created=self._clock.now(),
        )
        self._tasks[task.id] = task
        self._places[task.family] += 1
        self._lines[task.family].append(task)
        self._ledger.change(
            visit.entry.number, accepted=True, task_id=task.id, cost_usd=visit.behaviour.cost_usd
        )
        self._plan_refund(task)
        self._webhooks.follow(task, visit.dialect)
        return task

    def _plan_refund(self, task: Task) -> None:
        if task.ends_at is None or task.behaviour.outcome == "succeeded" or task.behaviour.bill_failures:
            return

        async def refund() -> None:
            self._ledger.change(task.entry, refunded_usd=task.behaviour.cost_usd)

        self._clock.later(task.ends_at - self._clock.elapsed(), refund)

    def _send(self, entry: Entry, answer: Answer) -> web.StreamResponse:
        self._ledger.change(entry.number, answer=answer.status)
        return answers.respond(answer)


def _object_in(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadOrder("The body is not valid JSON.") from error
    if not isinstance(body, dict):
        raise BadOrder("The body is not a JSON object.")
    return body
