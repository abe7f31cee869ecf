"""The command that lists the projects, and what lists have in common."""

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from models.lifecycle import ProjectState
from sceneloom.cli import console, options
from sceneloom.cli.ages import OlderThan, age_words
from sceneloom.cli.outcomes import Outcome, Stop, no_such_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from models.snapshot import ProjectSnapshot
    from sceneloom.operations.jobs import Deadline, JobLine
    from sceneloom.settings import Settings

Limit = Annotated[
    int | None, typer.Option("--limit", metavar="N", min=1, help="At most so many; the newest come first.")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module to *app*."""
    app.command()(projects)


def projects(
    project: Annotated[
        str | None, typer.Argument(metavar="[PROJECT]", help="Only this one.", show_default=False)
    ] = None,
    *,
    state: Annotated[
        list[ProjectState] | None,
        typer.Option("--state", case_sensitive=False, help="Only in this state; repeatable."),
    ] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="ID", help="Only of this user.")] = None,
    stuck: Annotated[bool, typer.Option("--stuck", help="Only open ones that nobody gets on with.")] = False,
    older_than: OlderThan = None,
    limit: Limit = None,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """List the projects, the newest first.

    The age counts from when a worker took the request up, `changed` from the last change. With --json it is
    one list of snapshots, as `status --json` shows them. A PROJECT that nobody has heard of is exit code 1.

    A project is stuck when one of its jobs is (see `sceneloom jobs --help`), or when it is not done, has no
    open job, and neither it nor a job of it has changed for two minutes.

    \b
    Examples:
      sceneloom projects
      sceneloom projects --state GeneratingScenes --state Rendering --older-than 1h
      sceneloom projects --stuck
      sceneloom projects --user u1 --limit 20 --json
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import load_settings
    from sceneloom.clock import SystemClock
    from sceneloom.operations.projects import ProjectFilter, chosen, read_projects

    settings = load_settings(broker=broker, topic_prefix=topic_prefix)
    wanted = ProjectFilter(project_id=project, states=state or (), user_id=user, older_than=older_than)
    is_stuck = _stuck_by(settings) if stuck else None
    latest = asyncio.run(read_projects(settings))
    if project is not None and project not in {each.project_id for each in latest.values}:
        raise no_such_project(project)
    now = SystemClock().now()
    found = chosen(latest.values, wanted, now)
    if is_stuck:
        found = [each for each in found if is_stuck(each)]
    warn_of_unreadable(latest.unreadable, "project")
    shown = found[:limit]
    if as_json:
        console.say_json([project.model_dump(mode="json") for project in shown])
    elif not shown:
        console.note(none_like_that("project", "projects", len(latest.values)))
    else:
        _show_projects(shown, now)
        note_rest(len(found), len(shown))


def deadlines_of(settings: "Settings") -> "Deadline":
    """Return the deadlines of calls. Raises `Stop` for a provider that is half set."""
    from sceneloom.operations.jobs import deadlines

    try:
        return deadlines(settings)
    except ValueError as error:
        raise Stop(str(error), Outcome.INVALID) from error


def _stuck_by(settings: "Settings") -> "Callable[[ProjectSnapshot], bool]":
    from sceneloom.clock import SystemClock
    from sceneloom.operations.jobs import line, read_jobs
    from sceneloom.operations.projects import stuck_by

    deadline = deadlines_of(settings)
    now = SystemClock().now()
    jobs = asyncio.run(read_jobs(settings))
    warn_of_unreadable(jobs.unreadable, "job")
    warn_of_guesses(settings, [line(job, now, deadline) for job in jobs.values])
    return stuck_by(jobs, now, deadline)


def warn_of_guesses(settings: "Settings", lines: "Iterable[JobLine]") -> None:
    """Tell of jobs that seem stuck by a deadline which is not known here."""
    from sceneloom.operations.jobs import not_set_here

    if providers := not_set_here(settings, [each.job for each in lines if each.stuck]):
        console.warn(
            f"not set here: {', '.join(providers)}; the workers may give such a job more time than it seems: "
            "set the providers as they have them"
        )


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


def note_rest(all_of_them: int, shown: int) -> None:
    """Tell how many were left out by --limit."""
    if all_of_them > shown:
        console.note(f"{all_of_them - shown} older ones are not shown (--limit)")


def none_like_that(one: str, many: str, there: int) -> str:
    """Return what to say where nothing is shown, of *there*."""
    if there:
        return f"none of the {there} {many if there > 1 else one} is like that"
    return f"there is no {one} yet"


def warn_of_unreadable(count: int, what: str) -> None:
    """Tell of rows that are not in the list because nobody here can read them."""
    if count:
        console.warn(
            f"the last row of {count} {what}(s) cannot be read here; is this release older than theirs?"
        )
