"""What is asked of a provider, and what comes back: the requests, the outputs, and what they cost."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Self, assert_never

from pydantic import Field

from models.shapes import AspectRatio
from models.values import Value


class JobKind(StrEnum):
    """What a job makes."""

    IMAGE = "image"
    SPEECH = "speech"
    CLIP = "clip"
    RENDER = "render"


class ImageRequest(Value):
    """A picture of `width` x `height` pixels made from `prompt`, or the user's own at `picture_url`."""

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

    def without(self, kind: JobKind) -> Self:
        """Return these assets without that of a job of *kind*."""
        match kind:
            case JobKind.IMAGE:
                return self.model_copy(update={"image_url": None})
            case JobKind.CLIP:
                return self.model_copy(update={"clip_url": None})
            case JobKind.SPEECH:
                return self.model_copy(update={"audio_url": None, "captions_url": None, "seconds": None})
            case JobKind.RENDER:
                return self.model_copy(update={"video_url": None, "report_url": None, "seconds": None})
            case _:
                assert_never(kind)


class Tally(Value):
    """What a piece of work has cost so far: counts of jobs, and US dollars."""

    bought: int = 0
    cached: int = 0
    orphaned: int = 0
    fallback: int = 0
    """Those of `bought` that another provider made than the one that was asked first."""
    spent_usd: float = 0.0
    saved_usd: float = 0.0
    orphaned_usd: float = 0.0
    """The part of `spent_usd` that bought nothing."""

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            bought=self.bought + other.bought,
            cached=self.cached + other.cached,
            orphaned=self.orphaned + other.orphaned,
            fallback=self.fallback + other.fallback,
            spent_usd=self.spent_usd + other.spent_usd,
            saved_usd=self.saved_usd + other.saved_usd,
            orphaned_usd=self.orphaned_usd + other.orphaned_usd,
        )


class Offer(Value):
    """Who makes assets of one kind: names of provider and model, and the price of a call in US dollars.

    `provider` is the name of the account, `endpoint` and `list_endpoint` are where it is reached, and `terms`
    what else is ordered, such as the resolution. All of it is frozen in the row of a job.
    """

    provider: str
    model: str
    cost_usd: float = 0.0
    endpoint: str = ""
    list_endpoint: str = ""
    terms: Mapping[str, str] = {}
    as_task: bool = False
    """Whether what is asked for is made as a task, which has an id; a user's own picture never is."""

    def is_as(self, other: "Offer") -> bool:
        """Tell whether both order the same at the same place, at whatever price."""
        return (self.endpoint, self.list_endpoint, self.model, self.terms) == (
            other.endpoint,
            other.list_endpoint,
            other.model,
            other.terms,
        )


class Decision(StrEnum):
    """What a person decides about a paid call of which nobody knows whether it was accepted."""

    RESEND = "resend"
    ADOPT = "adopt"
    GIVE_UP = "give_up"


class Question(Value):
    """A paid call of which nobody knows whether it was accepted: a person must decide what follows.

    `cost_usd` is what the call may have cost already, and what another one would cost; unanswered by `until`,
    the job is given up.
    """

    job_id: str
    kind: JobKind
    attempt: int
    call: int
    provider: str
    model: str
    cost_usd: float
    until: datetime
    as_task: bool = False
    """Whether the call makes a task, which has an id; clips always are some."""

    @property
    def can_adopt(self) -> bool:
        """Whether there may be a task to go on with."""
        return self.as_task or self.kind is JobKind.CLIP

    @property
    def key(self) -> tuple[str, int, int]:
        """Names the call that the question is about."""
        return self.job_id, self.attempt, self.call
