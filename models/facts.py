"""The events of a project, read off the project itself, so that an event sent again is the same event."""

from datetime import datetime

from models.errors import ErrorCode
from models.events import (
    CreditsRequested,
    ProjectAccepted,
    ProjectCancelled,
    ProjectCompleted,
    ProjectDelayed,
    ProjectFailed,
    ProjectResumed,
    RenderRequested,
    SceneCompleted,
    SceneFailed,
    ScenesRequested,
)
from models.identifiers import CREDITS
from models.lifecycle import JobStatus, SceneStatus
from models.messages import message_for
from models.project import Project, Reservation, Resumption
from models.scene import Scene
from models.values import Moment
from models.work import Tally


def accepted(project: Project) -> ProjectAccepted:
    """Tell that the project exists."""
    return ProjectAccepted(
        project_id=project.project_id, version=1, occurred_at=project.created_at, request=project.request
    )


def work_requested(project: Project, moment: Moment) -> ScenesRequested | RenderRequested:
    """Tell which work was handed out: every scene that is not there, or else the film."""
    missing = tuple(s.scene_id for s in project.scenes if s.status is not SceneStatus.COMPLETED)
    if missing:
        return ScenesRequested(
            project_id=project.project_id, version=moment.version, occurred_at=moment.at, scene_ids=missing
        )
    return RenderRequested(project_id=project.project_id, version=moment.version, occurred_at=moment.at)


def credits_requested(project: Project, reservation: Reservation) -> CreditsRequested:
    """Tell what the ledger was asked to hold."""
    return CreditsRequested(
        project_id=project.project_id,
        version=reservation.moment.version,
        occurred_at=reservation.moment.at,
        micros=reservation.micros,
    )


def credits_refused(
    project: Project, reservation: Reservation, code: ErrorCode, moment: Moment
) -> ProjectFailed:
    """Tell that the ledger holds nothing for the project, which ends it for now."""
    return failed(project, Scene(scene_id=CREDITS, attempt=reservation.number), code, moment)


def scene_completed(project: Project, scene: Scene, moment: Moment) -> SceneCompleted:
    """Tell that all assets of *scene* are there."""
    return SceneCompleted(
        project_id=project.project_id,
        version=moment.version,
        occurred_at=moment.at,
        scene_id=scene.scene_id,
        attempt=scene.attempt,
        assets=scene.assets,
        tally=scene.tally,
    )


def scene_failed(project: Project, scene: Scene, code: ErrorCode, moment: Moment) -> SceneFailed:
    """Tell that *scene* cannot be made, in the user's words."""
    return SceneFailed(
        project_id=project.project_id,
        version=moment.version,
        occurred_at=moment.at,
        scene_id=scene.scene_id,
        attempt=scene.attempt,
        error_code=code,
        message=message_for(code, project.request.language),
        assets=scene.assets,
        tally=scene.tally,
    )


def delayed(project: Project, scene: Scene, moment: Moment) -> ProjectDelayed:
    """Tell that *scene* takes longer than usual."""
    return ProjectDelayed(
        project_id=project.project_id,
        version=moment.version,
        occurred_at=moment.at,
        scene_id=scene.scene_id,
        attempt=scene.attempt,
        message=message_for(JobStatus.DELAYED, project.request.language),
    )


def resumed(project: Project, resumption: Resumption) -> ProjectResumed:
    """Tell that the work was taken up again."""
    return ProjectResumed(
        project_id=project.project_id,
        version=resumption.moment.version,
        occurred_at=resumption.moment.at,
        reason=resumption.reason,
        command_id=resumption.command_id,
        kept=resumption.kept,
    )


def completed(project: Project, moment: Moment) -> ProjectCompleted:
    """Tell that the film, which *project* already counts, is finished."""
    return ProjectCompleted(
        project_id=project.project_id,
        version=moment.version,
        occurred_at=moment.at,
        assets=project.film.assets,
        tally=project.film.tally,
        receipt=project.receipt,
    )


def failed(project: Project, scene: Scene, code: ErrorCode, moment: Moment) -> ProjectFailed:
    """Tell that *scene*, or the film, keeps the project from being finished."""
    return ProjectFailed(
        project_id=project.project_id,
        version=moment.version,
        occurred_at=moment.at,
        scene_id=scene.scene_id,
        attempt=scene.attempt,
        error_code=code,
        message=message_for(code, project.request.language),
        assets=scene.assets,
        tally=scene.tally,
        receipt=project.receipt,
    )


def cancelled(project: Project, moment: Moment) -> ProjectCancelled:
    """Tell that the project was stopped."""
    return ProjectCancelled(
        project_id=project.project_id,
        version=moment.version,
        occurred_at=moment.at,
        receipt=project.receipt,
    )


def next_moment(project: Project, now: datetime) -> Moment:
    """Return the moment of the event that comes next."""
    return Moment(version=project.version + 1, at=now)


def taken_up(project: Project, reason: str, command_id: str, now: datetime, *, kept: Tally) -> Resumption:
    """Describe that the work is taken up again now, and what is *kept* of it."""
    return Resumption.model_validate(
        {
            "reason": reason,
            "command_id": command_id,
            "moment": next_moment(project, now),
            "kept": kept,
        }
    )
