"""The command that consumes events."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Final

import typer

from sceneloom.cli import console, options
from sceneloom.cli.outcomes import no_such_project

if TYPE_CHECKING:
    from sceneloom.client import PublicEvent
    from sceneloom.settings import Settings

_ENDS: Final = frozenset({"ProjectCompleted", "ProjectFailed", "ProjectCancelled", "ProjectRejected"})


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module to *app*."""
    app.command()(events)


def events(
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what comes; Ctrl-C ends it.")
    ] = False,
    project: Annotated[
        str | None, typer.Option("--project", metavar="ID", help="Only of this project.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All public events, not only those that end a project.")
    ] = False,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the completion events of all projects.

    Completed, failed, cancelled and rejected projects, oldest first; --all shows every public event.
    With --json each event is one line, a CloudEvent in structured mode; one that comes twice has the
    same id. A project that nobody has heard of is exit code 1, unless its events are waited for (--follow).

    \b
    Examples:
      sceneloom events
      sceneloom events --follow --all --json
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import load_settings

    settings = load_settings(broker=broker, topic_prefix=topic_prefix)
    asyncio.run(_tell(settings, project, follow=follow, everything=everything, as_json=as_json))


async def _tell(
    settings: "Settings", project: str | None, *, follow: bool, everything: bool, as_json: bool
) -> None:
    from sceneloom.client import Reader, event_in, read_state
    from sceneloom.topics import PROJECT_EVENTS

    def wanted(event: "PublicEvent | None") -> bool:
        return event is not None and (everything or event.type in _ENDS)

    async with Reader(settings, PROJECT_EVENTS, project_id=project) as reader:
        past = [event async for record in reader.history() if (event := event_in(record))]
        for event in sorted(filter(wanted, past), key=lambda each: each.time):
            _show(event, as_json=as_json)
        if not follow:
            if project is not None and not past and await read_state(settings, project) is None:
                raise no_such_project(project)
            return
        async for record in reader.news():
            news = event_in(record)
            if news and wanted(news):
                _show(news, as_json=as_json)


def _show(event: "PublicEvent", *, as_json: bool) -> None:
    if as_json:
        console.say_json(event.structured())
        return
    scene = event.data.get("scene_id")
    detail = event.data.get("message") or event.data.get("assets", {}).get("video_url") or ""
    if event.type == "ProjectRejected":
        detail = "; ".join(fault["message"] for fault in event.data.get("faults", ()))
    place = f"{event.project_id}/{scene}" if scene else event.project_id
    console.say("  ".join(part for part in (event.time[:19], event.type, place, detail) if part))
