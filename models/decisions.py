"""What a message means to a project: the events it leads to, or led to when it came before.

Nothing here changes anything. `recall` answers first: what it finds was decided before and is told again, so
that outputs lost in a crash are sent after all. Only what it does not know is decided anew.
"""

from datetime import datetime
from typing import assert_never

from models import crediting, facts, results
from models.commands import ApproveResend, CancelProject, Changes, RetryProject, TakeOverProject
from models.credit_messages import CreditAnswer, CreditsRefused, CreditsReserved, CreditsSettled
from models.errors import NothingToAdopt, NothingToConfirm, SceneNotMissing, UnknownScene, VersionConflict
from models.events import Event, ProjectAccepted, SceneProgressed
from models.identifiers import FILM
from models.lifecycle import PROJECT_TRANSITIONS, ProjectState, SceneStatus, moved
from models.project import Project
from models.request import ProjectRequest
from models.results import SceneResult
from models.scene import Answer, Scene
from models.values import Moment
from models.work import Decision

Message = CancelProject | RetryProject | ApproveResend | TakeOverProject | SceneResult | CreditAnswer
"""What may come for a project that exists."""


def submit(project_id: str, request: ProjectRequest, *, now: datetime) -> tuple[ProjectAccepted, Event]:
    """Decide to make the film that *request*, already checked, asks for."""
    accepted = ProjectAccepted(project_id=project_id, version=1, occurred_at=now, request=request)
    project = Project.begin(accepted)
    return accepted, facts.work_requested(project, facts.next_moment(project, now))


def resubmit(project: Project) -> tuple[Event, ...]:
    """Recall what the submission of *project* led to, as far as it still matters."""
    return facts.accepted(project), *_unanswered(project)


def changed(request: ProjectRequest, changes: Changes, project: Project) -> dict[str, object]:
    """Return *request* as raw values with *changes*, to be checked like a new one.

    Raises `UnknownScene`, and `SceneNotMissing` for a scene that is finished.
    """
    raw = request.model_dump(mode="json", exclude_none=True)
    where = raw
    if changes.scene_id is not None:
        names = [scene.scene_id for scene in project.scenes]
        if changes.scene_id not in names:
            raise UnknownScene(project.project_id, changes.scene_id)
        if project.part(changes.scene_id).status is SceneStatus.COMPLETED:
            raise SceneNotMissing(changes.scene_id)
        where = raw["scenes"][names.index(changes.scene_id)]
    told = {"prompt": changes.prompt, "narration": changes.narration}
    where |= {key: value for key, value in told.items() if value is not None}
    where["providers"] = {**where.get("providers", {}), **changes.providers}
    if changes.max_cost_usd is not None:
        raw["max_cost_usd"] = changes.max_cost_usd
    return raw


def decide(
    project: Project, message: Message, *, now: datetime, request: ProjectRequest | None = None
) -> tuple[Event, ...]:
    """Return the events that *message* leads to now; none where it is late, stale or known.

    *request* is the checked one that a retry changes the project's to. Raises `VersionConflict`,
    `IllegalTransition` and `NothingToConfirm` for a command that does not fit the project as it is.
    """
    match message:
        case CancelProject():
            _expect(project, message.expected_version)
            _may_become(project, ProjectState.CANCELLED)
            return (facts.cancelled(project, facts.next_moment(project, now)),)
        case RetryProject() | TakeOverProject() if message.command_id in project.carried_out:
            return ()
        case RetryProject():
            _expect(project, message.expected_version)
            _may_become(project, ProjectState.GENERATING_SCENES)
            resumption = facts.taken_up(
                project, "retry", message.command_id, now, kept=project.tally, changed=request is not None
            )
            retried = message.changes.scene_id if message.changes else None
            told = project.model_copy(update={"request": request or project.request, "retried": retried})
            event = facts.resumed(told, resumption)
            after = project.evolve(event)
            return event, facts.work_requested(after, facts.next_moment(after, now))
        case ApproveResend():
            _expect(project, message.expected_version)
            return (_answered(project, message, now),)
        case TakeOverProject():
            last = project.resumed.moment.version if project.resumed else 0
            if not project.is_open or (message.expected_version or 0) < last:
                return ()  # the interruption that it tells of is already noted
            resumption = facts.taken_up(project, "takeover", message.command_id, now, kept=message.kept)
            return (facts.resumed(project, resumption),)
        case CreditsReserved() | CreditsRefused() | CreditsSettled():
            return crediting.decide(project, message, now=now)
        case _:
            return _received(project, message, now)


