"""The commands about providers: what there is, what each can do, and whether the accounts work."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sceneloom.cli import console, options
from sceneloom.cli.outcomes import Outcome, Stop

if TYPE_CHECKING:
    from sceneloom.credentials import Finding
    from sceneloom.providers.catalogue import Entry

_app = typer.Typer(help="Show the providers, what they can do, and whether yours work.", no_args_is_help=True)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A provider, as `sceneloom providers list` shows it.")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module to *app*."""
    app.add_typer(_app, name="providers")


@_app.callback()
def providers() -> None:
    """Show the providers, what they can do, and whether yours work."""


@_app.command("list")
def list_(*, as_json: options.AsJson = False) -> None:
    """List all providers: what they make, and whether they are set up here.

    storyboard, offline and motion need no key. Every other is there once its key is set, SCENELOOM_NAME_KEY;
    one of your own machines, such as comfyui, once its address is, SCENELOOM_NAME_URL; whisper once its
    model is, SCENELOOM_WHISPER_MODEL. "yes": the settings are complete and fit the catalogue; whether a key
    is good, `sceneloom providers check` asks. Models that are retired, or will be within 90 days, are marked.

    \b
    Examples:
      sceneloom providers list
      sceneloom providers list --json
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import load_settings
    from sceneloom.operations.provider_list import listed

    settings = load_settings()
    rows = list(listed(settings))
    if as_json:
        console.say_json([row.as_json() for row in rows])
        return
    table = console.table("provider", "makes", "set up", "models")
    for row in rows:
        models = ", ".join(map(row.shown, row.models))
        table.add_row(row.name, row.kind, "yes" if row.is_set_up else "no", models)
    console.show(table)
    for row in rows:
        if row.name in settings.accounts and row.why_not:
            console.note(f"{row.name} cannot make {row.kind}: {row.why_not}")


@_app.command()
def show(name: Name, *, as_json: options.AsJson = False) -> None:
    """Show one provider: its models with their limits and prices, and the variables that set it up.

    \b
    Examples:
      sceneloom providers show runway
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from models.spelling import nearest
    from sceneloom.cli.configuration import load_settings
    from sceneloom.providers.catalogue import gone
    from sceneloom.providers.services import services

    account = load_settings().accounts.get(name)
    service = services().get(account.service or name if account else name)
    if service is None:
        if (past := gone().get(name)) is not None:
            raise Stop(past.told, Outcome.INVALID)
        near = nearest(name, sorted(services()))
        advice = f"did you mean {near}?" if near else "`sceneloom providers list` shows all there are"
        raise Stop(f"there is no provider {name}; {advice}", Outcome.INVALID)
    if as_json:
        console.say_json(service.entry.model_dump(mode="json"))
        return
    _show(service.entry, name)


def _show(entry: "Entry", name: str) -> None:
    from sceneloom.providers.catalogue import words

    console.say(f"{entry.title}: {entry.docs}")
    can = entry.capabilities
    console.say(f"address {entry.url or 'none'}; webhook {can.webhook}; list {can.list}; cancel {can.cancel}")
    prefix = f"SCENELOOM_{name.upper()}"
    needed = {entry.set_up_by: ""} | ({"VOICE": ""} if entry.needs_voice else {})
    needed |= {"MODEL": f" ({entry.model_hint})"} if entry.model_hint else {}
    console.say(f"set {', '.join(f'{prefix}_{name}{hint}' for name, hint in needed.items())}")
    table = console.table("model", "makes", "seconds", "ratios", "resolutions", "US dollars", "served until")
    for model in entry.models:
        table.add_row(
            model.name,
            model.kind,
            words.lengths(model),
            " ".join(model.ratios),
            " ".join(model.resolutions),
            words.prices(model),
            words.until(model),
        )
    console.show(table)
    for doubt in entry.unconfirmed:
        console.note(f"not confirmed: {doubt}")


@_app.command()
def check(*, as_json: options.AsJson = False) -> None:
    """Check every account whose key is set, by a read that costs nothing; exit code 1 where one fails.

    With exit code 2 ends what no worker starts with: an account that is set up wrongly, as with a model that
    is not served any more, or the choice of a provider that is not there.

    \b
    Examples:
      sceneloom providers check
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import load_settings
    from sceneloom.credentials import State

    findings = asyncio.run(_checked(load_settings()))
    if as_json:
        console.say_json([finding._asdict() for finding in findings])
    elif not findings:
        console.note("no key is set: `sceneloom providers list` shows what there is")
    else:
        table = console.table("account", "state", "what was found")
        for finding in findings:
            table.add_row(*finding)
        console.show(table)
    states = {finding.state for finding in findings}
    if State.MISSET in states:
        raise typer.Exit(Outcome.INVALID)
    if states & {State.REFUSED, State.UNREACHABLE, State.UNEXPECTED}:
        raise typer.Exit(Outcome.FAILED)


async def _checked(settings: Any) -> "list[Finding]":
    from sceneloom.assets.store import open_assets
    from sceneloom.clock import SystemClock
    from sceneloom.credentials import Finding, State, check_accounts
    from sceneloom.operations.setting_checks import misset_accounts, misset_choices
    from sceneloom.providers.wire import open_client

    misset = await misset_accounts(settings)
    choices = await misset_choices(settings, misset)
    async with open_client() as client:
        checked = check_accounts(settings, open_assets("memory://"), client=client, clock=SystemClock())
        found = [finding async for finding in checked]
    return [
        *(
            Finding(each.name, State.MISSET, misset[each.name]) if each.name in misset else each
            for each in found
        ),
        *(Finding(choice.provider, State.MISSET, choice.told) for choice in choices),
    ]
