"""Making the calls: the free ones at once, and each that may cost money only after it was announced."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, Final

import structlog

from models.errors import ErrorCode, OutcomeUnknown, ProviderFailure
from models.job import Job
from models.job_events import (
    JobFailed,
    JobStillRunning,
    JobSubmitted,
    JobSucceeded,
    SubmitIntended,
    SubmitOutcomeUnknown,
)
from models.lifecycle import SubmitState
from models.ports import Clock
from models.work import Output, Source
from sceneloom.assets.errors import AssetStoreUnavailable
from sceneloom.delivery import UNCONFIRMED_SECONDS, DeliveryFailed
from sceneloom.providers.wire import MAY_BUY, NotAllowed
from sceneloom.runner.agenda import Step
from sceneloom.runner.journal import Call, Journal, call_of
from sceneloom.workshop.workshop import Workshop

PROGRESS_SECONDS: Final = 0.5
"""Progress is reported at most this often."""

LOST_SECONDS: Final = 1.0
"""How often a call that waits for its announcement looks whether the job is still ours."""

_log = structlog.get_logger(__name__)


class Buying:
    """Announces and makes calls. What it knows of them is lost with the worker, and then nobody calls again.

    `latest` returns the job as it was written last, None where it is not ours any more.
    """

    def __init__(
        self,
        *,
        workshop: Workshop,
        journal: Journal,
        clock: Clock,
        durable: Callable[[], Awaitable[None]],
        is_member: Callable[[], Awaitable[bool]],
        owns: Callable[[str], bool],
        latest: Callable[[str], Job | None],
        in_background: Callable[[Coroutine[Any, Any, None]], Any],
    ) -> None:
        self._workshop = workshop
        self._journal = journal
        self._clock = clock
        self._durable = durable
        self._is_member = is_member
        self._owns = owns
        self._latest = latest
        self._in_background = in_background
        self._name = f"{random.getrandbits(64):016x}"  # tells workers apart, hides nothing
        self._intended: set[Call] = set()
        self._written: dict[str, asyncio.Event] = {}
        self._called: dict[str, Call] = {}
        self._paying: set[str] = set()

    def is_paying(self, job_id: str) -> bool:
        """Tell whether a call that may cost money is under way: it must come to its end."""
        return job_id in self._paying

    def awaits_announcement(self, job_id: str) -> bool:
        """Tell whether a call was announced, and waits until that is written."""
        written = self._written.get(job_id)
        return written is not None and not written.is_set()

    def wrote(self, job_id: str) -> bool:
        """Hear that the job's row has changed, and tell whether a call waited for that."""
        written = self._written.get(job_id)
        if written is not None:
            written.set()
        return written is not None

    def release(self) -> None:
        """Let no call wait for its announcement any more: it may be written by another worker, or never."""
        for written in self._written.values():
            written.set()

    def has_called(self, job: Job) -> bool:
        """Tell whether this worker has made the announced call: then its answer is on its way."""
        return self._called.get(job.job_id) == call_of(job)

    def has_announced(self, job: Job) -> bool:
        """Tell whether this worker has announced the call, and has not made it.

        Another one may have announced the same call while it had the partition, and have made it.
        """
        return call_of(job) in self._intended and job.intended_by == self._name

    def forget(self, job_id: str) -> None:
        """Forget the job."""
        self._called.pop(job_id, None)
        self._intended = {call for call in self._intended if call[0] != job_id}

    async def order(self, job: Job) -> Step:
        """Announce the call for *job*, and make it once the announcement is written.

        Only so many calls are announced as can be made at once: when a worker dies, few are in doubt.
        """
        try:
            async with self._workshop.look(job):
                known = await self._workshop.recall(job)
                if known is not None:
                    output, source = known
                    await self._journal.end(JobSucceeded, job, output=output, source=source)
                    return Step(job)
                if not self._owns(job.project_id):
                    return Step(job)
                later = await self._workshop.waits_until(job, self._clock)
                if later is not None:
                    return Step(job, at=later)
            async with self._workshop.place(job):
                later = await self._workshop.turn(job, self._clock)
                if later is not None:
                    return Step(job, at=later)
                return Step(await self._announced_and_bought(job))
        except ProviderFailure as failure:
            _log.warning("runner.not_called", job=job.job_id, code=failure.code, detail=failure.detail)
            await self._journal.end(JobFailed, job, error_code=failure.code)
            return Step(job)

    async def _announced_and_bought(self, job: Job) -> Job:
        written = self._written[job.job_id] = asyncio.Event()
        is_called = False
        try:
            self._intended.add(call_of(job))
            await self._journal.tell(SubmitIntended, job, by=self._name)
            while not written.is_set() and self._owns(job.project_id):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(written.wait(), LOST_SECONDS)
            announced = self._latest(job.job_id) or job
            if (
                announced.finished
                or announced.submit is not SubmitState.INTENDED
                or announced.intended_by != self._name
            ):
                return job  # its row says something else by now, which is still to be looked at
            is_called = await self._bought(announced)
            return announced
        finally:
            del self._written[job.job_id]
            if not is_called:
                self._workshop.not_called(job)

    async def call(self, job: Job) -> None:
        """Make the announced call for *job*."""
        async with self._workshop.place(job):
            await self._bought(job)

    async def make(self, job: Job) -> None:
        """Make the asset of *job* by a call that is free, and so needs no announcement."""
        async with self._workshop.place(job):
            known = await self._workshop.recall(job)
            if self._owns(job.project_id):  # else its new owner makes it
                await self._guarded(job, self._make(job, known))

    async def _bought(self, job: Job) -> bool:
        """Make the call if its announcement is durable and the job still ours; tell whether it was made.

        Raises what the asset store raises where it is away before the call: then that is still to be made.
        """
        known = await self._workshop.recall(job)
        await self._durable()
        if not self._owns(job.project_id):
            return False
        self._intended.discard(call_of(job))
        self._called[job.job_id] = call_of(job)
        self._paying.add(job.job_id)
        MAY_BUY.set(lambda: self._may_buy(job))
        try:
            await self._sent(job, known)
        except (NotAllowed, AssetStoreUnavailable) as unsent:
            # Still announced, not made: should the partition come back untouched, it can be made after all.
            self._called.pop(job.job_id, None)
            self._intended.add(call_of(job))
            if isinstance(unsent, AssetStoreUnavailable):
                raise
            return False
        finally:
            self._paying.discard(job.job_id)
        return True

    async def _sent(self, job: Job, known: tuple[Output, Source] | None) -> None:
        """Make the call, and tell its outcome. Raises `NotAllowed` once the job is not ours any more.

        While it is, a call that was not allowed to leave has only waited too long for its word.
        """
        while True:
            try:
                await self._guarded(
                    job, self._submit(job) if self._workshop.is_task(job) else self._make(job, known)
                )
            except NotAllowed:
                if not self._owns(job.project_id):
                    raise
            else:
                return

    async def _may_buy(self, job: Job) -> bool:
        """Return yes once the broker confirms that the job is ours, no where we know that it is not.

        A worker that was cut off or frozen may be replaced already, and hears of that at its next heartbeat.
        """
        while self._owns(job.project_id):
            if await self._is_member():
                return self._owns(job.project_id)
            await asyncio.sleep(UNCONFIRMED_SECONDS)
        return False

    async def _submit(self, job: Job) -> None:
        with self._learning(job):
            task_id = await self._workshop.submit(job)
        await self._journal.tell(JobSubmitted, job, provider_task_id=task_id)

    async def _make(self, job: Job, known: tuple[Output, Source] | None) -> None:
        if known is None:
            with self._learning(job):
                output = await self._workshop.make(job, progress=self._progress_of(job))
            known = output, Source.MADE
        output, source = known
        await self._journal.end(JobSucceeded, job, output=output, source=source)

    @contextlib.contextmanager
    def _learning(self, job: Job) -> Iterator[None]:
        """Let the pace of the provider hear how its call for *job* ends."""
        try:
            yield
        except (ProviderFailure, OutcomeUnknown) as outcome:
            self._workshop.learned(job, outcome, self._clock.now())
            raise
        self._workshop.learned(job, None, self._clock.now())

    async def _guarded(self, job: Job, work: Coroutine[Any, Any, None]) -> None:
        """Do *work*; what goes wrong becomes an event that says whether and when it is tried again."""
        is_repeatable = self._workshop.repeatable(job)
        try:
            await work
        except (DeliveryFailed, NotAllowed):
            raise  # says nothing about the provider
        except AssetStoreUnavailable as away:
            if is_repeatable or self._workshop.is_task(job):
                raise  # an order of a task reads the store before it leaves, and writes nothing to it
            _log.error("runner.outcome_unknown", job=job.job_id, detail=str(away))
            await self._journal.tell(SubmitOutcomeUnknown, job)
        except OutcomeUnknown as unknown:
            if is_repeatable:  # whatever became of it was free
                lost = ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, str(unknown))
                await self._journal.fail(job, lost, may_call_again=True)
                return
            _log.error("runner.outcome_unknown", job=job.job_id, detail=str(unknown))
            await self._journal.tell(SubmitOutcomeUnknown, job)
        except ProviderFailure as failure:
            is_bought = failure.code is ErrorCode.OUTPUT_MISSING
            await self._journal.fail(job, failure, may_call_again=is_repeatable or not is_bought)
        except Exception as error:  # noqa: BLE001 -- a bug must end in a visible state too
            _log.exception("runner.unexpected", job=job.job_id)
            if is_repeatable:
                bug = ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, repr(error))
                await self._journal.fail(job, bug, may_call_again=True)
            else:
                await self._journal.tell(SubmitOutcomeUnknown, job)

    def _progress_of(self, job: Job) -> Callable[[float], None]:
        """Return a callback that reports progress from time to time."""
        last = self._clock.now()

        def report(progress: float) -> None:
            nonlocal last
            now = self._clock.now()
            if 0.0 < progress < 1.0 and (now - last).total_seconds() >= PROGRESS_SECONDS:
                last = now
                self._in_background(self._journal.tell(JobStillRunning, job, progress=round(progress, 3)))

        return report
