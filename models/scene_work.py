"""From a request for a scene to its jobs, and from the jobs back to a result."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final

from models import results
from models.commands import RequestScene, Want
from models.errors import ErrorCode
from models.job import Job
from models.lifecycle import JobStatus, SubmitState
from models.results import SceneResult
from models.work import Assets, Offer, Tally

_UNAVAILABLE: Final = frozenset(
    {
        ErrorCode.PROVIDER_UNAVAILABLE,
        ErrorCode.PROVIDER_RATE_LIMITED,
        ErrorCode.PROVIDER_QUOTA_EXHAUSTED,
        ErrorCode.PROVIDER_AUTH,
        ErrorCode.PROVIDER_MODEL_RETIRED,
    }
)
"""Failures that speak of the provider, not of what it was asked for."""


def jobs_for(command: RequestScene, offer_for: Callable[[Want], Offer], *, now: datetime) -> tuple[Job, ...]:
    """Return the jobs that *command* asks for, as they would begin now."""
    return tuple(
        Job(
            project_id=command.project_id,
            scene_id=command.scene_id,
            user_id=command.user_id,
            scene_attempt=command.attempt,
            offer=offer_for(want),
            request=want.request,
            use_cache=want.use_cache,
            budget_usd=command.budget_usd,
            created_at=now,
        )
        for want in command.wants
    )


def taken_up(known: Job | None, wanted: Job) -> Job:
    """Return the job to go on with.

    A known one is kept while it runs or has succeeded, so that nothing is bought twice. One that failed
    begins another attempt only for a newer attempt at its scene.
    """
    if known is None:
        return wanted
    if known.scene_attempt >= wanted.scene_attempt:
        return known
    # What is finished stays, also where another provider would make it today.
    is_kept = known.status is JobStatus.SUCCEEDED and known.request == wanted.request
    if is_kept or (not known.finished and known.fingerprint == wanted.fingerprint):
        return known.model_copy(
            update={
                "scene_attempt": wanted.scene_attempt,
                "budget_usd": wanted.budget_usd,
                "version": known.version + 1,
            }
        )
    return known.again(wanted)


def exceeds_budget(job: Job, all_jobs: Iterable[Job]) -> bool:
    """Tell whether the call that *job* announces would cost more than is left for its project.

    *all_jobs* are those of the project, with *job* as it was before the announcement.
    """
    if job.budget_usd is None or job.offer.cost_usd == 0.0:
        return False
    committed = sum(each.committed_usd for each in all_jobs)
    return round(committed + job.offer.cost_usd, 6) > job.budget_usd


def is_worth_a_fallback(job: Job) -> bool:
    """Tell whether another provider may be asked: this one surely took nothing, and cannot be had."""
    took_nothing = job.status is JobStatus.FAILED and job.submit is not SubmitState.ACCEPTED
    return took_nothing and job.error_code in _UNAVAILABLE


def result_of(jobs: Sequence[Job]) -> SceneResult | None:
    """Tell how the scene of *jobs* stands; None where it has no job."""
    attempt = max((job.scene_attempt for job in jobs), default=0)
    current = [job for job in jobs if job.scene_attempt == attempt]
    if not current:
        return None
    if any(job.status is JobStatus.CANCELLED for job in current):
        return results.SceneStopped.model_validate(_standing(jobs, current))
    if all(job.status is JobStatus.SUCCEEDED for job in current):
        return results.SceneCompleted.model_validate(_standing(jobs, current))
    if all(job.finished for job in current):
        codes = [job.error_code for job in current if job.status is JobStatus.FAILED]
        code = next((code for code in codes if code is not None), ErrorCode.PROVIDER_UNAVAILABLE)
        return results.SceneFailed.model_validate({**_standing(jobs, current), "error_code": code})
    return results.SceneProgressed.model_validate(_standing(jobs, current))


def delay_of(jobs: Sequence[Job]) -> SceneResult | None:
    """Tell that the scene of *jobs* waits for one that is delayed, or whose submit is unclear, or None."""
    current = [
        job
        for job in jobs
        if job.status is JobStatus.DELAYED or (job.submit is SubmitState.UNKNOWN and not job.finished)
    ]
    return results.SceneDelayed.model_validate(_standing(jobs, current)) if current else None


def doubt_of(job: Job, jobs: Sequence[Job]) -> SceneResult | None:
    """Tell what a person must decide for *job*, one of the *jobs* of its scene, to go on, if anything."""
    if job.question is None:
        return None
    current = [each for each in jobs if each.scene_attempt == job.scene_attempt]
    return results.SceneUnclear.model_validate({**_standing(jobs, current), "question": job.question})


def _standing(jobs: Sequence[Job], current: Sequence[Job]) -> dict[str, object]:
    assets = Assets()
    for job in current:
        if job.output is not None:
            assets = assets.including(job.kind, job.output)
    return {
        "project_id": current[0].project_id,
        "scene_id": current[0].scene_id,
        "attempt": current[0].scene_attempt,
        "assets": assets,
        "tally": sum((job.tally for job in jobs), Tally()),
        "finished_jobs": sum(job.finished for job in current),
        "revision": sum(job.version for job in jobs),
        "asking": tuple(job.job_id for job in jobs if job.question is not None),
        "progress": sum(1.0 if job.finished else job.progress or 0.0 for job in current) / len(current),
    }
