"""The commands that show everything at once: demo, story."""

from pathlib import Path
from typing import Annotated

import typer

from sceneloom.cli import options


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module to *app*."""
    app.command()(demo)
    app.command()(story)


def demo(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A request; by default examples/lighthouse.yaml.")
    ] = None,
    *,
    crash: Annotated[
        bool, typer.Option("--crash", help="Kill the worker in the middle, and prove that nothing is lost.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the demo's folder: assets, logs.")] = False,
    to: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the video goes.")] = Path("out"),
    as_json: options.AsJson = False,
) -> None:
    """Make a video now, with nothing set up.

    Runs a broker in memory and a worker, submits one request, and ends both. No keys, no Docker, no Java.
    With --json the last line is one object: project_id, state, video, seconds, receipt.

    \b
    Examples:
      sceneloom demo
      sceneloom demo --crash
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.showing import run_demo

    run_demo(file, kill=crash, keep=keep, to=to, as_json=as_json)


def story(
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folder: ledger, assets, logs.")] = False,
    to: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the video goes.")] = Path("out"),
    as_json: options.AsJson = False,
) -> None:
    """See that nothing is paid for twice: a provider fails, a worker is killed, a retry buys what is missing.

    Twelve pictures at $0.15 each, from a fake provider that takes no money, speaks HTTP and keeps a ledger.
    Ends with exit code 1 where the ledger and the receipt do not agree. With --json the last line is one
    object: project_id, state, video, seconds, receipt, crash, ledger and more.

    \b
    Example:
      sceneloom story
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.telling import run_story

    run_story(keep=keep, to=to, as_json=as_json)
