"""What the runner, the polls and the recovery learned about a job, on job-events. Safe to read twice."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from models.errors import ErrorCode
from models.lifecycle import SubmitState
from models.values import Value
from models.work import Output, Source


class _JobEvent(Value):
    """What somebody learned about one attempt at a job."""

    event_id: str
    project_id: str
    job_id: str
    attempt: int
    call: int = 0
    """How many calls of this attempt were postponed before the one that this event is about."""
    submit: SubmitState | None = None
    """What was known of that call when this was learned: it says nothing against what is known by now."""
    occurred_at: datetime


class SubmitIntended(_JobEvent):
    """The next thing that happens is the call that may cost money."""

    type: Literal["SubmitIntended"] = "SubmitIntended"
    by: str = ""
    """Names the worker process that announces: only this one may make the call."""


class JobSubmitted(_JobEvent):
    """The provider accepted the job under its own task id."""

    type: Literal["JobSubmitted"] = "JobSubmitted"
    provider_task_id: str


class JobStillRunning(_JobEvent):
    """The provider is at it; `progress` from 0 to 1 where it says so."""

    type: Literal["JobStillRunning"] = "JobStillRunning"
    progress: float | None = None


class JobPostponed(_JobEvent):
    """A call surely failed, so that nothing was bought, and is worth another one at `due_at`."""

    type: Literal["JobPostponed"] = "JobPostponed"
    due_at: datetime
    error_code: ErrorCode


class JobSucceeded(_JobEvent):
    """The output is stored and checked."""

    type: Literal["JobSucceeded"] = "JobSucceeded"
    output: Output
    source: Source


class JobFailed(_JobEvent):
    """The attempt is over, and nothing more will be tried by itself.

    `taken_back` where the provider surely does not go on with the task, so that it is not billed.
    """

    type: Literal["JobFailed"] = "JobFailed"
    error_code: ErrorCode
    taken_back: bool = False


class SubmitOutcomeUnknown(_JobEvent):
    """Nobody can tell whether the provider accepted the job: it is not sent again by itself."""

    type: Literal["SubmitOutcomeUnknown"] = "SubmitOutcomeUnknown"


class SubmitUnresolved(_JobEvent):
    """Nothing that can be looked up tells whether the call was accepted: a person must say, by `until`."""

    type: Literal["SubmitUnresolved"] = "SubmitUnresolved"
    until: datetime


class JobStopped(_JobEvent):
    """What became of the paid call of a cancelled job: surely taken back, or else `billed`."""

    type: Literal["JobStopped"] = "JobStopped"
    billed: bool


class PollStalled(_JobEvent):
    """The poll schedule ran out while the provider still worked."""

    type: Literal["PollStalled"] = "PollStalled"


class PollNow(_JobEvent):
    """Somebody, such as a webhook, hints that there is news: look now. A hint, never a fact.

    `provider_task_id` is the task that the hint is about, where it says so.
    """

    type: Literal["PollNow"] = "PollNow"
    provider_task_id: str | None = None


JobEvent = Annotated[
    SubmitIntended
    | JobSubmitted
    | JobStillRunning
    | JobPostponed
    | JobSucceeded
    | JobFailed
    | SubmitOutcomeUnknown
    | SubmitUnresolved
    | JobStopped
    | PollStalled
    | PollNow,
    Field(discriminator="type"),
]
