"""The job runner: works on the open jobs of this worker's partitions, and reports only through job-events.

It holds no truth. Its agenda is built from the jobs table when partitions come and emptied when they go, and
whatever it learns becomes true only when the scenes agent has written it.
"""

import asyncio
import contextvars
import functools
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta
from typing import Final

import structlog
from mode import Service

from models.job import Job
from models.job_events import JobStopped, SubmitOutcomeUnknown
from models.lifecycle import JobStatus, SubmitState
from models.policy import CONFIRM_SECONDS, GRACE_SECONDS
from models.ports import Clock, Publisher
from sceneloom.assets.errors import AssetStoreUnavailable
from sceneloom.delivery import DeliveryFailed
from sceneloom.runner.agenda import Agenda, Step
from sceneloom.runner.buying import Buying
from sceneloom.runner.hints import Hints
from sceneloom.runner.journal import Journal
from sceneloom.runner.polling import Polling
from sceneloom.runner.searching import Searching
from sceneloom.workshop.workshop import Workshop

PAYING_SECONDS: Final = 150.0
"""How long a worker that is told to stop waits for the answers to calls that may cost money."""

AGAIN_SECONDS: Final = 5.0
"""When a job is tried again whose step failed by no fault of its provider, as when the store is away."""

LEAP_SECONDS: Final = 10.0
"""A difference between the clock and the time that has passed, from which on somebody has set the clock."""

_log = structlog.get_logger(__name__)


def _loop_seconds() -> float:
    return asyncio.get_running_loop().time()