def recall(project: Project, message: Message) -> tuple[Event, ...]:
    """Return the events that *message* led to when it came before; none where it is new."""
    match message:
        case CancelProject():
            if project.state is ProjectState.CANCELLED and project.finished:
                return (facts.cancelled(project, project.finished),)
            return ()
        case ApproveResend():
            return tuple(
                facts.confirmation_answered(project, part, each.question, each.answer)
                for part in project.parts
                for each in part.asked
                if each.answer is not None and each.answer.command_id == message.command_id
            )
        case RetryProject() | TakeOverProject():
            if project.resumed is None or project.resumed.command_id != message.command_id:
                return ()
            return facts.resumed(project, project.resumed), *_unanswered(project)
        case CreditsReserved():
            return _unanswered(project) if crediting.was_heard(project, message) else ()
        case CreditsRefused():
            return crediting.recall_refusal(project) if crediting.was_heard(project, message) else ()
        case CreditsSettled():
            return ()
        case results.SceneDelayed():
            part = project.part(message.scene_id)
            known = part.attempt == message.attempt and part.delayed
            return (facts.delayed(project, part, known),) if known else ()
        case results.SceneUnclear(question=question):
            part = project.part(message.scene_id)
            return tuple(
                facts.confirmation_needed(project, part, each.question, each.revision, each.moment)
                for each in part.asked
                if each.question.key == question.key
            )
        case results.SceneStopped() | results.SceneProgressed():
            return _recall_settled(project, message)
        case results.SceneCompleted() | results.SceneFailed():
            ended = _recall_end(project, project.part(message.scene_id), message.attempt)
            return ended or _recall_settled(project, message)
        case _:
            assert_never(message)


def _received(project: Project, result: SceneResult, now: datetime) -> tuple[Event, ...]:
    part = project.part(result.scene_id)
    moment = facts.next_moment(project, now)
    if project.state is ProjectState.CANCELLED:
        return _settled(project, part, result, moment)
    if not project.is_open or result.attempt != part.attempt or part.status is not SceneStatus.IN_PROGRESS:
        return ()
    match result:
        case results.SceneProgressed():
            return _progressed(project, part, result, moment)
        case results.SceneDelayed():
            return () if part.delayed else (facts.delayed(project, part, moment),)
        case results.SceneUnclear(question=question):
            return (facts.confirmation_needed(project, part, question, result.revision, moment),)
        case results.SceneStopped():
            return ()
        case results.SceneCompleted() | results.SceneFailed():
            return _ended(project, _with_result(part, result), result, moment)
        case _:
            assert_never(result)


def _settled(project: Project, part: Scene, result: SceneResult, moment: Moment) -> tuple[Event, ...]:
    """Decide what is told of the cost of a cancelled scene: each change once, and none that is older."""
    if isinstance(result, results.SceneUnclear) or part.status is not SceneStatus.IN_PROGRESS:
        return ()
    is_news = result.attempt == part.attempt and result.revision > part.revision
    if not is_news or result.tally == part.tally:
        return ()
    return (facts.receipt_changed(project, part, result.tally, result.revision, moment),)


def _recall_settled(project: Project, result: SceneResult) -> tuple[Event, ...]:
    part = project.part(result.scene_id)
    if part.settled is None or (part.attempt, part.revision) != (result.attempt, result.revision):
        return ()
    return (facts.receipt_changed(project, part, part.tally, part.revision, part.settled),)


def _answered(project: Project, command: ApproveResend, now: datetime) -> Event:
    if project.is_open:
        for part in project.parts:
            for question in part.open_questions:
                if question.job_id == command.job_id:
                    if command.decision is Decision.ADOPT and not question.can_adopt:
                        raise NothingToAdopt(command.job_id)
                    answer = Answer(
                        command_id=command.command_id,
                        decision=command.decision,
                        provider_task_id=command.provider_task_id,
                        moment=facts.next_moment(project, now),
                    )
                    return facts.confirmation_answered(project, part, question, answer)
    raise NothingToConfirm(command.job_id)


