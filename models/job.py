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
    JobSubmitted,
    JobSucceeded,
    PollNow,
    PollStalled,
    SubmitIntended,
    SubmitOutcomeUnknown,
)
from models.lifecycle import JOB_TRANSITIONS, JobStatus, SubmitState, moved
from models.values import Value
from models.work import JobKind, JobRequest, Offer, Output, Source, Tally

_GIVEN_UP: Final = frozenset({ErrorCode.PROVIDER_TIMEOUT, ErrorCode.SUBMIT_UNKNOWN, ErrorCode.OUTPUT_MISSING})
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
    status: JobStatus = JobStatus.QUEUED
    submit: SubmitState | None = None
    provider_task_id: str | None = None
    intended_at: datetime | None = None
    submitted_at: datetime | None = None
    due_at: datetime | None = None
    postponed: int = 0
    progress: float | None = None
    output: Output | None = None
    source: Source | None = None
    error_code: ErrorCode | None = None
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
    def fingerprint(self) -> str:
        """The hash of what is asked of whom: equal jobs have equal outputs."""
        return fingerprint(
            {
                "provider": self.offer.provider,
                "model": self.offer.model,
                "request": self.request.model_dump(mode="json"),
            }
        )

    @property
    def is_orphan(self) -> bool:
        """Whether the attempt was given up while the provider may still finish it, and bill it."""
        given_up = self.status is JobStatus.CANCELLED or self.error_code in _GIVEN_UP
        return given_up and self.submit is not None and self.offer.cost_usd > 0

    @property
    def tally(self) -> Tally:
        """What this job has cost over all its attempts."""
        match self.source:
            case Source.MADE:
                return self.earlier + Tally(bought=1, spent_usd=self.offer.cost_usd)
            case Source.CACHED:
                return self.earlier + Tally(cached=1, saved_usd=self.offer.cost_usd)
            case None if self.is_orphan:
                cost = self.offer.cost_usd
                return self.earlier + Tally(orphaned=1, spent_usd=cost, orphaned_usd=cost)
            case None:
                return self.earlier
            case _:
                assert_never(self.source)

    def evolve(self, event: JobEvent) -> Self:
        """Return the job after *event*; one of another attempt, late or seen before, changes nothing."""
        if event.job_id != self.job_id or event.attempt != self.attempt or self.finished:
            return self
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
            case JobPostponed():
                return this_call
            case PollStalled():
                return self.submit is SubmitState.ACCEPTED and self.status is not JobStatus.DELAYED
            case JobStillRunning():
                return this_call and event.progress is not None and event.progress > (self.progress or 0.0)
            case JobFailed():
                return this_call
            case JobSucceeded():
                return True
            case PollNow():
                return False
            case _:
                assert_never(event)

    def _applied(self, event: JobEvent) -> Self:
        match event:
            case SubmitIntended():
                return self._become(
                    JobStatus.RUNNING,
                    submit=SubmitState.INTENDED,
                    intended_at=event.occurred_at,
                    due_at=None,
                )
            case JobSubmitted():
                return self._become(
                    JobStatus.RUNNING,
                    submit=SubmitState.ACCEPTED,
                    provider_task_id=event.provider_task_id,
                    submitted_at=event.occurred_at,
                )
            case SubmitOutcomeUnknown():
                return self._become(JobStatus.RUNNING, submit=SubmitState.UNKNOWN)
            case JobPostponed():
                return self._become(
                    JobStatus.QUEUED,
                    submit=None,
                    provider_task_id=None,
                    submitted_at=None,
                    due_at=event.due_at,
                    postponed=self.postponed + 1,
                )
            case PollStalled():
                return self._become(JobStatus.DELAYED)
            case JobStillRunning():
                return self._become(JobStatus.RUNNING, progress=event.progress)
            case JobSucceeded():
                return self._become(
                    JobStatus.SUCCEEDED, output=event.output, source=event.source, progress=1.0
                )
            case JobFailed():
                return self._become(JobStatus.FAILED, error_code=event.error_code)
            case PollNow():
                return self
            case _:
                assert_never(event)

    def cancel(self) -> Self:
        """Return the job, given up on; a finished one is returned as it is."""
        return self if self.finished else self._become(JobStatus.CANCELLED)

    def again(self, wanted: "Job") -> Self:
        """Return the next attempt, which does what *wanted* asks, and remembers what this one cost."""
        return type(self).model_validate(
            wanted.model_copy(
                update={"attempt": self.attempt + 1, "earlier": self.tally, "version": self.version + 1}
            )
        )

    def _become(self, status: JobStatus, **changes: object) -> Self:
        if status is not self.status:
            moved(JOB_TRANSITIONS, self.status, status, subject=f"job {self.job_id}")
        return self._changed(status=status, **changes)

    def _changed(self, **changes: object) -> Self:
        return self.model_copy(update={**changes, "version": self.version + 1})
