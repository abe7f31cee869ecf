"""The command that shows the settings."""

import typer

from sceneloom.cli import console, options

_app = typer.Typer(help="Show the settings and where they come from.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module to *app*."""
    app.add_typer(_app, name="config")


@_app.callback()
def config() -> None:
    """Show the settings and where they come from."""


@_app.command()
def show(
    *, broker: options.Broker = None, topic_prefix: options.Prefix = None, as_json: options.AsJson = False
) -> None:
    """Show every setting: its value, where that came from, and the variable that sets it.

    A flag beats the environment, and the environment beats the file .env in the working folder.

    \b
    Examples:
      sceneloom config show
      SCENELOOM_PARTITIONS=16 sceneloom config show --json
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import description_of, load_settings, origins, variable

    flags = {"broker": broker, "topic_prefix": topic_prefix}
    settings = load_settings(**flags)
    rows = list(origins(settings, flags))
    if as_json:
        console.say_json(
            [
                {
                    "name": name,
                    "value": value,
                    "origin": origin,
                    "variable": variable(name),
                    "description": description_of(name),
                }
                for name, value, origin in rows
            ]
        )
        return
    table = console.table("variable", "value", "from", "what it is")
    for name, value, origin in rows:
        table.add_row(variable(name), value or "(empty)", origin, description_of(name))
    console.show(table)