def _ended(
    project: Project, part: Scene, result: results.SceneCompleted | results.SceneFailed, moment: Moment
) -> tuple[Event, ...]:
    match result:
        case results.SceneCompleted() if part.scene_id == FILM:
            counted = project.model_copy(update={"film": part})
            return (facts.completed(counted, moment),)
        case results.SceneFailed() if part.scene_id == FILM:
            counted = project.model_copy(update={"film": part})
            return (facts.failed(counted, part, result.error_code, moment),)
        case results.SceneCompleted():
            event: Event = facts.scene_completed(project, part, moment)
        case results.SceneFailed():
            event = facts.scene_failed(project, part, result.error_code, moment)
        case _:
            assert_never(result)
    return event, *_next_stage(project.evolve(event), moment.at)


def _next_stage(project: Project, now: datetime) -> tuple[Event, ...]:
    """Decide what follows once no scene is in flight: the film, or an end that names the first fault."""
    if any(scene.status is SceneStatus.IN_PROGRESS for scene in project.scenes):
        return ()
    moment = facts.next_moment(project, now)
    for scene in project.scenes:
        if scene.error_code is not None:
            return (facts.failed(project, scene, scene.error_code, moment),)
    return (facts.work_requested(project, moment),)


def _recall_end(project: Project, part: Scene, attempt: int) -> tuple[Event, ...]:
    if part.attempt != attempt or part.changed is None:
        return ()
    told: list[Event] = []
    if part.status is SceneStatus.COMPLETED and part.scene_id != FILM:
        told.append(facts.scene_completed(project, part, part.changed))
    if part.status is SceneStatus.FAILED and part.scene_id != FILM and part.error_code:
        told.append(facts.scene_failed(project, part, part.error_code, part.changed))
    if part.status in {SceneStatus.COMPLETED, SceneStatus.FAILED}:
        told.extend(_recall_terminal(project))
        if project.state is ProjectState.RENDERING:
            told.extend(_unanswered(project))
    return tuple(told)


def _recall_terminal(project: Project) -> tuple[Event, ...]:
    if project.finished is None:
        return ()
    if project.state is ProjectState.COMPLETED:
        return (facts.completed(project, project.finished),)
    refusal = crediting.recall_refusal(project)
    if refusal:
        return refusal
    faulty = next((part for part in project.parts if part.error_code is not None), None)
    if project.state is ProjectState.FAILED and faulty is not None and faulty.error_code is not None:
        return (facts.failed(project, faulty, faulty.error_code, project.finished),)
    return ()


def _unanswered(project: Project) -> tuple[Event, ...]:
    """Recall the request for work that is still in flight: whoever has it already asks for it once only."""
    if crediting.is_waiting(project) and project.reservation:
        return (facts.credits_requested(project, project.reservation),)
    waiting = [part for part in project.parts if part.status is SceneStatus.IN_PROGRESS and part.changed]
    if not project.is_open or not waiting:
        return ()
    return (
        facts.work_requested(project, waiting[0].changed or facts.next_moment(project, project.updated_at)),
    )


def _progressed(
    project: Project, part: Scene, result: results.SceneProgressed, moment: Moment
) -> tuple[Event, ...]:
    if result.revision <= part.revision or not _is_news(part, result):
        return ()
    return (
        SceneProgressed(
            project_id=project.project_id,
            version=moment.version,
            occurred_at=moment.at,
            scene_id=part.scene_id,
            attempt=part.attempt,
            progress=result.progress,
            finished_jobs=result.finished_jobs,
            revision=result.revision,
            asking=result.asking,
            assets=result.assets,
            tally=result.tally,
        ),
    )


def _is_news(part: Scene, result: results.SceneProgressed) -> bool:
    """Tell whether *result*, which is newer, shows anything that *part* does not."""
    known = (part.finished_jobs, part.progress, part.tally, part.assets)
    if (result.finished_jobs, result.progress, result.tally, result.assets) != known:
        return True
    return any(question.job_id not in result.asking for question in part.open_questions)


def _with_result(part: Scene, result: SceneResult) -> Scene:
    return part.model_copy(update={"assets": result.assets, "tally": result.tally})


def _expect(project: Project, version: int | None) -> None:
    if version is not None and version != project.version:
        raise VersionConflict(project.project_id, version, project.version)


def _may_become(project: Project, target: ProjectState) -> None:
    moved(PROJECT_TRANSITIONS, project.state, target, subject=f"project {project.project_id}")
