"""The commands that list what there is: projects and jobs."""

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from models.lifecycle import JobStatus, ProjectState
from sceneloom.cli import console, options
from sceneloom.cli.ages import OlderThan, age_words
from sceneloom.cli.outcomes import Outcome, Stop

if TYPE_CHECKING:
    from models.snapshot import ProjectSnapshot
    from sceneloom.operations.jobs import JobLine
    from sceneloom.settings import Settings

_Limit = Annotated[
    int | None, typer.Option("--limit", metavar="N", min=1, help="At most so many; the newest come first.")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module to *app*."""
    for command in (projects, jobs):
        app.command()(command)


def projects(
    *,
    state: Annotated[
        list[ProjectState] | None,
        typer.Option("--state", case_sensitive=False, help="Only in this state; repeatable."),
    ] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="ID", help="Only of this user.")] = None,
    older_than: OlderThan = None,
    limit: _Limit = None,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """List the projects, the newest first.

    The age counts from when a worker took the request up, `changed` from the last change. With --json it is
    one list of snapshots, as `status --json` shows them.

    \b
    Examples:
      sceneloom projects
      sceneloom projects --state GeneratingScenes --state Rendering --older-than 1h
      sceneloom projects --user u1 --limit 20 --json
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import load_settings
    from sceneloom.clock import SystemClock
    from sceneloom.operations.projects import ProjectFilter, chosen, read_projects

    settings = load_settings(broker=broker, topic_prefix=topic_prefix)
    wanted = ProjectFilter(states=state or (), user_id=user, older_than=older_than)
    latest = asyncio.run(read_projects(settings))
    now = SystemClock().now()
    found = chosen(latest.values, wanted, now)
    _warn_of_unreadable(latest.unreadable, "project")
    shown = found[:limit]
    if as_json:
        console.say_json([project.model_dump(mode="json") for project in shown])
    elif not shown:
        console.note(_none("project", "projects", len(latest.values)))
    else:
        _show_projects(shown, now)
        _note_rest(len(found), len(shown))


def jobs(
    project: Annotated[
        str | None, typer.Argument(metavar="[PROJECT]", help="Only of this project.", show_default=False)
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
    limit: _Limit = None,
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
    wanted = JobFilter(
        project_id=project,
        statuses=status or (),
        provider=provider,
        older_than=older_than,
        stuck=stuck,
        orphaned=orphaned,
    )
    deadline = _deadlines(settings)
    latest = asyncio.run(read_jobs(settings))
    now = SystemClock().now()
    found = chosen(latest.values, wanted, now, deadline)
    _warn_of_unreadable(latest.unreadable, "job")
    shown = found[:limit]
    if as_json:
        console.say_json([_described(each) for each in shown])
    elif not shown:
        console.note(_none("job", "jobs", len(latest.values)))
    else:
        _show_jobs(shown)
        _note_rest(len(found), len(shown))
        _note_total(found)


def _deadlines(settings: "Settings") -> Any:
    from sceneloom.operations.jobs import deadlines

    try:
        return deadlines(settings)
    except ValueError as error:
        raise Stop(str(error), Outcome.INVALID) from error


def _show_projects(shown: "list[ProjectSnapshot]", now: datetime) -> None:
    from models.lifecycle import SceneStatus
    from sceneloom.cli.view import open_questions, state_words

    table = console.table("project", "state", "scenes", "age", "changed", "user", "spent", "title")
    for each in shown:
        done = sum(scene.status is SceneStatus.COMPLETED for scene in each.scenes)
        delayed = sum(scene.delayed for scene in each.scenes)
        questions = len(open_questions(each))
        state = state_words(each.state)
        state += f", {delayed} delayed" if delayed else ""
        state += f", {questions} to approve" if questions else ""
        table.add_row(
            each.project_id,
            state,
            f"{done}/{len(each.scenes)}",
            age_words(now - each.created_at),
            age_words(now - each.updated_at),
            each.user_id,
            f"${each.receipt.spent_usd:.2f}",
            each.title,
        )
    console.show(table)


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


def _note_rest(all_of_them: int, shown: int) -> None:
    if all_of_them > shown:
        console.note(f"{all_of_them - shown} older ones are not shown (--limit)")


def _none(one: str, many: str, there: int) -> str:
    if there:
        return f"none of the {there} {many if there > 1 else one} is like that"
    return f"there is no {one} yet"


def _warn_of_unreadable(count: int, what: str) -> None:
    if count:
        console.warn(
            f"the last row of {count} {what}(s) cannot be read here; is this release older than theirs?"
        )
