"""The job runner: works on the open jobs of this worker's partitions, and reports only through job-events.

It holds no truth. Its queue is built from the jobs table when partitions come and emptied when they go, and
whatever it learns becomes true only when the scenes agent has written it.
"""

import asyncio
import contextlib
import contextvars
import heapq
import itertools
import random
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from mode import Service

from models.errors import ErrorCode, ProviderFailure
from models.identifiers import event_id, share_of
from models.job import Job
from models.job_events import (
    JobEvent,
    JobFailed,
    JobPostponed,
    JobStillRunning,
    JobStopped,
    JobSubmitted,
    JobSucceeded,
    PollStalled,
    SubmitIntended,
    SubmitOutcomeUnknown,
    SubmitUnresolved,
)
from models.lifecycle import JobStatus, SubmitState
from models.policy import (
    CONFIRM_SECONDS,
    GRACE_SECONDS,
    RECONCILE_SECONDS,
    next_poll,
    retry_delay,
    slow_poll,
)
from models.ports import Absent, Adopted, Clock, Publisher, Reconciled, Several, TaskReport
from models.work import Output, Source
from sceneloom.assets.errors import AssetStoreUnavailable
from sceneloom.delivery import DeliveryFailed
from sceneloom.hints import Hints
from sceneloom.workshop.supplier import OutcomeUnknown
from sceneloom.workshop.workshop import Workshop

PROGRESS_SECONDS: Final = 0.5
"""Progress is reported at most this often."""

COLLECTS: Final = 3
"""How often the output of a finished task is fetched before it counts as missing."""

PAYING_SECONDS: Final = 150.0
"""How long a worker that is told to stop waits for the answers to calls that may cost money."""

AGAIN_SECONDS: Final = 5.0
"""When a job is tried again whose step failed by no fault of its provider, as when the store is away."""

LOST_SECONDS: Final = 1.0
"""How often a call that waits for its announcement looks whether the job is still ours."""

_log = structlog.get_logger(__name__)
_Call = tuple[str, int, int]


