"""The program: its commands, and what it tells its user when one of them cannot go on."""

import importlib.metadata
import logging
import os
import traceback
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from sceneloom.cli import (
    configuring,
    credits,  # noqa: A004 -- what the interpreter's prompt calls credits() nobody needs here
    deciding,
    demonstrating,
    diagnosing,
    events,
    jobs,
    letters,
    listing,
    observing,
    projects,
    providers,
    receiving,
    serving,
    topics,
)
from sceneloom.cli.console import complain, note
from sceneloom.cli.outcomes import Outcome, outcome_of

_EPILOG: Final = """\b
Exit codes of every command:
  0    done; for a watched project: completed
  1    the project failed or was cancelled, or the work could not be done
  2    wrong argument, setting or request
  3    no broker answers, or our topics are not on it
  4    the time ran out (--timeout)
  130  Ctrl-C

\b
Settings: `sceneloom config show`. Tracebacks: --debug or SCENELOOM_DEBUG=1.
"""


class _Program(TyperGroup):
    """Ends every command that cannot go on with one clear line and its exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            note("stopped")
            raise typer.Exit(Outcome.INTERRUPTED) from None
        except BrokenPipeError:
            # Whoever read our output has seen enough, as `head` does.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            raise typer.Exit(Outcome.DONE) from None
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")  # pydantic's word, not the user's
            raise
        except Exception as error:
            outcome = outcome_of(error)
            if outcome is None:
                raise
            if _debugging(ctx):
                traceback.print_exc()
            # To stop on Ctrl-C is what was asked for, not an error.
            (note if outcome is Outcome.INTERRUPTED else complain)(str(error))
            raise typer.Exit(outcome) from error


app = typer.Typer(
    cls=_Program,
    name="sceneloom",
    epilog=_EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:  # noqa: FBT001 -- typer calls it
    if wanted:
        typer.echo(f"sceneloom {importlib.metadata.version('sceneloom')}")
        raise typer.Exit


@app.callback()
def program(
    *,
    _debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    _show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Make short videos from requests: a title and a list of scenes.

    \b
    First look, with nothing else installed:
      sceneloom demo
    \b
    For real work, each in a terminal of its own:
      sceneloom broker
      sceneloom worker
      sceneloom submit --wait examples/lighthouse.yaml
    """  # noqa: D301 -- \b keeps the lines of an example apart
    # What the client says about lost connections, our own messages say better.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)


for module in (
    demonstrating,
    projects,
    deciding,
    listing,
    jobs,
    events,
    credits,
    serving,
    receiving,
    observing,
    topics,
    providers,
    letters,
    diagnosing,
    configuring,
):
    module.add_to(app)


def _debugging(ctx: Any) -> bool:
    return bool(ctx.params.get("_debug")) or os.environ.get("SCENELOOM_DEBUG", "") not in {"", "0"}


def main() -> None:
    """Run the program with the arguments of this process."""
    app(prog_name="sceneloom")
