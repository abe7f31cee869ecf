"""A job: one paid or local call for one asset of one scene, from the intent to the stored output."""

from datetime import datetime
from typing import Final, Self, assert_never

from models.errors import ErrorCode
from models.identifiers import fingerprint, job_id
from models.job_events import (
    JobEvent,
    JobFailed,
    JobPostponed,
    JobStillRunning,
    JobStopped,
    JobSubmitted,
    JobSucceeded,
    PollNow,
    PollStalled,
    SubmitIntended,
    SubmitOutcomeUnknown,
    SubmitUnresolved,
)
from models.lifecycle import JOB_TRANSITIONS, JobStatus, SubmitState, moved
from models.values import Value
from models.work import Decision, JobKind, JobRequest, Offer, Output, Question, Source, Tally

_GIVEN_UP: Final = frozenset({ErrorCode.PROVIDER_TIMEOUT, ErrorCode.SUBMIT_UNKNOWN, ErrorCode.OUTPUT_MISSING})
_UNCLEAR: Final = frozenset({SubmitState.UNKNOWN, SubmitState.NEEDS_CONFIRMATION})
FINISHED: Final = frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED})


class Job(Value):
    """The latest attempt at one asset, and what the earlier ones cost.

    The request, the provider and the model are frozen here when the attempt begins: polls and downloads use
    them whatever the configuration says later.
    """

    project_id: str
    scene_id: str
    user_id: str
    scene_attempt: int = 1
    attempt: int = 1
    offer: Offer
    request: JobRequest
    use_cache: bool = True
    budget_usd: float | None = None
    """What all jobs of the project together may cost."""
    stands_in_for: str | None = None
    """The provider that failed, where this attempt is made by its fallback."""
    status: JobStatus = JobStatus.QUEUED
    submit: SubmitState | None = None
    provider_task_id: str | None = None
    intended_at: datetime | None = None
    intended_by: str = ""
    """The worker process that announced the call, and alone may have made it."""
    unclear_at: datetime | None = None
    """When it became known that nobody knows how the call ended: it had been made by then, if at all."""
    submitted_at: datetime | None = None
    due_at: datetime | None = None
    confirm_until: datetime | None = None
    postponed: int = 0
    progress: float | None = None
    output: Output | None = None
    source: Source | None = None
    error_code: ErrorCode | None = None
    written_off: bool = False
    """The paid call of a cancelled job is not looked after any more: it counts as billed."""
    created_at: datetime
    earlier: Tally = Tally()
    version: int = 1

    @property
    def job_id(self) -> str:
        """The name of the job, the same for all its attempts."""
        return job_id(self.project_id, self.scene_id, self.request.kind)

    @property
    def kind(self) -> JobKind:
        """What the job makes."""
        return self.request.kind

    @property
    def finished(self) -> bool:
        """Whether this attempt is over."""
        return self.status in FINISHED

    @property
    def is_settled(self) -> bool:
        """Whether nothing more will be learned: it is over, and no paid call of it is still in the open."""
        return self.finished and not (
            self.status is JobStatus.CANCELLED and self.is_orphan and not self.written_off
        )

    @property
    def fingerprint(self) -> str:
        """The hash of what is asked of whom: equal jobs have equal outputs.

        What is left at its default is left out, so that a release with one more field finds what was made
        before it, and one that is rolled back too.
        """
        return fingerprint(
            {
                "provider": self.offer.provider,
                "model": self.offer.model,
                "terms": dict(self.offer.terms),
                "kind": self.kind,
                "request": self.request.model_dump(mode="json", exclude_defaults=True),
            }
        )

    @property
    def is_orphan(self) -> bool:
        """Whether the attempt was given up while the provider may still finish it, and bill it."""
        given_up = self.status is JobStatus.CANCELLED or self.error_code in _GIVEN_UP
        return given_up and self.source is None and self.submit is not None and self.offer.cost_usd > 0

    @property
    def tally(self) -> Tally:
        """What this job has cost over all its attempts."""
        cost = self.offer.cost_usd
        match self.source:
            case Source.MADE:
                return self.earlier + Tally(
                    bought=1, spent_usd=cost, fallback=0 if self.stands_in_for is None else 1
                )
            case Source.CACHED:
                return self.earlier + Tally(cached=1, saved_usd=cost)
            case None if self.is_orphan:
                return self.earlier + _orphan(cost)
            case None:
                return self.earlier
            case _:
                assert_never(self.source)

    @property
    def committed_usd(self) -> float:
        """What this job has cost, or will have cost if the call that is under way succeeds."""
        under_way = self.submit is not None and not self.finished
        return self.tally.spent_usd + (self.offer.cost_usd if under_way else 0.0)

    @property
    def question(self) -> Question | None:
        """What a person must decide for this job to go on, if anything."""
        if self.submit is not SubmitState.NEEDS_CONFIRMATION or self.finished or self.confirm_until is None:
            return None
        return Question(
            job_id=self.job_id,
            kind=self.kind,
            attempt=self.attempt,
            call=self.postponed,
            provider=self.offer.provider,
            model=self.offer.model,
            cost_usd=self.offer.cost_usd,
            until=self.confirm_until,
            as_task=self.offer.as_task,
        )

    def evolve(self, event: JobEvent) -> Self:
        """Return the job after *event*; one of another attempt, late or seen before, changes nothing."""
        if event.job_id != self.job_id or event.attempt != self.attempt or self.is_settled:
            return self
        if self.status is JobStatus.CANCELLED:
            return self._settled_by(event) if self._is_news(event) else self
        return self._applied(event) if self._is_news(event) else self

    def _is_news(self, event: JobEvent) -> bool:
        """Tell whether *event* is about the call that is being made, and says more than is known."""
        this_call = event.call == self.postponed
        match event:
            case SubmitIntended():
                return this_call and self.submit is None
            case JobSubmitted():
                return this_call and self.provider_task_id is None
            case SubmitOutcomeUnknown():
                return this_call and self.submit is SubmitState.INTENDED
            case SubmitUnresolved():
                return this_call and self.submit is SubmitState.UNKNOWN
            case PollStalled():
                return self.submit is SubmitState.ACCEPTED and self.status is not JobStatus.DELAYED
            case JobStillRunning():
                return this_call and event.progress is not None and event.progress > (self.progress or 0.0)
            case JobPostponed() | JobFailed():
                return this_call and self._is_still(event.submit)
            case JobStopped():
                return this_call and self._is_still(event.submit) and self.status is JobStatus.CANCELLED
            case JobSucceeded():
                return True
            case PollNow():
                return False
            case _:
                assert_never(event)

    def _is_still(self, told_of: SubmitState | None) -> bool:
        """Tell whether the end of a call that was known as *told_of* is one of the call as it is known now.

        A search that ends late must not throw away a task that was found meanwhile.
        """
        if told_of in _UNCLEAR:
            return self.submit in _UNCLEAR
        return (told_of is SubmitState.ACCEPTED) is (self.submit is SubmitState.ACCEPTED)

    def _applied(self, event: JobEvent) -> Self:
        match event:
            case SubmitIntended():
                return self._become(
                    JobStatus.RUNNING,
                    submit=SubmitState.INTENDED,
                    intended_at=event.occurred_at,
                    intended_by=event.by,
                    due_at=None,
                )
            case JobSubmitted():
                return self._accepted(event.provider_task_id, event.occurred_at)
            case SubmitOutcomeUnknown():
                return self._become(
                    JobStatus.RUNNING, submit=SubmitState.UNKNOWN, unclear_at=event.occurred_at
                )
            case SubmitUnresolved():
                return self._become(
                    JobStatus.RUNNING, submit=SubmitState.NEEDS_CONFIRMATION, confirm_until=event.until
                )
            case JobPostponed():
                return self._called_again(event.due_at)
            case PollStalled():
                return self._become(JobStatus.DELAYED)
            case JobStillRunning():
                return self._become(JobStatus.RUNNING, progress=event.progress)
            case JobSucceeded():
                return self._become(
                    JobStatus.SUCCEEDED, output=event.output, source=event.source, progress=1.0
                )
            case JobFailed():
                failed = self._become(JobStatus.FAILED, error_code=event.error_code)
                return failed.model_copy(update={"submit": None}) if event.taken_back else failed
            case JobStopped() | PollNow():
                return self
            case _:
                assert_never(event)

    def _settled_by(self, event: JobEvent) -> Self:
        """Return this cancelled job with what became of the paid call that was under way."""
        match event:
            case JobSubmitted():
                return self._changed(
                    submit=SubmitState.ACCEPTED,
                    provider_task_id=event.provider_task_id,
                    submitted_at=event.occurred_at,
                )
            case SubmitOutcomeUnknown():
                return self._changed(submit=SubmitState.UNKNOWN, unclear_at=event.occurred_at)
            case JobSucceeded():
                return self._changed(output=event.output, source=event.source, progress=1.0)
            case JobFailed(error_code=code, taken_back=False) if code in _GIVEN_UP:
                return self._changed(written_off=True)
            case JobStopped(billed=True) | SubmitUnresolved():
                return self._changed(written_off=True)
            case JobFailed() | JobPostponed() | JobStopped():
                return self._changed(submit=None)
            case SubmitIntended() | JobStillRunning() | PollStalled() | PollNow():
                return self
            case _:
                assert_never(event)

    def cancel(self) -> Self:
        """Return the job, given up on; a finished one is returned as it is."""
        return self if self.finished else self._become(JobStatus.CANCELLED)

    def refuse(self, code: ErrorCode) -> Self:
        """Return the job, ended before the call that was just announced is made."""
        return self._become(JobStatus.FAILED, error_code=code)

    def resolve(
        self, decision: Decision, *, attempt: int, call: int, task_id: str | None, at: datetime
    ) -> Self:
        """Return the job as a person decided about its unclear call; an answer about another changes nothing.

        A call that is made again leaves the first one as an orphan: it may be billed.
        """
        if self.finished or (attempt, call) != (self.attempt, self.postponed) or self.submit not in _UNCLEAR:
            return self
        match decision:
            case Decision.RESEND:
                return self._called_again(None, earlier=self.earlier + _orphan(self.offer.cost_usd))
            case Decision.ADOPT:
                return self._accepted(task_id or "", at)
            case Decision.GIVE_UP:
                return self._become(JobStatus.FAILED, error_code=ErrorCode.SUBMIT_UNKNOWN)
            case _:
                assert_never(decision)

    def again(self, wanted: "Job") -> Self:
        """Return the next attempt, which does what *wanted* asks, and remembers what this one cost."""
        if self.status is not JobStatus.QUEUED:
            moved(JOB_TRANSITIONS, self.status, JobStatus.QUEUED, subject=f"job {self.job_id}")
        return type(self).model_validate(
            wanted.model_copy(
                update={"attempt": self.attempt + 1, "earlier": self.tally, "version": self.version + 1}
            )
        )

    def stood_in_for(self, offer: Offer, now: datetime) -> Self:
        """Return the next attempt at the same asset, made by *offer* in place of the provider that failed."""
        failed = self.stands_in_for or self.offer.provider
        fresh = Job(
            project_id=self.project_id,
            scene_id=self.scene_id,
            user_id=self.user_id,
            scene_attempt=self.scene_attempt,
            offer=offer,
            request=self.request,
            use_cache=self.use_cache,
            budget_usd=self.budget_usd,
            stands_in_for=failed,
            created_at=now,
        )
        return self.again(fresh)

    def _accepted(self, task_id: str, at: datetime) -> Self:
        return self._become(
            JobStatus.RUNNING,
            submit=SubmitState.ACCEPTED,
            provider_task_id=task_id,
            submitted_at=at,
            confirm_until=None,
        )

    def _called_again(self, due_at: datetime | None, **changes: object) -> Self:
        return self._become(
            JobStatus.QUEUED,
            submit=None,
            provider_task_id=None,
            submitted_at=None,
            confirm_until=None,
            unclear_at=None,
            due_at=due_at,
            postponed=self.postponed + 1,
            **changes,
        )

    def _become(self, status: JobStatus, **changes: object) -> Self:
        if status is not self.status:
            moved(JOB_TRANSITIONS, self.status, status, subject=f"job {self.job_id}")
        return self._changed(status=status, **changes)

    def _changed(self, **changes: object) -> Self:
        return self.model_copy(update={**changes, "version": self.version + 1})


def _orphan(cost_usd: float) -> Tally:
    """Return what a call costs that may be billed and brings nothing; one that is free is nothing at all."""
    return Tally(orphaned=1, spent_usd=cost_usd, orphaned_usd=cost_usd) if cost_usd > 0 else Tally()
