"""A job: one paid or local call for one asset of one scene, from the intent to the stored output."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, Literal, Self, assert_never

from pydantic import Field

from models.errors import ErrorCode
from models.identifiers import fingerprint, job_id
from models.lifecycle import JOB_TRANSITIONS, JobStatus, SubmitState, moved
from models.shapes import AspectRatio
from models.values import Value


class JobKind(StrEnum):
    """What a job makes."""

    IMAGE = "image"
    SPEECH = "speech"
    CLIP = "clip"
    RENDER = "render"


class ImageRequest(Value):
    """A picture of exactly `width` x `height` pixels; with `picture_url` the user's own, else one made from `prompt`."""

    kind: Literal[JobKind.IMAGE] = JobKind.IMAGE
    prompt: str
    width: int
    height: int
    seed: int = 0
    picture_url: str | None = None


class SpeechRequest(Value):
    """`text` spoken in `language` by `voice`, or by the usual voice of that language."""

    kind: Literal[JobKind.SPEECH] = JobKind.SPEECH
    text: str
    language: str
    voice: str | None = None


class ClipRequest(Value):
    """A moving picture of `duration_seconds`, from `prompt` and, where given, a first frame."""

    kind: Literal[JobKind.CLIP] = JobKind.CLIP
    prompt: str
    aspect_ratio: AspectRatio
    duration_seconds: float
    seed: int = 0
    first_frame_url: str | None = None


class RenderedScene(Value):
    """What the film needs of one scene: the URLs of its assets, and the seconds it must last at least."""

    scene_id: str
    image_url: str | None = None
    clip_url: str | None = None
    audio_url: str | None = None
    captions_url: str | None = None
    minimum_seconds: float | None = None


class RenderRequest(Value):
    """The finished film of all scenes, in order."""

    kind: Literal[JobKind.RENDER] = JobKind.RENDER
    title: str
    aspect_ratio: AspectRatio
    scenes: tuple[RenderedScene, ...]


JobRequest = Annotated[
    ImageRequest | SpeechRequest | ClipRequest | RenderRequest, Field(discriminator="kind")
]


class Source(StrEnum):
    """Where an output came from: made for this job, or found in the store because it was made before."""

    MADE = "made"
    CACHED = "cached"


class Output(Value):
    """A stored, checked asset. `seconds` for sound and video; `captions_url` where words have times."""

    url: str
    media_type: str
    seconds: float | None = None
    captions_url: str | None = None
    report_url: str | None = None


class Assets(Value):
    """The stored assets of one scene, or of the film; `seconds` is the length of its sound or of the film."""

    image_url: str | None = None
    audio_url: str | None = None
    clip_url: str | None = None
    captions_url: str | None = None
    video_url: str | None = None
    report_url: str | None = None
    seconds: float | None = None

    def including(self, kind: JobKind, output: Output) -> Self:
        """Return these assets with the *output* of a job of *kind* among them."""
        match kind:
            case JobKind.IMAGE:
                return self.model_copy(update={"image_url": output.url})
            case JobKind.CLIP:
                return self.model_copy(update={"clip_url": output.url})
            case JobKind.SPEECH:
                return self.model_copy(
                    update={
                        "audio_url": output.url,
                        "captions_url": output.captions_url,
                        "seconds": output.seconds,
                    }
                )
            case JobKind.RENDER:
                return self.model_copy(
                    update={
                        "video_url": output.url,
                        "report_url": output.report_url,
                        "seconds": output.seconds,
                    }
                )
            case _:
                assert_never(kind)


class Tally(Value):
    """What a piece of work has cost so far: counts of jobs, and US dollars."""

    bought: int = 0
    cached: int = 0
    orphaned: int = 0
    spent_usd: float = 0.0
    saved_usd: float = 0.0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            bought=self.bought + other.bought,
            cached=self.cached + other.cached,
            orphaned=self.orphaned + other.orphaned,
            spent_usd=self.spent_usd + other.spent_usd,
            saved_usd=self.saved_usd + other.saved_usd,
        )


