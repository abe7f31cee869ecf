"""Finding out what became of a call whose answer nobody heard, and stopping what nobody wants any more."""

from collections.abc import Callable, Collection
from datetime import datetime, timedelta

import structlog

from models.errors import ErrorCode, ProviderFailure
from models.job import Job
from models.job_events import (
    JobFailed,
    JobPostponed,
    JobStopped,
    JobSubmitted,
    JobSucceeded,
    SubmitUnresolved,
)
from models.lifecycle import JobStatus
from models.policy import RECONCILE_SECONDS, retry_delay
from models.ports import Absent, Adopted, Clock, Reconciled, Several
from models.work import Source
from sceneloom.delivery import DeliveryFailed
from sceneloom.runner.agenda import Step
from sceneloom.runner.hints import Hints
from sceneloom.runner.journal import Call, Journal, call_of
from sceneloom.workshop.workshop import Workshop

_log = structlog.get_logger(__name__)


class Searching:
    """Looks for lost tasks: in the provider's list, by the name that a webhook told, and by asking a person.

    `owns` tells whether this worker still has the partition of a project, and `taken` returns the task ids
    that jobs already have. A provider's list may lag by `grace`; a person has the time `confirm` to decide.
    `steady` returns the seconds of a clock that nobody sets.
    """

    def __init__(
        self,
        *,
        workshop: Workshop,
        journal: Journal,
        clock: Clock,
        hints: Hints,
        owns: Callable[[str], bool],
        taken: Callable[[], Collection[str]],
        grace: timedelta,
        confirm: timedelta,
        steady: Callable[[], float],
    ) -> None:
        self._workshop = workshop
        self._journal = journal
        self._clock = clock
        self._hints = hints
        self._owns = owns
        self._taken = taken
        self._grace = grace
        self._confirm = confirm
        self._steady = steady
        self._looked_for: set[str] = set()
        self._first_looks: dict[Call, tuple[timedelta, float]] = {}

    def due_at(self, job: Job, now: datetime) -> datetime:
        """Return when to look for *job*: at once, and then from time to time."""
        return now + timedelta(seconds=RECONCILE_SECONDS if job.job_id in self._looked_for else 0.0)

    def forget(self, job_id: str) -> None:
        """Forget the job."""
        self._looked_for.discard(job_id)
        self._first_looks = {call: look for call, look in self._first_looks.items() if call[0] != job_id}

    def clear(self) -> None:
        """Forget all jobs, but not for how long they are unclear."""
        self._looked_for.clear()

    async def search(self, job: Job) -> Step:
        """Look for the task of a submit without clear outcome: it is adopted, surely not there, or unclear.

        Where nothing can tell, a person is asked; nobody needs to be for a cancelled job, which only counts.
        """
        self._looked_for.add(job.job_id)
        known = await self._workshop.recall(job)
        if known is not None and known[1] is Source.MADE:  # it came, and its worker could not say so any more
            output, source = known
            await self._journal.end(JobSucceeded, job, output=output, source=source)
            return Step(job)
        now = self._clock.now()
        age = self._age(job, now)
        has_settled, is_late = age >= self._grace, age >= self._workshop.deadline(job)
        try:
            found = await self._found(job)
        except Exception as error:  # noqa: BLE001 -- whatever the list says of itself, it says nothing of the task
            _log.warning("runner.reconcile_failed", job=job.job_id, error=repr(error))
            found, has_settled = Several(()), False
        if not self._owns(job.project_id):
            return Step(job)  # whoever has it now may know more
        match found:
            case Adopted(task_id=task_id):
                self._looked_for.discard(job.job_id)
                await self._journal.tell(JobSubmitted, job, provider_task_id=task_id)
            case Absent() if has_settled:
                await self._order_again(job, now)
            case None:
                await self._ask(job, now)
            case _ if is_late or (has_settled and isinstance(found, Several)):
                await self._ask(job, now)
            case _:
                return Step(job, look_again=True)
        return Step(job)

    def _age(self, job: Job, now: datetime) -> timedelta:
        """Return for how long *job* is unclear: a wall clock that is set forward must not end the wait."""
        since, moment = job.unclear_at or job.intended_at or job.created_at, self._steady()
        age, looked = self._first_looks.setdefault(call_of(job), (max(now - since, timedelta()), moment))
        return age + timedelta(seconds=moment - looked)

    async def wait_for_word(self, job: Job) -> Step:
        """Fail the job when nobody has decided in time, unless a webhook has named its task."""
        named = await self._named(job)
        if not self._owns(job.project_id):
            return Step(job)
        if named is not None:
            await self._journal.tell(JobSubmitted, job, provider_task_id=named.task_id)
        elif job.confirm_until is not None and self._clock.now() < job.confirm_until:
            return Step(job, look_again=True)
        else:
            await self._journal.end(JobFailed, job, error_code=ErrorCode.SUBMIT_UNKNOWN)
        return Step(job)

    async def take_back(self, job: Job) -> Step:
        """Have the provider stop the task of a cancelled job, and tell whether that came in time."""
        self._looked_for.add(job.job_id)
        submitted_at = job.submitted_at or job.created_at
        try:
            taken_back = await self._workshop.take_back(job)
        except DeliveryFailed:
            raise
        except Exception as error:  # noqa: BLE001 -- whatever it raises, the task may go on
            _log.warning("runner.take_back_failed", job=job.job_id, error=repr(error))
            if self._clock.now() < submitted_at + self._workshop.deadline(job):
                return Step(job, look_again=True)
            taken_back = False
        await self._journal.end(JobStopped, job, billed=not taken_back)
        return Step(job)

    async def _order_again(self, job: Job, now: datetime) -> None:
        """Tell that the call was surely not accepted: the next one follows, unless there were enough."""
        unavailable = ErrorCode.PROVIDER_UNAVAILABLE
        if job.status is JobStatus.CANCELLED:
            await self._journal.end(JobStopped, job, billed=False)
        elif retry_delay(unavailable, job.postponed + 1, jitter=0.0) is None:
            await self._journal.end(JobFailed, job, error_code=unavailable, taken_back=True)
        else:
            await self._journal.end(JobPostponed, job, error_code=unavailable, due_at=now)

    async def _ask(self, job: Job, now: datetime) -> None:
        """Have a person decide about a call of which nothing tells whether it was accepted."""
        if job.status is JobStatus.CANCELLED:
            await self._journal.end(JobStopped, job, billed=True)
        elif self._confirm:
            _log.error("runner.needs_confirmation", job=job.job_id, cost_usd=job.offer.cost_usd)
            await self._journal.tell(SubmitUnresolved, job, until=now + self._confirm)
        else:
            await self._journal.end(JobFailed, job, error_code=ErrorCode.SUBMIT_UNKNOWN)

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
