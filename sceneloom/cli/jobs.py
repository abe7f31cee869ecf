"""The command that lists the jobs."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from models.lifecycle import JobStatus
from sceneloom.cli import console, options
from sceneloom.cli.ages import OlderThan, age_words
from sceneloom.cli.listing import (
    Limit,
    deadlines_of,
    none_like_that,
    note_rest,
    warn_of_guesses,
    warn_of_unreadable,
)
from sceneloom.cli.outcomes import Stop, no_such_project

if TYPE_CHECKING:
    from collections.abc import Collection

    from models.job import Job
    from sceneloom.operations.jobs import JobLine
    from sceneloom.settings import Settings


def add_to(app: typer.Typer) -> None:
    """Add the command of this module to *app*."""
    app.command()(jobs)


def jobs(
    place: Annotated[
        str | None,
        typer.Argument(
            metavar="[PROJECT | JOB]",
            help="Only of this project, or this job, as PROJECT/scene-003/clip.",
            show_default=False,
        ),
    ] = None,
    *,
    status: Annotated[
        list[JobStatus] | None,
        typer.Option("--status", case_sensitive=False, help="Only with this status; repeatable."),
    ] = None,
    provider: Annotated[
        str | None, typer.Option("--provider", metavar="NAME", help="Only at this provider.")
    ] = None,
    stuck: Annotated[
        bool, typer.Option("--stuck", help="Only open ones past the deadline of their call.")
    ] = False,
    orphaned: Annotated[
        bool, typer.Option("--orphaned", help="Only with a call that was given up and may be billed.")
    ] = False,
    older_than: OlderThan = None,
    limit: Limit = None,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """List the jobs, the newest first: one for each asset, with its latest attempt.

    A job is stuck when its call was to be given up two minutes ago and is still open: no worker has it.
    Deadlines follow from the settings here, which should be those of the workers. A job that waits for its
    call has no deadline; look for such with `--status queued --older-than 1h`.

    An orphan is a call that was given up while its provider may still finish and bill it, in whichever
    attempt. Below the table stands what they cost together; money is estimated by the prices in the settings.

    A PROJECT that nobody has heard of, and a JOB that there is not, are exit code 1.

    \b
    Examples:
      sceneloom jobs the-last-keeper-1f0a22c3
      sceneloom jobs --stuck
      sceneloom jobs --orphaned --json
      sceneloom jobs --status running --status delayed --provider ark --older-than 15m
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import load_settings
    from sceneloom.clock import SystemClock
    from sceneloom.operations.jobs import JobFilter, chosen, read_jobs

    settings = load_settings(broker=broker, topic_prefix=topic_prefix)
    project = None if place is None else place.partition("/")[0]
    wanted = JobFilter(
        project_id=project,
        job_id=None if place == project else place,
        statuses=status or (),
        provider=provider,
        older_than=older_than,
        stuck=stuck,
        orphaned=orphaned,
    )
    deadline = deadlines_of(settings)
    latest = asyncio.run(read_jobs(settings))
    if place is not None:
        _require_known(settings, place, latest.values)
    now = SystemClock().now()
    found = chosen(latest.values, wanted, now, deadline)
    warn_of_unreadable(latest.unreadable, "job")
    warn_of_guesses(settings, found)
    shown = found[:limit]
    if as_json:
        console.say_json([_described(each) for each in shown])
    elif not shown:
        console.note(none_like_that("job", "jobs", len(latest.values)))
    else:
        _show_jobs(shown)
        note_rest(len(found), len(shown))
        _note_total(found)


def _require_known(settings: "Settings", place: str, jobs: "Collection[Job]") -> None:
    """Raise `Stop` where there is no project, or no job, called *place*."""
    from sceneloom.client import read_state

    project = place.partition("/")[0]
    there = sorted(job.job_id for job in jobs if job.project_id == project)
    if place in there or (place == project and there):
        return
    # A project is known before it has jobs, and long after they are gone.
    if asyncio.run(read_state(settings, project)) is None and not there:
        raise no_such_project(project)
    if place != project:
        raise Stop(f"there is no job {place}: project {project} has {', '.join(there) or 'none yet'}")


def _show_jobs(shown: "list[JobLine]") -> None:
    table = console.table(
        "job",
        "status",
        "provider",
        "model",
        "task",
        "age",
        "attempt",
        "calls",
        "price",
        "spent",
        "orphaned",
        "",
    )
    for each in shown:
        job, tally = each.job, each.job.tally
        status = f"{job.status}/{job.submit}" if job.submit and not job.finished else str(job.status)
        remarks = [str(job.error_code)] if job.error_code else []
        remarks += ["STUCK"] if each.stuck else []
        table.add_row(
            job.job_id,
            status,
            job.offer.provider,
            job.offer.model,
            job.provider_task_id or "",
            age_words(each.age),
            str(job.attempt),
            str(each.calls),
            f"${job.offer.cost_usd:.2f}",
            f"${tally.spent_usd:.2f}",
            f"${tally.orphaned_usd:.2f}" if each.orphaned else "",
            ", ".join(remarks),
        )
    console.show(table)


def _described(each: "JobLine") -> dict[str, Any]:
    job = each.job
    return {
        "job_id": job.job_id,
        "project_id": job.project_id,
        "scene_id": job.scene_id,
        "kind": job.kind.value,
        "status": job.status.value,
        "submit": job.submit.value if job.submit else None,
        "provider": job.offer.provider,
        "model": job.offer.model,
        "provider_task_id": job.provider_task_id,
        "attempt": job.attempt,
        "calls": each.calls,
        "progress": job.progress,
        "error_code": job.error_code.value if job.error_code else None,
        "output_url": job.output.url if job.output else None,
        "created_at": job.created_at.isoformat(),
        "intended_at": job.intended_at.isoformat() if job.intended_at else None,
        "submitted_at": job.submitted_at.isoformat() if job.submitted_at else None,
        "due_at": job.due_at.isoformat() if job.due_at else None,
        "deadline_at": each.deadline_at.isoformat() if each.deadline_at else None,
        "age_seconds": round(each.age.total_seconds(), 3),
        "cost_usd": job.offer.cost_usd,
        "stuck": each.stuck,
        "orphaned": each.orphaned,
        "tally": job.tally.model_dump(mode="json"),
        "version": job.version,
    }


def _note_total(found: "list[JobLine]") -> None:
    from sceneloom.operations.jobs import total

    cost = total(found)
    line = f"{len(found)} {'job' if len(found) == 1 else 'jobs'}, ${cost.spent_usd:.2f} spent"
    if cost.orphaned:
        line += f", of that ${cost.orphaned_usd:.2f} for {cost.orphaned} orphaned, which may be billed"
    console.note(line)