class Offer(Value):
    """Who makes assets of one kind: the provider's and the model's name, and its price per call in US dollars."""

    provider: str
    model: str
    cost_usd: float = 0.0


class _JobEvent(Value):
    """What somebody learned about one attempt at a job."""

    event_id: str
    project_id: str
    job_id: str
    attempt: int
    call: int = 0
    """How many calls of this attempt were postponed before the one that this event is about."""
    occurred_at: datetime


class SubmitIntended(_JobEvent):
    """The next thing that happens is the call that may cost money."""

    type: Literal["SubmitIntended"] = "SubmitIntended"


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
    """The attempt is over, and nothing more will be tried by itself."""

    type: Literal["JobFailed"] = "JobFailed"
    error_code: ErrorCode


class SubmitOutcomeUnknown(_JobEvent):
    """Nobody can tell whether the provider accepted the job: it is not sent again by itself."""

    type: Literal["SubmitOutcomeUnknown"] = "SubmitOutcomeUnknown"


class PollStalled(_JobEvent):
    """The poll schedule ran out while the provider still worked."""

    type: Literal["PollStalled"] = "PollStalled"


JobEvent = Annotated[
    SubmitIntended
    | JobSubmitted
    | JobStillRunning
    | JobPostponed
    | JobSucceeded
    | JobFailed
    | SubmitOutcomeUnknown
    | PollStalled,
    Field(discriminator="type"),
]

_GIVEN_UP: Final = frozenset(
    {ErrorCode.PROVIDER_TIMEOUT, ErrorCode.SUBMIT_UNKNOWN, ErrorCode.OUTPUT_MISSING}
)
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
        return given_up and self.submit in {SubmitState.ACCEPTED, SubmitState.UNKNOWN}

    @property
    def tally(self) -> Tally:
        """What this job has cost over all its attempts."""
        match self.source:
            case Source.MADE:
                return self.earlier + Tally(bought=1, spent_usd=self.offer.cost_usd)
            case Source.CACHED:
                return self.earlier + Tally(cached=1, saved_usd=self.offer.cost_usd)
            case None if self.is_orphan:
                return self.earlier + Tally(orphaned=1, spent_usd=self.offer.cost_usd)
            case None:
                return self.earlier
            case _:
                assert_never(self.source)

    def evolve(self, event: JobEvent) -> Self:
        """Return the job after *event*; one of another attempt, late or seen before, changes nothing."""
        if event.job_id != self.job_id or event.attempt != self.attempt or self.finished:
            return self
        match event:
            case SubmitIntended():
                if self.submit is not None or event.call != self.postponed:
                    return self
                return self._become(JobStatus.RUNNING, submit=SubmitState.INTENDED, due_at=None)
            case JobSubmitted():
                if self.provider_task_id is not None or event.call != self.postponed:
                    return self
                return self._become(
                    JobStatus.RUNNING,
                    submit=SubmitState.ACCEPTED,
                    provider_task_id=event.provider_task_id,
                    submitted_at=event.occurred_at,
                )
            case JobStillRunning():
                if event.progress is None or event.progress <= (self.progress or 0.0):
                    return self
                return self._become(JobStatus.RUNNING, progress=event.progress)
            case JobPostponed():
                if event.call != self.postponed:
                    return self
                return self._become(
                    JobStatus.QUEUED,
                    submit=None,
                    provider_task_id=None,
                    submitted_at=None,
                    due_at=event.due_at,
                    postponed=self.postponed + 1,
                )
            case JobSucceeded():
                return self._become(
                    JobStatus.SUCCEEDED, output=event.output, source=event.source, progress=1.0
                )
            case JobFailed():
                return self._become(JobStatus.FAILED, error_code=event.error_code)
            case SubmitOutcomeUnknown():
                if self.submit is not SubmitState.INTENDED or event.call != self.postponed:
                    return self
                return self._become(JobStatus.RUNNING, submit=SubmitState.UNKNOWN)
            case PollStalled():
                if self.submit is not SubmitState.ACCEPTED or self.status is JobStatus.DELAYED:
                    return self
                return self._become(JobStatus.DELAYED)
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
