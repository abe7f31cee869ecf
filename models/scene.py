"""A scene of a project: what it needs, how far it is, and what is already stored."""

from collections.abc import Callable
from typing import Self, assert_never

from models.commands import RequestScene, Want
from models.errors import ErrorCode
from models.events import (
    ConfirmationNeeded,
    ProjectCompleted,
    ProjectFailed,
    SceneCompleted,
    SceneFailed,
    SceneProgressed,
)
from models.identifiers import FILM, fingerprint
from models.lifecycle import SCENE_TRANSITIONS, SceneStatus, moved
from models.request import USUAL_CLIP_SECONDS, ProjectRequest, SceneRequest, Visual
from models.values import Moment, Value
from models.work import (
    Assets,
    ClipRequest,
    Decision,
    ImageRequest,
    Offer,
    Question,
    RenderedScene,
    RenderRequest,
    SpeechRequest,
    Tally,
)


class Answer(Value):
    """What a person decided about a question, by which command, and when."""

    command_id: str
    decision: Decision
    provider_task_id: str | None
    moment: Moment


class Asked(Value):
    """A question about a paid call of the scene, when it was asked, and its answer where there is one."""

    question: Question
    revision: int = 0
    moment: Moment
    answer: Answer | None = None
    closed: bool = False
    """The job went on without an answer, as when a webhook named its task."""

    @property
    def is_open(self) -> bool:
        """Whether somebody still waits for the answer."""
        return self.answer is None and not self.closed

    def while_asking(self, jobs: tuple[str, ...]) -> Self:
        """Return this where only *jobs* wait for an answer."""
        if self.question.job_id in jobs or not self.is_open:
            return self
        return self.model_copy(update={"closed": True})


class Scene(Value):
    """One scene, or the film as the last of all scenes: both are asked for, made and counted alike.

    `changed`, `delayed` and `settled` say when it last moved, was last delayed, and its cost last changed
    after its end: the events of those moments can be sent again from them.
    """

    scene_id: str
    status: SceneStatus = SceneStatus.PENDING
    attempt: int = 0
    assets: Assets = Assets()
    tally: Tally = Tally()
    finished_jobs: int = 0
    progress: float = 0.0
    error_code: ErrorCode | None = None
    changed: Moment | None = None
    delayed: Moment | None = None
    asked: tuple[Asked, ...] = ()
    revision: int = 0
    settled: Moment | None = None

    def start(self, moment: Moment) -> Self:
        """Return the scene with a new attempt in progress; what is already stored stays."""
        return self._move(
            SceneStatus.IN_PROGRESS,
            moment,
            attempt=self.attempt + 1,
            progress=0.0,
            finished_jobs=0,
            error_code=None,
            delayed=None,
            asked=(),
        )

    def progressed(self, event: SceneProgressed) -> Self:
        """Return the scene with what *event* tells of it."""
        return self.model_copy(
            update={
                "progress": event.progress,
                "finished_jobs": event.finished_jobs,
                "revision": event.revision,
                "asked": tuple(each.while_asking(event.asking) for each in self.asked),
                "assets": event.assets,
                "tally": event.tally,
            }
        )

    def finish(
        self, event: SceneCompleted | SceneFailed | ProjectCompleted | ProjectFailed, moment: Moment
    ) -> Self:
        """Return the scene at the end of its attempt."""
        match event:
            case SceneCompleted() | ProjectCompleted():
                return self._move(
                    SceneStatus.COMPLETED, moment, assets=event.assets, tally=event.tally, progress=1.0
                )
            case SceneFailed() | ProjectFailed():
                return self._move(
                    SceneStatus.FAILED,
                    moment,
                    assets=event.assets,
                    tally=event.tally,
                    error_code=event.error_code,
                )
            case _:
                assert_never(event)

    def wonder(self, event: ConfirmationNeeded, moment: Moment) -> Self:
        """Return the scene with a question for a person."""
        asked = Asked(question=event.question, revision=event.revision, moment=moment)
        return self.model_copy(
            update={"asked": (*self.asked, asked), "revision": max(self.revision, event.revision)}
        )

    def answer(self, job_id: str, answer: Answer) -> Self:
        """Return the scene with the question about the job answered."""
        return self.model_copy(
            update={
                "asked": tuple(
                    each.model_copy(update={"answer": answer})
                    if each.question.job_id == job_id and each.is_open
                    else each
                    for each in self.asked
                )
            }
        )

    @property
    def open_questions(self) -> tuple[Question, ...]:
        """What a person must decide before the scene can go on; the latest about each job."""
        if self.status is not SceneStatus.IN_PROGRESS:
            return ()
        latest = {each.question.job_id: each for each in self.asked}
        return tuple(each.question for each in latest.values() if each.is_open)

    def rewritten(self, before: tuple[Want, ...], after: tuple[Want, ...]) -> Self:
        """Return the scene without the assets that are wanted otherwise *after* a change than *before*."""
        known = [want.request for want in before]
        assets = self.assets
        for want in after:
            if want.request not in known:
                assets = assets.without(want.kind)
        return self.model_copy(update={"assets": assets})

    def settle(self, tally: Tally, revision: int, moment: Moment) -> Self:
        """Return the scene, which is over, with what it has really cost."""
        return self.model_copy(update={"tally": tally, "revision": revision, "settled": moment})

    def _move(self, status: SceneStatus, moment: Moment, **changes: object) -> Self:
        moved(SCENE_TRANSITIONS, self.status, status, subject=self.scene_id)
        return self.model_copy(update={**changes, "status": status, "changed": moment})


