"""The commands that make a project and show it: validate, submit, watch, status."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sceneloom.cli import console, options
from sceneloom.cli.outcomes import Outcome, Stop, no_such_project

if TYPE_CHECKING:
    from models.commands import ProjectCommand
    from sceneloom.settings import Settings


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module to *app*."""
    for command in (validate, submit, watch, status):
        app.command()(command)


def validate(file: options.RequestFile, *, as_json: options.AsJson = False) -> None:
    """Check a request and show all its faults.

    Needs no broker. The exit code is 2 where there are faults.

    \b
    Example:
      sceneloom validate examples/lighthouse.yaml
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from models.faults import RequestRefused
    from sceneloom.cli.configuration import load_settings
    from sceneloom.cli.requests import checked, told

    try:
        request = checked(file, load_settings())
    except RequestRefused as refused:
        if not as_json:
            raise Stop(told(file, refused.faults), Outcome.INVALID) from refused
        faults = [{"path": each.path, "rule": each.rule, "message": each.message} for each in refused.faults]
        console.say_json({"valid": False, "faults": faults})
        raise typer.Exit(Outcome.INVALID) from refused
    if as_json:
        console.say_json({"valid": True, "faults": []})
    else:
        scenes = "1 scene" if len(request.scenes) == 1 else f"{len(request.scenes)} scenes"
        console.say(f"{file} is fine: “{request.title}”, {scenes}, {request.aspect_ratio.value}")


def submit(
    file: options.RequestFile,
    *,
    project_id: Annotated[
        str | None,
        typer.Option(
            "--project-id", metavar="ID", help="Name of the project; by default made from title and content."
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Watch until it is done, and fetch the video.")
    ] = False,
    to: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where the video goes; default out/NAME.mp4.")
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Make all assets anew, also those that were made before.")
    ] = False,
    timeout: options.Timeout = None,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """Check a request, store its pictures and publish it.

    To submit the same file again is safe: it is the same project, and nothing is made twice.
    With --wait --json the last line is one object: project_id, state, video, seconds, receipt.

    \b
    Examples:
      sceneloom submit examples/lighthouse.yaml
      sceneloom submit --wait --out film.mp4 examples/lighthouse.yaml
    """  # noqa: D301 -- \b keeps the lines of an example apart
    if (to or timeout) and not wait:
        raise Stop("--out and --timeout go with --wait", Outcome.INVALID)
    from sceneloom.cli.configuration import load_settings
    from sceneloom.cli.requests import prepared

    settings = load_settings(broker=broker, topic_prefix=topic_prefix)
    video = to or Path("out") / f"{file.stem}.mp4"
    if wait:
        from sceneloom.cli.finishing import make_room

        make_room(video)
    command = asyncio.run(prepared(file, settings, project_id, use_cache=not no_cache))
    if wait:
        _wait(settings, command, video, timeout, as_json=as_json)
        return
    from sceneloom.client import send

    asyncio.run(send(settings, command))
    if as_json:
        console.say_json({"project_id": command.project_id})
    else:
        console.say(command.project_id)
        console.note(f"submitted; watch it with `sceneloom watch {command.project_id}`")


def watch(
    project: options.Project,
    *,
    wait_for_it: Annotated[
        bool, typer.Option("--wait-for-it", help="Wait for a project that nobody has heard of yet.")
    ] = False,
    timeout: options.Timeout = None,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """Watch a project live until it is over.

    A bar for each scene and the film, and the message to its user. Ctrl-C only stops watching.
    With --json each snapshot is one line.

    \b
    Example:
      sceneloom watch the-last-keeper-1f0a22c3
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from models.lifecycle import ProjectState
    from sceneloom.cli.configuration import load_settings
    from sceneloom.cli.following import watch_to_end
    from sceneloom.cli.view import JsonLines, open_view, receipt_line

    settings = load_settings(broker=broker, topic_prefix=topic_prefix)
    view = JsonLines() if as_json else open_view()
    last = watch_to_end(settings, project, view, timeout=timeout, wait_for_it=wait_for_it)
    if not as_json:
        if last.video_url:
            console.say(f"video    {last.video_url}")
        console.say(f"receipt  {receipt_line(last.receipt)}")
    if last.state is not ProjectState.COMPLETED:
        raise typer.Exit(Outcome.FAILED)


def status(
    project: options.Project,
    *,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """Show how a project stands now.

    \b
    Example:
      sceneloom status --json the-last-keeper-1f0a22c3
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import load_settings
    from sceneloom.cli.view import describe
    from sceneloom.client import read_state

    snapshot = asyncio.run(read_state(load_settings(broker=broker, topic_prefix=topic_prefix), project))
    if snapshot is None:
        raise no_such_project(project)
    if as_json:
        console.say_json(snapshot.model_dump(mode="json"))
    else:
        describe(snapshot)


def _wait(
    settings: "Settings", command: "ProjectCommand", video: Path, timeout: float | None, *, as_json: bool
) -> None:
    from sceneloom.cli.finishing import finish
    from sceneloom.cli.following import watch_to_end
    from sceneloom.cli.view import open_view

    last = watch_to_end(
        settings, command.project_id, open_view(as_json=as_json), command=command, timeout=timeout
    )
    finish(settings, last, video, as_json=as_json)
