"""The commands that decide about a project: retry, approve, cancel."""

import asyncio
import math
import uuid
from typing import TYPE_CHECKING, Annotated

import typer

from sceneloom.cli import console, options
from sceneloom.cli.outcomes import Outcome, Stop

if TYPE_CHECKING:
    from models.commands import ProjectCommand


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module to *app*."""
    for command in (retry, approve, cancel):
        app.command()(command)


def retry(
    project: options.Project,
    *,
    scene: Annotated[
        int | None, typer.Option("--scene", metavar="N", min=1, help="Retry only this scene, counted from 1.")
    ] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", metavar="TEXT", help="What that scene shows instead.")
    ] = None,
    narration: Annotated[
        str | None, typer.Option("--narration", metavar="TEXT", help="What is said in that scene instead.")
    ] = None,
    provider: Annotated[
        list[str] | None,
        typer.Option(
            "--provider",
            metavar="KIND=NAME",
            help="Who makes which asset from here on; with --scene only of that one. Repeatable.",
        ),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", metavar="USD", min=0, help="The new limit for the whole project."),
    ] = None,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """Take a failed project up again.

    What is finished is kept; all that is missing is made, and bought: also what was given up because nobody
    knew whether it had been accepted. With --scene it is only that scene, in other words if you like.

    \b
    Examples:
      sceneloom retry the-last-keeper-1f0a22c3
      sceneloom retry the-last-keeper-1f0a22c3 --scene 3 --prompt "a calm sea"
      sceneloom retry the-last-keeper-1f0a22c3 --provider clip=fal --max-cost 5
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from models.commands import Changes, RetryProject
    from models.identifiers import scene_id

    if scene is None and (prompt is not None or narration is not None):
        raise Stop("--prompt and --narration go with --scene", Outcome.INVALID)
    if max_cost is not None and not math.isfinite(max_cost):
        raise Stop(f"--max-cost is {max_cost}; it must be a finite number", Outcome.INVALID)
    chosen = _chosen(provider or [])
    given = (prompt, narration, max_cost, *chosen)
    changes = Changes(
        scene_id=None if scene is None else scene_id(scene),
        prompt=prompt,
        narration=narration,
        providers=chosen,
        max_cost_usd=max_cost,
    )
    command = RetryProject(
        project_id=project,
        command_id=str(uuid.uuid4()),
        changes=changes if scene is not None or any(each is not None for each in given) else None,
    )
    _carry_out(command, broker, topic_prefix, as_json=as_json)


def approve(
    job: Annotated[
        str, typer.Argument(metavar="JOB", help="The job that waits, as PROJECT/scene-003/image.")
    ],
    *,
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="ID", help="It was accepted: go on with this task of the provider."),
    ] = None,
    give_up: Annotated[
        bool, typer.Option("--give-up", help="Do not send it again: the scene fails, and may be retried.")
    ] = False,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """Decide about a paid call of which nobody knows whether the provider accepted it.

    `sceneloom status PROJECT` shows which job waits, and what it may cost. Look into the provider's console
    first. Without an option the call is made again, and the first one counts as an orphan that may be billed.

    \b
    Examples:
      sceneloom approve the-last-keeper-1f0a22c3/scene-003/clip
      sceneloom approve the-last-keeper-1f0a22c3/scene-003/clip --task cgt-20261130-x7k
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from models.commands import ApproveResend
    from models.work import Decision

    if task is not None and give_up:
        raise Stop("--task and --give-up exclude each other", Outcome.INVALID)
    if task is not None and not task.strip():
        raise Stop("--task: the id is empty", Outcome.INVALID)
    project, *rest = job.split("/")
    if len(rest) != 2 or not all((project, *rest)):
        raise Stop(f"{job!r} is no job: write PROJECT/scene-003/image, as `status` shows it", Outcome.INVALID)
    decision = Decision.GIVE_UP if give_up else Decision.RESEND if task is None else Decision.ADOPT
    command = ApproveResend(
        project_id=project,
        command_id=str(uuid.uuid4()),
        job_id=job,
        decision=decision,
        provider_task_id=task,
    )
    _carry_out(command, broker, topic_prefix, as_json=as_json)


def cancel(
    project: options.Project,
    *,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """Stop a project; nothing more is made for it.

    Tasks that a provider has already accepted are taken back where the provider can do that. What it goes on
    with may be billed: it is on the receipt as orphaned, which `status` shows.

    \b
    Example:
      sceneloom cancel the-last-keeper-1f0a22c3
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from models.commands import CancelProject

    command = CancelProject(project_id=project, command_id=str(uuid.uuid4()))
    _carry_out(command, broker, topic_prefix, as_json=as_json)
    console.note("calls that are under way may still change the receipt: see `sceneloom status`")


def _chosen(given: list[str]) -> dict[str, str]:
    """Return the providers of `KIND=NAME` pairs. Raises `Stop` for anything else."""
    from models.request import ProviderKind

    kinds = [kind.value for kind in ProviderKind]
    chosen = {}
    for pair in given:
        kind, _, name = pair.partition("=")
        if kind not in kinds or not name:
            raise Stop(
                f"--provider: {pair!r} is not KIND=NAME, as in clip=fal; the kinds are {', '.join(kinds)}",
                Outcome.INVALID,
            )
        chosen[kind] = name
    return chosen


def _carry_out(
    command: "ProjectCommand", broker: str | None, topic_prefix: str | None, *, as_json: bool
) -> None:
    """Send *command* about a project that exists, and show how that stands after it."""
    from sceneloom.cli.configuration import load_settings
    from sceneloom.cli.following import ask
    from sceneloom.cli.view import describe

    settings = load_settings(broker=broker, topic_prefix=topic_prefix)
    snapshot = asyncio.run(ask(settings, command))
    if as_json:
        console.say_json(snapshot.model_dump(mode="json"))
    else:
        describe(snapshot)