class TaskFailed(Exception):
    """The provider said that the task itself is over, without an output."""

    def __init__(self, failure: ProviderFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class JobRunner(Service):
    """Works on jobs when they are due, each in a task of its own.

    `durable` returns once every row written so far is acknowledged by the broker; `owns` tells whether this
    worker still has the partition of a project. Both are asked right before a call that may cost money.
    `taken` returns the task ids that jobs already have; a provider's list may lag by `grace_seconds`. A
    person has `confirm_seconds` to decide about a call of which nothing tells whether it was accepted.
    """

    def __init__(
        self,
        *,
        workshop: Workshop,
        publisher: Publisher,
        clock: Clock,
        durable: Callable[[], Awaitable[None]],
        owns: Callable[[str], bool],
        taken: Callable[[], Collection[str]] = frozenset,
        grace_seconds: float = GRACE_SECONDS,
        confirm_seconds: float = CONFIRM_SECONDS,
    ) -> None:
        super().__init__()
        self._workshop = workshop
        self._publisher = publisher
        self._clock = clock
        self._durable = durable
        self._owns = owns
        self._taken = taken
        self._grace = timedelta(seconds=grace_seconds)
        self._confirm = timedelta(seconds=confirm_seconds)
        self._jobs: dict[str, Job] = {}
        self._due: list[tuple[datetime, int, str]] = []
        self._numbers = itertools.count()
        self._wake = asyncio.Event()
        self._working: dict[str, asyncio.Task[None]] = {}
        self._intended: set[_Call] = set()
        self._written: dict[str, asyncio.Event] = {}
        self._reported: dict[str, _Call] = {}
        self._called: dict[str, _Call] = {}
        self._paying: set[str] = set()
        self._collects: dict[str, int] = {}
        self._due_of: dict[str, int] = {}
        self._looked_for: set[str] = set()
        self._hints = Hints()

    # -- the queue

    def take(self, job: Job, /) -> None:
        """Work on *job* when it is due; one already in work is not started a second time."""
        if self._is_reported(job):
            return
        name = job.job_id
        before = self._jobs.get(name)
        if before is not None and before.attempt != job.attempt:
            self._let_go(before)
        self._jobs[name] = job
        if name in self._written:
            self._written[name].set()
        elif name not in self._working:
            self._push(job)
        if job.status is JobStatus.CANCELLED:
            self._give_up(job.job_id)

    def hint(self, job: Job, provider_task_id: str | None, /) -> None:
        """Look at *job* at once if it is with its provider; a look under way is followed by another."""
        if job.submit is None or self._is_reported(job):
            return
        self._hints.note(job, provider_task_id, now=self._clock.now())
        self.take(job)

    def drop(self, job_id: str, /) -> None:
        """Stop working on the job; a call that may cost money still comes to its end."""
        self._let_go(self._jobs.pop(job_id, None))
        self._due_of.pop(job_id, None)
        self._reported.pop(job_id, None)
        self._called.pop(job_id, None)
        self._collects.pop(job_id, None)
        self._looked_for.discard(job_id)
        self._hints.forget(job_id)
        self._intended = {call for call in self._intended if call[0] != job_id}
        self._give_up(job_id)

    def _give_up(self, job_id: str) -> None:
        task = self._working.get(job_id)
        if task is not None and job_id not in self._paying:
            task.cancel()

    def _let_go(self, job: Job | None) -> None:
        """Let equal jobs be bought, as the attempt at *job* is over."""
        if job is not None and self._workshop.is_shared(job):
            self.add_future(self._workshop.let_go(job))

    def release(self) -> None:
        """Forget the queue, as partitions may have gone; calls in flight are still reported."""
        for job in self._jobs.values():
            if job.submit is SubmitState.ACCEPTED:  # else a name may keep us from a second order
                self._hints.forget(job.job_id)
        # Intents stay known: they are ours, and not acted on yet, whoever had the partition in between.
        self._jobs.clear()
        self._due.clear()
        self._due_of.clear()
        self._reported.clear()
        self._looked_for.clear()

    # -- the loop

    @Service.task
    async def _run(self) -> None:
        while not self.should_stop:
            wait = self._start_due()
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), timeout=wait)
            except TimeoutError:
                continue

    async def on_stop(self) -> None:
        """Let calls that may cost money come to their end; the others are given up for the next worker."""
        self.release()
        paying = [task for job_id, task in self._working.items() if job_id in self._paying]
        free = [task for job_id, task in self._working.items() if job_id not in self._paying]
        for task in free:
            task.cancel()
        if paying:
            _log.info("runner.waits_for_paid_calls", calls=len(paying))
            await asyncio.wait(paying, timeout=PAYING_SECONDS)
        for task in paying:
            task.cancel()
        await asyncio.gather(*free, *paying, return_exceptions=True)

    def _start_due(self) -> float | None:
        """Start every job that is due; return the seconds until the next one, or None where there is none."""
        now = self._clock.now()
        while self._due:
            due, number, job_id = self._due[0]
            if due > now:
                return (due - now).total_seconds()
            heapq.heappop(self._due)
            job = self._jobs.get(job_id)
            if job is not None and self._due_of.get(job_id) == number and job_id not in self._working:
                self._start(job)
        return None

    def _start(self, job: Job) -> None:
        # A fresh context: in an agent's own, a late table write would go to a partition that may have moved.
        task = asyncio.get_running_loop().create_task(self._attend(job), context=contextvars.Context())
        self._working[job.job_id] = task

    async def _attend(self, job: Job) -> None:
        attended, again = job, 0.0
        try:
            attended = await self._step(job)
        except asyncio.CancelledError:
            if not self._is_reported(job):
                _log.info("runner.given_up", job=job.job_id)
        except DeliveryFailed:
            raise
        except AssetStoreUnavailable as away:
            _log.warning("runner.store_away", job=job.job_id, error=str(away), again_in=AGAIN_SECONDS)
            again = AGAIN_SECONDS
        except Exception:  # noqa: BLE001 -- whatever it was, the job must not vanish
            _log.exception("runner.step_failed", job=job.job_id, again_in=AGAIN_SECONDS)
            again = AGAIN_SECONDS
        finally:
            self._working.pop(job.job_id, None)
            latest = self._jobs.get(job.job_id)
            if (
                latest is not None
                and not self._is_reported(latest)
                and (again or latest.version != attended.version)
            ):
                self._push(latest, again)

    def _push(self, job: Job, wait: float = 0.0) -> None:
        """Put *job* into the queue, in place of an earlier entry of it."""
        due = self._due_at(job)
        if due is not None:
            self._push_at(job, self._hints.sooner(job, due) + timedelta(seconds=wait))

    def _push_at(self, job: Job, due: datetime) -> None:
        name = job.job_id
        number = self._due_of[name] = next(self._numbers)
        heapq.heappush(self._due, (due, number, name))
        self._wake.set()

    def _is_reported(self, job: Job) -> bool:
        return bool(self._reported) and self._reported.get(job.job_id) == _call(job)

    def _due_at(self, job: Job) -> datetime | None:
        now = self._clock.now()
        match job.submit:
            case SubmitState.NEEDS_CONFIRMATION if job.status is not JobStatus.CANCELLED:
                return job.confirm_until or now
            case SubmitState.UNKNOWN | SubmitState.NEEDS_CONFIRMATION:
                looked = job.job_id in self._looked_for
                return now + timedelta(seconds=RECONCILE_SECONDS if looked else 0.0)
            case SubmitState.ACCEPTED if job.status is JobStatus.CANCELLED:
                return now + timedelta(seconds=RECONCILE_SECONDS if job.job_id in self._looked_for else 0.0)
            case SubmitState.ACCEPTED if job.submitted_at is not None:
                schedule, jitter = self._workshop.poll_schedule(job), share_of(job.job_id)
                due = next_poll(job.submitted_at, now, schedule, jitter=jitter)
                return due or slow_poll(job.submitted_at, now, schedule, jitter=jitter)
            case _:
                return job.due_at or now

    # -- one step of one job

    async def _step(self, job: Job) -> Job:
        """Do what *job* waits for, and return it in the form that was worked on last."""
        self._hints.looked(job, now=self._clock.now())
        if job.status is JobStatus.CANCELLED:
            await self._wind_up(job)
            return job
        match job.submit:
            case SubmitState.ACCEPTED:
                await self._poll(job)
            case SubmitState.UNKNOWN:
                await self._reconcile(job)
            case SubmitState.NEEDS_CONFIRMATION:
                await self._wait_for_word(job)
            case SubmitState.INTENDED if self._called.get(job.job_id) == _call(job):
                pass  # the answer is on its way
            case SubmitState.INTENDED if _call(job) in self._intended or self._workshop.repeatable(job):
                async with self._workshop.place(job):
                    await self._buy(job)
            case SubmitState.INTENDED:
                # Another worker announced this call, and may have made it before it died.
                await self._tell(SubmitOutcomeUnknown, job)
            case _ if self._workshop.needs_intent(job):
                return await self._order(job)
            case _:
                async with self._workshop.place(job):
                    if self._owns(job.project_id):  # else its new owner makes it
                        await self._guarded(job, self._finished(job))
        return job

    async def _wind_up(self, job: Job) -> None:
        """Find out what became of the paid call of a cancelled job, and stop its task where that can be."""
        match job.submit:
            case SubmitState.ACCEPTED:
                await self._take_back(job)
            case SubmitState.UNKNOWN | SubmitState.NEEDS_CONFIRMATION:
                await self._reconcile(job)
            case SubmitState.INTENDED if self._called.get(job.job_id) == _call(job):
                pass  # the answer is on its way
            case SubmitState.INTENDED if _call(job) in self._intended:
                await self._end(job, JobStopped, billed=False)  # announced, and never called
            case _:
                await self._tell(SubmitOutcomeUnknown, job)

    async def _order(self, job: Job) -> Job:
        """Announce the call for *job*, make it once the announcement is written, and return the written job.

        Only so many calls are announced as can be made at once: when a worker dies, few are in doubt.
        """
        async with self._workshop.place(job):
            known = await self._workshop.recall(job)
            if known is not None:
                await self._succeed(job, *known)
                return job
            if not self._owns(job.project_id) or not await self._may_call(job):
                return job
            written = self._written[job.job_id] = asyncio.Event()
            try:
                self._intended.add(_call(job))
                await self._tell(SubmitIntended, job)
                while not written.is_set() and self._owns(job.project_id):
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(written.wait(), LOST_SECONDS)
            finally:
                del self._written[job.job_id]
            announced = self._jobs.get(job.job_id, job)
            if announced.finished:
                return job
            if announced.submit is SubmitState.INTENDED:
                await self._buy(announced)
            return announced

    async def _may_call(self, job: Job) -> bool:
        """Tell whether a call for *job* begins now; if not, it comes back later, with all its calls left."""
        try:
            later = await self._workshop.turn(job, self._clock)
        except ProviderFailure as failure:
            _log.warning("runner.not_called", job=job.job_id, code=failure.code, detail=failure.detail)
            await self._end(job, JobFailed, error_code=failure.code)
            return False
        if later is not None:
            self._push_at(job, later)
        return later is None

    async def _buy(self, job: Job) -> None:
        """Make the one call that may cost money, if its announcement is durable and the job still ours."""
        await self._durable()
        if not self._owns(job.project_id):
            return
        self._intended.discard(_call(job))
        self._called[job.job_id] = _call(job)
        self._paying.add(job.job_id)
        try:
            await self._guarded(job, self._bought(job))
        finally:
            self._paying.discard(job.job_id)

    async def _bought(self, job: Job) -> None:
        if not self._workshop.is_task(job):
            await self._finished(job)
            return
        with self._learning(job):
            task_id = await self._workshop.submit(job)
        await self._tell(JobSubmitted, job, provider_task_id=task_id)

    @contextlib.contextmanager
    def _learning(self, job: Job) -> Iterator[None]:
        """Let the pace of the provider hear how its call for *job* ends."""
        try:
            yield
        except (ProviderFailure, OutcomeUnknown) as outcome:
            self._workshop.learned(job, outcome, self._clock.now())
            raise
        self._workshop.learned(job, None, self._clock.now())

    async def _reconcile(self, job: Job) -> None:
        """Look for the task of a submit without clear outcome: it is adopted, surely not there, or unclear.

        Where nothing can tell, a person is asked; nobody needs to be for a cancelled job, which only counts.
        """
        self._looked_for.add(job.job_id)
        now = self._clock.now()
        since = job.intended_at or job.created_at
        has_settled, is_late = now >= since + self._grace, now >= since + self._workshop.deadline(job)
        try:
            found = await self._found(job)
        except Exception as error:  # noqa: BLE001 -- whatever the list says of itself, it says nothing of the task
            _log.warning("runner.reconcile_failed", job=job.job_id, error=repr(error))
            found, has_settled = Several(()), False
        match found:
            case Adopted(task_id=task_id):
                self._looked_for.discard(job.job_id)
                await self._tell(JobSubmitted, job, provider_task_id=task_id)
            case Absent() if has_settled:
                await self._order_again(job, now)
            case None:
                await self._ask(job, now)
            case _ if is_late or (has_settled and isinstance(found, Several)):
                await self._ask(job, now)
            case _:
                self._push_if_latest(job)

    async def _order_again(self, job: Job, now: datetime) -> None:
        """Tell that the call was surely not accepted: the next one follows, unless there were enough."""
        if job.status is JobStatus.CANCELLED:
            await self._end(job, JobStopped, billed=False)
        elif retry_delay(ErrorCode.PROVIDER_UNAVAILABLE, job.postponed + 1, jitter=0.0) is None:
            await self._end(job, JobFailed, error_code=ErrorCode.PROVIDER_UNAVAILABLE, taken_back=True)
        else:
            await self._end(job, JobPostponed, error_code=ErrorCode.PROVIDER_UNAVAILABLE, due_at=now)

    async def _ask(self, job: Job, now: datetime) -> None:
        """Have a person decide about a call of which nothing tells whether it was accepted."""
        if job.status is JobStatus.CANCELLED:
            await self._end(job, JobStopped, billed=True)
        elif self._confirm:
            _log.error("runner.needs_confirmation", job=job.job_id, cost_usd=job.offer.cost_usd)
            await self._tell(SubmitUnresolved, job, until=now + self._confirm)
        else:
            await self._end(job, JobFailed, error_code=ErrorCode.SUBMIT_UNKNOWN)

    async def _take_back(self, job: Job) -> None:
        """Have the provider stop the task of a cancelled job, and tell whether that came in time."""
        self._looked_for.add(job.job_id)
        submitted_at = job.submitted_at or job.created_at
        try:
            taken_back = await self._workshop.take_back(job)
        except Exception as error:  # noqa: BLE001 -- whatever it raises, the task may go on
            _log.warning("runner.take_back_failed", job=job.job_id, error=repr(error))
            if self._clock.now() < submitted_at + self._workshop.deadline(job):
                self._push_if_latest(job)
                return
            taken_back = False
        await self._end(job, JobStopped, billed=not taken_back)

    async def _found(self, job: Job) -> Reconciled | None:
        """Ask for the task that a webhook named, else look it up.

        While there is such a name, a list without the task does not mean that it is not there.
        """
        named = await self._named(job)
        if named is not None:
            return named
        found = await self._workshop.find(job, taken=self._taken())
        name = self._hints.task_of(job)
        return Several((name,)) if name is not None and isinstance(found, Absent) else found

    async def _named(self, job: Job) -> Adopted | None:
        """Return the task that a webhook named at our own address, if the provider knows it."""
        name = self._hints.task_of(job)
        if name is None:
            return None
        try:
            task_id = await self._workshop.confirm(job, name)
        except ProviderFailure as failure:
            _log.warning("runner.hint_unconfirmed", job=job.job_id, detail=failure.detail)
            return None
        if task_id is None or task_id in self._taken():
            return None
        self._hints.note(job, name, now=self._clock.now())  # it may be done already
        return Adopted(task_id, certain=True)

    async def _wait_for_word(self, job: Job) -> None:
        """Fail the job when nobody has decided in time, unless a webhook has named its task."""
        named = await self._named(job)
        if named is not None:
            await self._tell(JobSubmitted, job, provider_task_id=named.task_id)
        elif job.confirm_until is not None and self._clock.now() < job.confirm_until:
            self._push_if_latest(job)
        else:
            await self._end(job, JobFailed, error_code=ErrorCode.SUBMIT_UNKNOWN)

    async def _poll(self, job: Job) -> None:
        """Ask how a task stands. A poll that fails says nothing about the task, so it is only asked again."""
        now = self._clock.now()
        submitted_at = job.submitted_at or now
        try:
            await self._polled(job)
        except TaskFailed as failed:
            await self._fail(job, failed.failure, accepted=True)
        except DeliveryFailed:
            raise
        except Exception as error:  # noqa: BLE001 -- whatever a poll raises, the task goes on
            _log.warning("runner.poll_failed", job=job.job_id, error=repr(error))
        if self._is_reported(job):
            return
        if now >= submitted_at + self._workshop.deadline(job):
            await self._time_out(job)
            return
        schedule, jitter = self._workshop.poll_schedule(job), share_of(job.job_id)
        stalled = next_poll(submitted_at, now, schedule, jitter=jitter) is None
        if stalled and job.status is not JobStatus.DELAYED:
            await self._tell(PollStalled, job)
        self._push_if_latest(job)

    async def _time_out(self, job: Job) -> None:
        """Give up a task at its deadline; one that the provider takes back is not billed."""
        taken_back = False
        try:
            taken_back = await self._workshop.take_back(job)
        except Exception as error:  # noqa: BLE001 -- whatever it raises, the task may go on, and counts as an orphan
            _log.warning("runner.take_back_failed", job=job.job_id, error=repr(error))
        await self._end(job, JobFailed, error_code=ErrorCode.PROVIDER_TIMEOUT, taken_back=taken_back)

    def _push_if_latest(self, job: Job) -> None:
        latest = self._jobs.get(job.job_id)
        if latest is not None and latest.version == job.version:
            self._push(latest)

    async def _polled(self, job: Job) -> None:
        report = await self._workshop.poll(job)
        if report.error_code is not None:
            raise TaskFailed(ProviderFailure(report.error_code, report.detail))
        if report.done:
            await self._succeed(job, await self._collected(job, report), Source.MADE)
        elif report.progress is not None:
            await self._tell(JobStillRunning, job, progress=report.progress)

    async def _collected(self, job: Job, report: TaskReport) -> Output:
        """Fetch what the task has made. Raises `TaskFailed` where more polls gave no better output either."""
        try:
            return await self._workshop.collect(job, report)
        except ProviderFailure as failure:
            tries = self._collects[job.job_id] = self._collects.get(job.job_id, 0) + 1
            if tries < COLLECTS:
                raise
            raise TaskFailed(ProviderFailure(ErrorCode.OUTPUT_MISSING, failure.detail)) from failure

    async def _finished(self, job: Job) -> None:
        known = await self._workshop.recall(job)
        if known is None:
            with self._learning(job):
                output = await self._workshop.make(job, progress=self._progress_of(job))
            known = output, Source.MADE
        await self._succeed(job, *known)

    async def _succeed(self, job: Job, output: Output, source: Source) -> None:
        await self._end(job, JobSucceeded, output=output, source=source)

    async def _guarded(self, job: Job, work: Coroutine[Any, Any, None]) -> None:
        """Do *work*; what goes wrong becomes an event that says whether and when it is tried again."""
        try:
            await work
        except DeliveryFailed:
            raise  # says nothing about the provider, and ends the worker
        except OutcomeUnknown as unknown:
            _log.error("runner.outcome_unknown", job=job.job_id, detail=str(unknown))
            await self._tell(SubmitOutcomeUnknown, job)
        except ProviderFailure as failure:
            await self._fail(job, failure)
        except Exception as error:  # noqa: BLE001 -- a bug must end in a visible state too
            _log.exception("runner.unexpected", job=job.job_id)
            if self._workshop.repeatable(job):
                await self._fail(job, ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, repr(error)))
            else:
                await self._tell(SubmitOutcomeUnknown, job)

    async def _fail(self, job: Job, failure: ProviderFailure, *, accepted: bool = False) -> None:
        """End the attempt, or postpone it where another call surely is no second purchase."""
        jitter = random.random()  # noqa: S311 -- spreads load, hides nothing
        delay = retry_delay(failure.code, job.postponed + 1, jitter=jitter, retry_after=failure.retry_after)
        bought = accepted or failure.code is ErrorCode.OUTPUT_MISSING
        if bought and not self._workshop.repeatable(job):
            delay = None
        _log.warning(
            "runner.failed", job=job.job_id, code=failure.code, detail=failure.detail, again_in=delay
        )
        if delay is None:
            await self._end(job, JobFailed, error_code=failure.code)
        else:
            due = self._clock.now() + timedelta(seconds=delay)
            await self._end(job, JobPostponed, error_code=failure.code, due_at=due)

    def _progress_of(self, job: Job) -> Callable[[float], None]:
        """Return a callback that reports progress from time to time."""
        last = self._clock.now()

        def report(progress: float) -> None:
            nonlocal last
            now = self._clock.now()
            if 0.0 < progress < 1.0 and (now - last).total_seconds() >= PROGRESS_SECONDS:
                last = now
                self.add_future(self._tell(JobStillRunning, job, progress=round(progress, 3)))

        return report

    async def _end(self, job: Job, event: type[Any], **facts: object) -> None:
        """Tell the last of one call: nothing more is done about it, however late the row follows."""
        self._reported[job.job_id] = _call(job)
        await self._tell(event, job, **facts)

    async def _tell(self, event: type[Any], job: Job, **facts: object) -> None:
        message: JobEvent = event(
            event_id=event_id(
                "job", job.job_id, job.attempt, job.postponed, event.__name__, facts.get("progress", "")
            ),
            project_id=job.project_id,
            job_id=job.job_id,
            attempt=job.attempt,
            call=job.postponed,
            occurred_at=self._clock.now(),
            **facts,
        )
        await self._publisher.publish(message)


def _call(job: Job) -> _Call:
    """Name one call of one attempt at a job."""
    return job.job_id, job.attempt, job.postponed
