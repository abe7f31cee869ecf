"""The saga of a project and its credits: reserved before work begins, settled at each of its ends.

    Created ── CreditsRequested ──► ledger ── CreditsReserved ──► the work begins
                                         └─── CreditsRefused ───► Failed: a retry asks again
    Completed, Failed, Cancelled ── SettleCredits, with all that was spent ──► nothing is held any more

An order to the ledger has the version of the project at which it was given, so one that comes late, or twice,
changes nothing there.
"""

from collections.abc import Callable
from datetime import datetime

from models import facts
from models.commands import Want
from models.credit_messages import (
    CreditAnswer,
    CreditsRefused,
    CreditsReserved,
    CreditsSettled,
    ReserveCredits,
    SettleCredits,
)
from models.events import CreditsRequested, Event, ProjectFailed, RenderRequested, ScenesRequested
from models.lifecycle import ProjectState
from models.money import micros
from models.project import Project, Reservation
from models.scene import Scene, wants_of
from models.work import JobKind, Offer


def missing_cost(project: Project, offer_for: Callable[[Want], Offer]) -> float:
    """Return what the assets that *project* does not have yet would cost, each bought once, in US dollars."""
    wanted = {scene.scene_id for scene in project.wanted}
    return sum(
        offer_for(want).cost_usd
        for scene, asked in zip(project.scenes, project.request.scenes, strict=True)
        if scene.scene_id in wanted
        for want in wants_of(asked, project.request)
        if not _has(scene, want.kind)
    )


def credits_first(
    project: Project, events: tuple[Event, ...], offer_for: Callable[[Want], Offer]
) -> tuple[Event, ...]:
    """Return *events*, decided for *project*, with the ledger asked before work that costs something.

    What costs nothing begins at once.
    """
    if not events or not isinstance(events[-1], ScenesRequested | RenderRequested):
        return events
    *before, last = events
    for event in before:
        project = project.evolve(event)
    missing = micros(missing_cost(project, offer_for))
    if not missing:
        return events
    asked = CreditsRequested(
        project_id=project.project_id,
        version=last.version,
        occurred_at=last.occurred_at,
        micros=_spent(project) + missing,
    )
    return *before, asked


def is_waiting(project: Project) -> bool:
    """Tell whether *project* waits for the ledger before its work begins."""
    asked = project.unused_reservation
    return project.is_open and asked is not None and asked.refused is None


def was_heard(project: Project, answer: CreditAnswer) -> bool:
    """Tell whether *answer* is to what *project* asked last, and led to something before."""
    asked = project.reservation
    return asked is not None and answer.version == asked.moment.version and not is_waiting(project)


def decide(project: Project, answer: CreditAnswer, *, now: datetime) -> tuple[Event, ...]:
    """Return the events that *answer* leads to; none where nobody waits for it."""
    asked = project.reservation
    if asked is None or not is_waiting(project) or answer.version != asked.moment.version:
        return ()
    moment = facts.next_moment(project, now)
    match answer:
        case CreditsReserved():
            return (facts.work_requested(project, moment),)
        case CreditsRefused():
            return (facts.credits_refused(project, asked, answer.error_code, moment),)
        case CreditsSettled():
            return ()


def recall_refusal(project: Project) -> tuple[ProjectFailed, ...]:
    """Recall the end of *project* for want of credits; nothing where it did not end so."""
    asked: Reservation | None = project.unused_reservation
    if project.state is not ProjectState.FAILED or asked is None or asked.refused is None:
        return ()
    moment = project.finished or asked.moment
    return (facts.credits_refused(project, asked, asked.refused, moment),)


def orders(project: Project, events: tuple[Event, ...]) -> tuple[ReserveCredits | SettleCredits, ...]:
    """Tell what the ledger must do because of *events*, which *project* has applied.

    At an end it is told all that was spent: again with each change, and whenever that end is told again.
    """
    about = {"user_id": project.request.user_id, "project_id": project.project_id}
    if project.reservation is None:
        return ()
    if not project.is_open:
        settled = {**about, "version": project.version, "micros": _spent(project)}
        return (SettleCredits.model_validate(settled),)
    return tuple(
        ReserveCredits.model_validate({**about, "version": event.version, "micros": event.micros})
        for event in events
        if isinstance(event, CreditsRequested)
    )


def _spent(project: Project) -> int:
    return micros(project.tally.spent_usd)


def _has(scene: Scene, kind: JobKind) -> bool:
    match kind:
        case JobKind.IMAGE:
            return scene.assets.image_url is not None
        case JobKind.SPEECH:
            return scene.assets.audio_url is not None
        case JobKind.CLIP:
            return scene.assets.clip_url is not None
        case JobKind.RENDER:
            return False
