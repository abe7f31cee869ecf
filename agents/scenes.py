"""The scenes agent: the one writer of the jobs table."""

from typing import Final

from models.commands import CancelScene, RequestScene, ResolveSubmit, SceneCommand
from models.errors import ErrorCode
from models.identifiers import job_id
from models.job import Job
from models.job_events import (
    JobEvent,
    JobFailed,
    JobStopped,
    JobSucceeded,
    PollNow,
    PollStalled,
    SubmitIntended,
    SubmitOutcomeUnknown,
    SubmitUnresolved,
)
from models.ports import Clock, JobQueue, JobStore, Offers, Publisher
from models.scene_work import (
    delay_of,
    doubt_of,
    exceeds_budget,
    is_worth_a_fallback,
    jobs_for,
    result_of,
    taken_up,
)
from models.work import JobKind

_ENDS: Final = (JobSucceeded, JobFailed, JobStopped)
_DELAYS: Final = (PollStalled, SubmitOutcomeUnknown)


class ScenesAgent:
    """Turns requests for scenes into jobs, applies what is learned about them, and reports results.

    A message that comes twice changes nothing, and the scene's result is sent again.
    """

    name = "scenes"

    def __init__(
        self, *, jobs: JobStore, queue: JobQueue, publisher: Publisher, offers: Offers, clock: Clock
    ) -> None:
        self._jobs = jobs
        self._queue = queue
        self._publisher = publisher
        self._offers = offers
        self._clock = clock

    async def handle(self, message: SceneCommand | JobEvent, *, origin: str) -> None:  # noqa: ARG002 -- same shape for all agents
        """Carry out one message."""
        match message:
            case RequestScene():
                await self._request(message)
            case CancelScene():
                await self._cancel(message)
            case ResolveSubmit():
                await self._resolve(message)
            case PollNow():
                self._look(message)
            case _:
                await self._learn(message)

    async def _request(self, command: RequestScene) -> None:
        wanted = jobs_for(command, self._offers.offer_for, now=self._clock.now())
        for job in wanted:
            known = self._jobs.get(job.job_id)
            job_now = taken_up(known, job)
            if job_now is not known:
                self._jobs.put(job_now)
            if not job_now.finished:
                self._queue.take(job_now)
        await self._report(command.project_id, command.scene_id, delayed=True)

    async def _cancel(self, command: CancelScene) -> None:
        for job in self._scene(command.project_id, command.scene_id):
            if job.scene_attempt == command.attempt and not job.finished:
                self._keep(job.cancel())
        await self._report(command.project_id, command.scene_id, delayed=False)

    async def _resolve(self, command: ResolveSubmit) -> None:
        job = self._jobs.get(command.job_id)
        if job is None:
            return
        changed = job.resolve(
            command.decision,
            attempt=command.attempt,
            call=command.call,
            task_id=command.provider_task_id,
            at=self._clock.now(),
        )
        if changed is not job:
            self._keep(changed)
        await self._report(job.project_id, job.scene_id, delayed=False)

    def _look(self, hint: PollNow) -> None:
        """Have the job looked at, if the hint is about the call that it waits for."""
        job = self._jobs.get(hint.job_id)
        if job is not None and not job.finished and (hint.attempt, hint.call) == (job.attempt, job.postponed):
            self._queue.hint(job, hint.provider_task_id)

    async def _learn(self, event: JobEvent) -> None:
        job = self._jobs.get(event.job_id)
        if job is None or event.attempt != job.attempt:
            return
        changed = self._judged(job, event)
        if changed is not job:
            self._jobs.put(changed)
        self._hand_over(changed)
        if isinstance(event, SubmitUnresolved):
            doubt = doubt_of(changed, self._scene(job.project_id, job.scene_id))
            if doubt is not None:
                await self._publisher.publish(doubt)
        if changed is not job or isinstance(event, _ENDS + _DELAYS):
            delayed = isinstance(event, _DELAYS)
            await self._report(job.project_id, job.scene_id, delayed=delayed)

    def _judged(self, job: Job, event: JobEvent) -> Job:
        """Return *job* after *event*: refused at the gate of the budget, or taken up by another provider."""
        changed = job.evolve(event)
        if changed is job:
            return job
        if isinstance(event, SubmitIntended) and exceeds_budget(job, self._jobs.jobs_of(job.project_id)):
            return job.refuse(ErrorCode.BUDGET_EXCEEDED)
        if is_worth_a_fallback(changed) and (offer := self._offers.fallback_for(changed)):
            return changed.stood_in_for(offer, self._clock.now())
        return changed

    def _keep(self, job: Job) -> None:
        self._jobs.put(job)
        self._hand_over(job)

    def _hand_over(self, job: Job) -> None:
        if job.is_settled:
            self._queue.drop(job)
        else:
            self._queue.take(job)

    async def _report(self, project_id: str, scene_id: str, *, delayed: bool) -> None:
        jobs = self._scene(project_id, scene_id)
        for result in (delay_of(jobs) if delayed else None, result_of(jobs)):
            if result is not None:
                await self._publisher.publish(result)

    def _scene(self, project_id: str, scene_id: str) -> list[Job]:
        found = (self._jobs.get(job_id(project_id, scene_id, kind)) for kind in JobKind)
        return [job for job in found if job is not None]
