"""What everyone may read of a project: the message on project-states, and the data of its public events."""

from datetime import datetime

from models.errors import ErrorCode
from models.events import Receipt
from models.lifecycle import JobStatus, ProjectState, SceneStatus, SubmitState
from models.messages import message_for
from models.project import Project
from models.scene import Scene
from models.values import Value
from models.work import Question


class SceneSnapshot(Value):
    """How one scene stands; `progress` from 0 to 1, `seconds` of its narration."""

    scene_id: str
    status: SceneStatus
    image_url: str | None
    audio_url: str | None
    clip_url: str | None
    captions_url: str | None
    seconds: float | None
    progress: float
    delayed: bool
    questions: tuple[Question, ...] = ()
    """What a person must decide by ApproveResend before the scene can go on."""
    error_code: ErrorCode | None
    message: str


class ProjectSnapshot(Value):
    """How a project stands, at one version of it."""

    project_id: str
    state: ProjectState
    version: int
    title: str
    user_id: str
    language: str
    message: str
    scenes: tuple[SceneSnapshot, ...]
    render_progress: float
    video_url: str | None
    report_url: str | None
    seconds: float | None
    resumed_reason: str | None
    receipt: Receipt
    created_at: datetime
    updated_at: datetime


def snapshot(project: Project) -> ProjectSnapshot:
    """Describe *project* as it stands."""
    language = project.request.language
    return ProjectSnapshot(
        project_id=project.project_id,
        state=project.state,
        version=project.version,
        title=project.request.title,
        user_id=project.request.user_id,
        language=language,
        message=_project_message(project),
        scenes=tuple(_scene(scene, project) for scene in project.scenes),
        render_progress=project.film.progress,
        video_url=project.film.assets.video_url,
        report_url=project.film.assets.report_url,
        seconds=project.film.assets.seconds,
        resumed_reason=project.resumed.reason if project.resumed else None,
        receipt=project.receipt,
        created_at=project.created_at,
        updated_at=project.updated_at,
    )


def _scene(scene: Scene, project: Project) -> SceneSnapshot:
    return SceneSnapshot(
        scene_id=scene.scene_id,
        status=scene.status,
        image_url=scene.assets.image_url,
        audio_url=scene.assets.audio_url,
        clip_url=scene.assets.clip_url,
        captions_url=scene.assets.captions_url,
        seconds=scene.assets.seconds,
        progress=scene.progress,
        delayed=_waits(scene) and project.is_open,
        questions=scene.open_questions if project.is_open else (),
        error_code=scene.error_code,
        message=_scene_message(scene, project),
    )


def _scene_message(scene: Scene, project: Project) -> str:
    language = project.request.language
    if scene.error_code is not None:
        return message_for(scene.error_code, language)
    if project.state is ProjectState.CANCELLED and scene.status is not SceneStatus.COMPLETED:
        return message_for(project.state, language)
    if project.is_open and scene.open_questions:
        return message_for(SubmitState.NEEDS_CONFIRMATION, language)
    return message_for(JobStatus.DELAYED if _waits(scene) else scene.status, language)


def _project_message(project: Project) -> str:
    language = project.request.language
    if project.is_open and any(part.open_questions for part in project.parts):
        return message_for(SubmitState.NEEDS_CONFIRMATION, language)
    if project.is_open and any(_waits(part) for part in project.parts):
        return message_for(JobStatus.DELAYED, language)
    if project.state is ProjectState.FAILED:
        asked = project.unused_reservation
        if asked is not None and asked.refused is not None:
            return message_for(asked.refused, language)
        codes = [part.error_code for part in project.parts if part.error_code is not None]
        return message_for(codes[0] if codes else project.state, language)
    return message_for(project.state, language)


def _waits(scene: Scene) -> bool:
    return scene.delayed is not None and scene.status is SceneStatus.IN_PROGRESS
