"""The commands about topics: create, list, and accept that changelogs have lost rows."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sceneloom.cli import console, options
from sceneloom.cli.outcomes import Outcome

if TYPE_CHECKING:
    from sceneloom.topic_admin import TopicState

_app = typer.Typer(
    help="Create the topics, compare them, or accept what they have lost.", no_args_is_help=True
)

_Partitions = Annotated[
    int | None, typer.Option("--partitions", metavar="N", help="Partitions of every topic but dead-letters.")
]
_Replication = Annotated[
    int | None, typer.Option("--replication", metavar="N", help="Copies of every topic.")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module to *app*."""
    app.add_typer(_app, name="topics")


@_app.command()
def create(
    *,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    partitions: _Partitions = None,
    replication: _Replication = None,
    as_json: options.AsJson = False,
) -> None:
    """Create the topics that are missing; the others are checked and left alone.

    A topic that exists with other partitions, replication or cleanup policy is an error, exit code 2.

    \b
    Example:
      sceneloom topics create --partitions 16 --replication 3
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import load_settings
    from sceneloom.topic_admin import ensure_topics

    settings = load_settings(
        broker=broker, topic_prefix=topic_prefix, partitions=partitions, replication=replication
    )
    states = asyncio.run(ensure_topics(settings))
    if as_json:
        console.say_json(
            [{"topic": state.spec.name, "created": state.found is None} for state in states],
        )
        return
    for state in states:
        console.say(f"{state.spec.name}: {'was there' if state.found else 'created'}")


@_app.command("list")
def list_(
    *,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    partitions: _Partitions = None,
    replication: _Replication = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what is there against what should be; exit code 1 where they differ.

    \b
    Example:
      sceneloom topics list
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import load_settings
    from sceneloom.topic_admin import list_topics

    settings = load_settings(
        broker=broker, topic_prefix=topic_prefix, partitions=partitions, replication=replication
    )
    states = asyncio.run(list_topics(settings))
    if as_json:
        console.say_json([_described(state) for state in states])
    else:
        _show(states)
    if any(state.found is None or state.faults for state in states):
        raise typer.Exit(Outcome.FAILED)


@_app.command("accept-loss")
def accept_loss(
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """Let workers start although changelogs have lost rows. What stood in those rows is forgotten for good.

    Workers refuse to read a table from a changelog that holds less than they know was there: open paid calls
    may have stood in it, and would be made again. Restore the topic from a backup, if there is one. Only
    where there is none, end all workers and accept the loss.

    \b
    Example:
      sceneloom topics accept-loss
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import load_settings
    from sceneloom.operations.losses import accept_losses, find_losses

    settings = load_settings(broker=broker, topic_prefix=topic_prefix)
    losses = asyncio.run(find_losses(settings))
    for line in losses if not as_json else []:
        console.say(line)
    if losses:
        if not yes and not typer.confirm("Go on without these rows?", err=True):
            raise typer.Exit(Outcome.FAILED)
        losses = asyncio.run(accept_losses(settings))
    if as_json:
        console.say_json(losses)
    else:
        console.say(
            "accepted: remove the folder tables/ of each worker, then they can start"
            if losses
            else "no changelog has lost rows"
        )


def _described(state: "TopicState") -> dict[str, Any]:
    found, spec = state.found, state.spec
    return {
        "topic": spec.name,
        "exists": found is not None,
        "partitions": found.partitions if found else None,
        "replication": found.replication if found else None,
        "cleanup_policy": found.cleanup_policy if found else None,
        "wanted": {
            "partitions": spec.partitions,
            "replication": spec.replication,
            "cleanup_policy": spec.config["cleanup.policy"],
        },
        "faults": list(state.faults),
    }


def _show(states: "list[TopicState]") -> None:
    table = console.table("topic", "partitions", "replication", "cleanup policy", "")
    for state in states:
        found = state.found
        if found is None:
            table.add_row(state.spec.name, "-", "-", "-", "missing: `sceneloom topics create`")
            continue
        policy = found.cleanup_policy or "not told"
        verdict = "; ".join(state.faults) or "as it should be"
        table.add_row(state.spec.name, str(found.partitions), str(found.replication), policy, verdict)
    console.show(table)