class JobRunner(Service):
    """Works on jobs when they are due, each in a task of its own.

    `durable` returns once every row written so far is acknowledged by the broker; `owns` tells whether this
    worker takes itself for the owner of a project, and `is_member` asks the broker whether it is right. They
    are asked right before a call that may cost money.
    `taken` returns the task ids that jobs already have; a provider's list may lag by `grace_seconds`. A
    person has `confirm_seconds` to decide about a call of which nothing tells whether it was accepted.
    `steady` returns the seconds of a clock that nobody sets.
    """

    def __init__(
        self,
        *,
        workshop: Workshop,
        publisher: Publisher,
        clock: Clock,
        durable: Callable[[], Awaitable[None]],
        is_member: Callable[[], Awaitable[bool]],
        owns: Callable[[str], bool],
        taken: Callable[[], Collection[str]] = frozenset,
        grace_seconds: float = GRACE_SECONDS,
        confirm_seconds: float = CONFIRM_SECONDS,
        steady: Callable[[], float] = _loop_seconds,
    ) -> None:
        super().__init__()
        self._workshop = workshop
        self._clock = clock
        self._steady = steady
        self._jobs: dict[str, Job] = {}
        self._working: dict[str, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self._seen: tuple[float, datetime] | None = None
        self._hints = Hints()
        self.agenda: Final = Agenda()
        self._journal = Journal(publisher=publisher, clock=clock)
        self.buying: Final = Buying(
            workshop=workshop,
            journal=self._journal,
            clock=clock,
            durable=durable,
            is_member=is_member,
            owns=owns,
            latest=self._jobs.get,
            in_background=self.add_future,
        )
        self._polling = Polling(workshop=workshop, journal=self._journal, clock=clock)
        self._searching = Searching(
            workshop=workshop,
            journal=self._journal,
            clock=clock,
            hints=self._hints,
            owns=owns,
            taken=taken,
            grace=timedelta(seconds=grace_seconds),
            confirm=timedelta(seconds=confirm_seconds),
            steady=steady,
        )

    # -- the jobs

    def take(self, job: Job, /) -> None:
        """Work on *job* when it is due; one already in work is not started a second time."""
        if self._journal.is_over(job):
            return
        name = job.job_id
        before = self._jobs.get(name)
        if before is not None and before.version > job.version:
            return  # a takeover comes upon rows that were written while it looks
        if before is not None and before.attempt != job.attempt:
            self._let_go(before)
        self._jobs[name] = job
        if not self.buying.wrote(name) and name not in self._working:
            self._put(job)
        if job.status is JobStatus.CANCELLED:
            self._give_up(name)

    def hint(self, job: Job, provider_task_id: str | None, /) -> None:
        """Look at *job* at once if it is with its provider; a look under way is followed by another."""
        if job.submit is None or self._journal.is_over(job):
            return
        self._hints.note(job, provider_task_id, now=self._clock.now())
        self.take(job)

    def drop(self, job: Job, /) -> None:
        """Stop working on *job*, which is over; a call that may cost money still comes to its end."""
        job_id = job.job_id
        self._jobs.pop(job_id, None)
        self._let_go(job)
        for memory in (self.agenda, self._journal, self.buying, self._polling, self._searching, self._hints):
            memory.forget(job_id)
        self._give_up(job_id)

    def release(self) -> None:
        """Forget the jobs, as partitions may have gone; calls in flight are still reported."""
        for job in self._jobs.values():
            if job.submit is SubmitState.ACCEPTED:  # else a name may keep us from a second order
                self._hints.forget(job.job_id)
        # Announcements stay known: they are ours, and not acted on yet, whoever had the partition meanwhile.
        self._jobs.clear()
        self.buying.release()
        for memory in (self.agenda, self._journal, self._searching):
            memory.clear()

    def _give_up(self, job_id: str) -> None:
        task = self._working.get(job_id)
        if task is not None and not self.buying.is_paying(job_id):
            task.cancel()

    def _let_go(self, job: Job) -> None:
        """Let equal jobs be bought, as the attempt at *job* is over."""
        if self._workshop.is_shared(job):
            self.add_future(self._workshop.let_go(job))

    @property
    def waiting(self) -> int:
        """How many open jobs this worker has, those in work included."""
        return len(self._jobs)

    @property
    def in_work(self) -> int:
        """How many jobs are being worked on, or wait for their place among those."""
        return len(self._working)

    # -- the loop

    @Service.task
    async def _run(self) -> None:
        while not self.should_stop:
            self._mind_the_clock()
            wait = self.start_due()
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), timeout=wait)
            except TimeoutError:
                continue

    def _mind_the_clock(self) -> None:
        """See whether somebody has set the clock, which times of jobs are told by.

        Set forwards, nothing has had its time yet by which it is given up; set backwards, nothing waits for
        the old time to come again.
        """
        steady, now = self._steady(), self._clock.now()
        before = self._seen or (steady, now)
        leap = (now - before[1]).total_seconds() - (steady - before[0])
        self._seen = steady, now
        if abs(leap) < LEAP_SECONDS:
            return
        _log.warning("runner.clock_was_set", seconds=round(leap))
        self._polling.leapt(now)
        for name, job in self._jobs.items():
            if name not in self._working:
                self._put(job)

    async def on_stop(self) -> None:
        """Let calls that may cost money come to their end; the others are given up for the next worker."""
        self.release()
        paying = [task for name, task in self._working.items() if self.buying.is_paying(name)]
        free = [task for name, task in self._working.items() if not self.buying.is_paying(name)]
        for task in free:
            task.cancel()
        if paying:
            _log.info("runner.waits_for_paid_calls", calls=len(paying))
            await asyncio.wait(paying, timeout=PAYING_SECONDS)
        for task in paying:
            task.cancel()
        await asyncio.gather(*free, *paying, return_exceptions=True)

    def start_due(self) -> float | None:
        """Start every job that is due; return the seconds until the next one, or None where there is none."""
        now = self._clock.now()
        for name in self.agenda.due(now):
            job = self._jobs.get(name)
            if job is not None and name not in self._working:
                # A fresh context: in an agent's own, a late write would go to a partition that has moved.
                work = self._attend(job)
                loop = asyncio.get_running_loop()
                task = self._working[name] = loop.create_task(work, context=contextvars.Context())
                task.add_done_callback(functools.partial(self._ended, name))
        first = self.agenda.first
        return None if first is None else (first - now).total_seconds()

    async def _attend(self, job: Job) -> None:
        structlog.contextvars.bind_contextvars(project=job.project_id, job=job.job_id)  # of this task only
        step, wait = Step(job), 0.0
        try:
            step = await self._step(job)
        except asyncio.CancelledError:
            # A cancelled job may be told of twice: then this was winding up already, and goes on.
            step = Step(job, look_again=True)
            if not self._journal.is_over(job):
                _log.info("runner.given_up", job=job.job_id)
        except DeliveryFailed:
            raise
        except AssetStoreUnavailable as away:
            _log.warning("runner.store_away", job=job.job_id, error=str(away), again_in=AGAIN_SECONDS)
            step, wait = Step(job, look_again=True), AGAIN_SECONDS
        except Exception:  # noqa: BLE001 -- whatever it was, the job must not vanish
            _log.exception("runner.step_failed", job=job.job_id, again_in=AGAIN_SECONDS)
            step, wait = Step(job, look_again=True), AGAIN_SECONDS
        finally:
            self._working.pop(job.job_id, None)
            self._follow_up(step, wait)

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        """Take off a task that was cancelled before its first step: it could not do so itself."""
        if self._working.get(name) is not task:
            return
        del self._working[name]
        latest = self._jobs.get(name)
        if latest is not None and not self._journal.is_over(latest):
            self._put(latest)

    def _follow_up(self, step: Step, wait: float) -> None:
        """Put the job down again where its row has changed meanwhile, or the *step* wants it."""
        latest = self._jobs.get(step.job.job_id)
        if latest is None or self._journal.is_over(latest):
            return
        if latest.version != step.job.version or step.look_again:
            self._put(latest, wait)
        elif step.at is not None:
            self._put_at(latest, step.at)

    def _put(self, job: Job, wait: float = 0.0) -> None:
        due = self._hints.sooner(job, self._due_at(job))
        self._put_at(job, due + timedelta(seconds=wait))

    def _put_at(self, job: Job, due: datetime) -> None:
        self.agenda.put(job.job_id, due)
        self._wake.set()

    def _due_at(self, job: Job) -> datetime:
        now = self._clock.now()
        is_cancelled = job.status is JobStatus.CANCELLED
        match job.submit:
            case SubmitState.NEEDS_CONFIRMATION if not is_cancelled:
                return job.confirm_until or now
            case SubmitState.UNKNOWN | SubmitState.NEEDS_CONFIRMATION:
                return self._searching.due_at(job, now)
            case SubmitState.ACCEPTED if is_cancelled:
                return self._searching.due_at(job, now)
            case SubmitState.ACCEPTED if job.submitted_at is not None:
                return self._polling.due_at(job, job.submitted_at, now)
            case _:
                return job.due_at or now

    # -- one step of one job

    async def _step(self, job: Job) -> Step:
        """Do what *job* waits for."""
        self._hints.looked(job, now=self._clock.now())
        if job.status is JobStatus.CANCELLED:
            return await self._wind_up(job)
        match job.submit:
            case SubmitState.ACCEPTED:
                return await self._polling.poll(job)
            case SubmitState.UNKNOWN:
                return await self._searching.search(job)
            case SubmitState.NEEDS_CONFIRMATION:
                return await self._searching.wait_for_word(job)
            case SubmitState.INTENDED if self.buying.has_called(job):
                pass  # the answer is on its way
            case SubmitState.INTENDED if self.buying.has_announced(job) or self._workshop.repeatable(job):
                await self.buying.call(job)
            case SubmitState.INTENDED:
                # Another worker announced this call, and may have made it before it died.
                await self._journal.tell(SubmitOutcomeUnknown, job)
            case _ if self._workshop.needs_intent(job):
                return await self.buying.order(job)
            case _:
                await self.buying.make(job)
        return Step(job)

    async def _wind_up(self, job: Job) -> Step:
        """Find out what became of the paid call of a cancelled job, and stop its task where that can be."""
        match job.submit:
            case SubmitState.ACCEPTED:
                return await self._searching.take_back(job)
            case SubmitState.UNKNOWN | SubmitState.NEEDS_CONFIRMATION:
                return await self._searching.search(job)
            case SubmitState.INTENDED if self.buying.has_called(job):
                pass  # the answer is on its way
            case SubmitState.INTENDED if self.buying.has_announced(job):
                await self._journal.end(JobStopped, job, billed=False)  # announced, and never called
            case _:
                await self._journal.tell(SubmitOutcomeUnknown, job)
        return Step(job)