def wants_of(scene: SceneRequest, project: ProjectRequest) -> tuple[Want, ...]:
    """Tell which assets *scene* needs: its picture or clip first, then its narration, if it has any."""
    chosen = {str(kind): name for kind, name in (*project.providers.items(), *scene.providers.items())}
    requests: list[ImageRequest | ClipRequest | SpeechRequest] = []
    seed = _seed(scene.variation)
    if scene.visual is Visual.CLIP:
        requests.append(
            ClipRequest(
                prompt=scene.prompt,
                aspect_ratio=project.aspect_ratio,
                duration_seconds=scene.duration_seconds or USUAL_CLIP_SECONDS,
                seed=seed,
                first_frame_url=scene.picture,
            )
        )
    else:
        size = project.aspect_ratio.size
        requests.append(
            ImageRequest(
                prompt=scene.prompt,
                width=size.width,
                height=size.height,
                seed=seed,
                picture_url=scene.picture,
            )
        )
    if scene.narration:
        requests.append(SpeechRequest(text=scene.narration, language=project.language, voice=project.voice))
    return tuple(
        Want(request=request, provider=chosen.get(request.kind), use_cache=project.use_cache)
        for request in requests
    )


def estimated_cost(project: ProjectRequest, offer_for: Callable[[Want], Offer]) -> float:
    """Return what all assets of *project* would cost, each bought once, in US dollars."""
    wants = [want for scene in project.scenes for want in wants_of(scene, project)]
    return round(sum(offer_for(want).cost_usd for want in wants), 6)


def scene_command(project_id: str, scene: Scene, request: ProjectRequest, number: int) -> RequestScene:
    """Ask for the scene with *number*, counted from 0."""
    return RequestScene(
        project_id=project_id,
        scene_id=scene.scene_id,
        attempt=scene.attempt,
        user_id=request.user_id,
        budget_usd=request.max_cost_usd,
        wants=wants_of(request.scenes[number], request),
    )


def film_command(
    project_id: str, film: Scene, scenes: tuple[Scene, ...], request: ProjectRequest
) -> RequestScene:
    """Ask for the film of all *scenes*, which are Completed."""
    rendered = tuple(
        RenderedScene(
            scene_id=scene.scene_id,
            image_url=scene.assets.image_url,
            clip_url=scene.assets.clip_url,
            audio_url=scene.assets.audio_url,
            captions_url=scene.assets.captions_url,
            minimum_seconds=asked.duration_seconds,
        )
        for scene, asked in zip(scenes, request.scenes, strict=True)
    )
    render = RenderRequest(title=request.title, aspect_ratio=request.aspect_ratio, scenes=rendered)
    return RequestScene(
        project_id=project_id,
        scene_id=FILM,
        attempt=film.attempt,
        user_id=request.user_id,
        wants=(Want(request=render),),
    )


def _seed(variation: int | str | None) -> int:
    """Turn *variation* into a seed; none at all is seed 0, so that equal scenes ask for equal work."""
    if variation is None:
        return 0
    return int(fingerprint({"variation": variation})[:8], 16)
