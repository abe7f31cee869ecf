"""The Project aggregate: a film in the making, and the only way to change it, its scenes and its money.

A project evolves by events. `models.decisions` says which events a message leads to.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, Literal, Self, assert_never

from models.commands import CancelScene, ResolveSubmit, SceneCommand
from models.errors import ErrorCode, UnknownScene
from models.events import (
    ConfirmationAnswered,
    ConfirmationNeeded,
    CreditsRequested,
    Event,
    ProjectAccepted,
    ProjectCancelled,
    ProjectCompleted,
    ProjectDelayed,
    ProjectFailed,
    ProjectResumed,
    Receipt,
    ReceiptChanged,
    RenderRequested,
    SceneCompleted,
    SceneFailed,
    SceneProgressed,
    ScenesRequested,
)
from models.identifiers import CREDITS, FILM, scene_id
from models.lifecycle import PROJECT_TRANSITIONS, ProjectState, SceneStatus, moved
from models.request import ProjectRequest
from models.scene import Answer, Scene, film_command, scene_command, wants_of
from models.values import Moment, Value
from models.work import Tally

OPEN: Final = frozenset({ProjectState.CREATED, ProjectState.GENERATING_SCENES, ProjectState.RENDERING})
"""The states of a project that still has work to do."""

_REMEMBERED: Final = 32


class Resumption(Value):
    """The last time that the work was taken up again: why, when, by which command, and what was kept."""

    reason: Literal["retry", "takeover"]
    command_id: str
    moment: Moment
    kept: Tally
    changed: bool = False
    """Whether the request was changed with it."""


class Reservation(Value):
    """What the ledger of credits was asked to hold last, in micro-dollars, and why it refused, if it did."""

    number: int
    moment: Moment
    micros: int
    refused: ErrorCode | None = None


class Project(Value):
    """A film in the making. A value: `evolve` returns a new one."""

    project_id: str
    request: ProjectRequest
    state: ProjectState = ProjectState.CREATED
    version: int
    scenes: tuple[Scene, ...]
    film: Scene = Scene(scene_id=FILM)
    created_at: datetime
    updated_at: datetime
    finished: Moment | None = None
    resumed: Resumption | None = None
    reservation: Reservation | None = None
    retried: str | None = None
    """The one scene that the last retry was for, where it named one."""
    cancelled_at: Receipt | None = None
    """The receipt at the moment of the cancellation; the one of today may count more."""
    carried_out: tuple[str, ...] = ()
    """The ids of the latest commands that resumed the work: one that comes again is not carried out again."""

    @classmethod
    def begin(cls, event: ProjectAccepted) -> Self:
        """Make the project that *event* announces."""
        return cls(
            project_id=event.project_id,
            request=event.request,
            version=event.version,
            scenes=tuple(Scene(scene_id=scene_id(n + 1)) for n in range(len(event.request.scenes))),
            created_at=event.occurred_at,
            updated_at=event.occurred_at,
        )

    def evolve(self, event: Event) -> Self:
        """Apply *event*; one whose version is not newer changes nothing.

        Raises `IllegalTransition` where the transition table does not allow it.
        """
        if event.version <= self.version:
            return self
        changed = self._applied(event, Moment(version=event.version, at=event.occurred_at))
        return changed.model_copy(update={"version": event.version, "updated_at": event.occurred_at})

    def _applied(self, event: Event, moment: Moment) -> Self:
        match event:
            case ProjectAccepted():
                return self
            case ScenesRequested():
                project = self._enter(ProjectState.GENERATING_SCENES)
                return project.with_parts(*(project.part(scene).start(moment) for scene in event.scene_ids))
            case CreditsRequested():
                number = self.reservation.number + 1 if self.reservation else 1
                asked = Reservation(number=number, moment=moment, micros=event.micros)
                return self.model_copy(update={"reservation": asked})
            case RenderRequested():
                return self._enter(ProjectState.RENDERING).with_parts(self.film.start(moment))
            case SceneProgressed():
                return self.with_parts(self.part(event.scene_id).progressed(event))
            case SceneCompleted() | SceneFailed():
                return self.with_parts(self.part(event.scene_id).finish(event, moment))
            case ProjectDelayed():
                return self.with_parts(self.part(event.scene_id).model_copy(update={"delayed": moment}))
            case ConfirmationNeeded():
                return self.with_parts(self.part(event.scene_id).wonder(event, moment))
            case ConfirmationAnswered():
                answer = Answer(
                    command_id=event.command_id,
                    decision=event.decision,
                    provider_task_id=event.provider_task_id,
                    moment=moment,
                )
                return self.with_parts(self.part(event.scene_id).answer(event.question.job_id, answer))
            case ReceiptChanged():
                part = self.part(event.scene_id)
                return self.with_parts(part.settle(event.tally, event.revision, moment))
            case ProjectResumed():
                resumed = Resumption(
                    reason=event.reason,
                    command_id=event.command_id,
                    moment=moment,
                    kept=event.kept,
                    changed=event.request is not None,
                )
                target = ProjectState.GENERATING_SCENES if event.reason == "retry" else self.state
                known = (*self.carried_out, event.command_id)[-_REMEMBERED:]
                project = self._enter(target).rewritten(event.request or self.request)
                retried = event.scene_id if event.reason == "retry" else self.retried
                return project.model_copy(
                    update={
                        "resumed": resumed,
                        "finished": None,
                        "carried_out": known,
                        "retried": retried,
                    }
                )
            case ProjectCompleted():
                return self._end(ProjectState.COMPLETED, moment).with_parts(self.film.finish(event, moment))
            case ProjectFailed() if event.scene_id == FILM:
                return self._end(ProjectState.FAILED, moment).with_parts(self.film.finish(event, moment))
            case ProjectFailed() if event.scene_id == CREDITS and self.reservation:
                refused = self.reservation.model_copy(update={"refused": event.error_code})
                return self._end(ProjectState.FAILED, moment).model_copy(update={"reservation": refused})
            case ProjectFailed():
                return self._end(ProjectState.FAILED, moment)
            case ProjectCancelled():
                ended = self._end(ProjectState.CANCELLED, moment)
                return ended.model_copy(update={"cancelled_at": event.receipt})
            case _:
                assert_never(event)

    def part(self, wanted: str) -> Scene:
        """Return the scene, or the film, with the id *wanted*. Raises `UnknownScene`."""
        for part in self.parts:
            if part.scene_id == wanted:
                return part
        raise UnknownScene(self.project_id, wanted)

    @property
    def parts(self) -> Iterator[Scene]:
        """All scenes in order, and the film last."""
        yield from self.scenes
        yield self.film

    def orders(self, event: Event) -> tuple[SceneCommand, ...]:
        """Tell what the scenes agent must do because of *event*, which this project has applied."""
        match event:
            case ScenesRequested():
                return tuple(
                    scene_command(self.project_id, scene, self.request, number)
                    for number, scene in enumerate(self.scenes)
                    if scene.scene_id in event.scene_ids
                )
            case RenderRequested():
                return (film_command(self.project_id, self.film, self.scenes, self.request),)
            case ProjectCancelled():
                return tuple(
                    CancelScene(project_id=self.project_id, scene_id=part.scene_id, attempt=part.attempt)
                    for part in self.parts
                    if part.status is SceneStatus.IN_PROGRESS
                )
            case ConfirmationAnswered():
                return (
                    ResolveSubmit(
                        project_id=self.project_id,
                        job_id=event.question.job_id,
                        attempt=event.question.attempt,
                        call=event.question.call,
                        decision=event.decision,
                        provider_task_id=event.provider_task_id,
                    ),
                )
            case _:
                return ()

    @property
    def wanted(self) -> tuple[Scene, ...]:
        """The scenes that are to be made: one that a retry named and those never begun, or all missing."""
        missing = tuple(scene for scene in self.scenes if scene.status is not SceneStatus.COMPLETED)
        if all(scene.scene_id != self.retried for scene in missing):
            return missing
        return tuple(s for s in missing if s.scene_id == self.retried or s.status is SceneStatus.PENDING)

    @property
    def is_open(self) -> bool:
        """Whether there is still work to do."""
        return self.state in OPEN

    @property
    def unused_reservation(self) -> Reservation | None:
        """What the ledger was asked to hold, if no work has begun since."""
        asked = self.reservation
        if asked is None or any(p.changed and p.changed.version > asked.moment.version for p in self.parts):
            return None
        return asked

    @property
    def tally(self) -> Tally:
        """What all scenes and the film have cost so far."""
        return sum((part.tally for part in self.parts), Tally())

    @property
    def receipt(self) -> Receipt:
        """What the project has cost; kept work counts as reused, and what it had cost as saved."""
        tally, kept = self.tally, self.resumed.kept if self.resumed else Tally()
        return Receipt(
            bought=tally.bought,
            reused=kept.bought + kept.cached,
            cached=tally.cached,
            orphaned=tally.orphaned,
            fallback=tally.fallback,
            spent_usd=round(tally.spent_usd, 6),
            saved_usd=round(tally.saved_usd + kept.spent_usd - kept.orphaned_usd, 6),
        )

    def rewritten(self, request: ProjectRequest) -> Self:
        """Return the project with *request*, and without the assets that it wants otherwise."""
        if request == self.request:
            return self
        scenes = tuple(
            scene
            if scene.status is SceneStatus.COMPLETED
            else scene.rewritten(wants_of(before, self.request), wants_of(after, request))
            for scene, before, after in zip(self.scenes, self.request.scenes, request.scenes, strict=True)
        )
        return self.model_copy(update={"request": request, "scenes": scenes})

    def _enter(self, state: ProjectState) -> Self:
        if state is self.state:
            return self
        moved(PROJECT_TRANSITIONS, self.state, state, subject=f"project {self.project_id}")
        return self.model_copy(update={"state": state})

    def _end(self, state: ProjectState, moment: Moment) -> Self:
        return self._enter(state).model_copy(update={"finished": moment})

    def with_parts(self, *parts: Scene) -> Self:
        """Return the project with *parts* in place of those of the same ids."""
        new = {part.scene_id: part for part in parts}
        return self.model_copy(
            update={
                "scenes": tuple(new.get(scene.scene_id, scene) for scene in self.scenes),
                "film": new.get(FILM, self.film),
            }
        )
