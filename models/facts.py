"""The events of a project, read off the project itself, so that an event sent again is the same event."""

from datetime import datetime

from models.errors import ErrorCode
from models.events import (
    ConfirmationAnswered,
    ConfirmationNeeded,
    CreditsRequested,
    ProjectAccepted,
    ProjectCancelled,
    ProjectCompleted,
    ProjectDelayed,
    ProjectFailed,
    ProjectResumed,
    ReceiptChanged,
    RenderRequested,
    SceneCompleted,
    SceneFailed,
    ScenesRequested,
)
from models.identifiers import CREDITS
from models.lifecycle import JobStatus, SubmitState
from models.messages import message_for
from models.project import Project, Reservation, Resumption
from models.scene import Answer, Scene
from models.values import Moment
from models.work import Question, Tally


def accepted(project: Project) -> ProjectAccepted:
    """Tell that the project exists."""
    return ProjectAccepted(
        project_id=project.project_id, version=1, occurred_at=project.created_at, request=project.request
    )


def work_requested(project: Project, moment: Moment) -> ScenesRequested | RenderRequested:
    """Tell which work was handed out: every scene that is wanted, or else the film."""
    wanted = tuple(scene.scene_id for scene in project.wanted)
    if wanted:
        return ScenesRequested(
            project_id=project.project_id, version=moment.version, occurred_at=moment.at, scene_ids=wanted
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


def confirmation_needed(
    project: Project, scene: Scene, question: Question, revision: int, moment: Moment
) -> ConfirmationNeeded:
    """Tell that a person must decide about a paid call of *scene*."""
    return ConfirmationNeeded(
        project_id=project.project_id,
        version=moment.version,
        occurred_at=moment.at,
        scene_id=scene.scene_id,
        attempt=scene.attempt,
        revision=revision,
        question=question,
        message=message_for(SubmitState.NEEDS_CONFIRMATION, project.request.language),
    )


def confirmation_answered(
    project: Project, scene: Scene, question: Question, answer: Answer
) -> ConfirmationAnswered:
    """Tell what a person decided about a paid call of *scene*."""
    return ConfirmationAnswered(
        project_id=project.project_id,
        version=answer.moment.version,
        occurred_at=answer.moment.at,
        scene_id=scene.scene_id,
        attempt=scene.attempt,
        command_id=answer.command_id,
        question=question,
        decision=answer.decision,
        provider_task_id=answer.provider_task_id,
    )


def receipt_changed(
    project: Project, scene: Scene, tally: Tally, revision: int, moment: Moment
) -> ReceiptChanged:
    """Tell what *scene*, which is over, has really cost."""
    return ReceiptChanged(
        project_id=project.project_id,
        version=moment.version,
        occurred_at=moment.at,
        scene_id=scene.scene_id,
        attempt=scene.attempt,
        revision=revision,
        tally=tally,
    )


def resumed(project: Project, resumption: Resumption) -> ProjectResumed:
    """Tell that the work was taken up again, with the request of *project* where that was changed."""
    return ProjectResumed(
        project_id=project.project_id,
        version=resumption.moment.version,
        occurred_at=resumption.moment.at,
        reason=resumption.reason,
        command_id=resumption.command_id,
        kept=resumption.kept,
        request=project.request if resumption.changed else None,
        scene_id=project.retried if resumption.reason == "retry" else None,
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
        receipt=project.cancelled_at or project.receipt,
    )


def next_moment(project: Project, now: datetime) -> Moment:
    """Return the moment of the event that comes next."""
    return Moment(version=project.version + 1, at=now)


def taken_up(
    project: Project, reason: str, command_id: str, now: datetime, *, kept: Tally, changed: bool = False
) -> Resumption:
    """Describe that the work is taken up again now, and what is *kept* of it."""
    return Resumption.model_validate(
        {
            "reason": reason,
            "command_id": command_id,
            "moment": next_moment(project, now),
            "kept": kept,
            "changed": changed,
        }
    )
