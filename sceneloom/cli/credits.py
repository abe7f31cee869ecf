"""The commands about the credits of users: grant and show."""

import asyncio
import contextlib
import uuid
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final

import typer

from sceneloom.cli import console, options
from sceneloom.cli.outcomes import Outcome, Stop

if TYPE_CHECKING:
    from models.credits import AccountSnapshot
    from sceneloom.settings import Settings

_app = typer.Typer(help="Grant credits to a user, or show what is left.", no_args_is_help=True)

_RULES: Final = MappingProxyType(
    {
        "user_id": "USER: write 1 to 128 characters on one line",
        "grant_id": "--grant-id: use 1 to 64 of A-Z, a-z, 0-9, dot, underscore and hyphen",
    }
)

_User = Annotated[str, typer.Argument(metavar="USER", help="The user_id of the requests that it pays for.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module to *app*."""
    app.add_typer(_app, name="credits")


@_app.command()
def grant(
    user: _User,
    amount: Annotated[str, typer.Argument(metavar="AMOUNT", help="US dollars, such as 25 or 12.50.")],
    *,
    grant_id: Annotated[
        str | None,
        typer.Option(
            "--grant-id", metavar="ID", help="Names the grant: one of that name is added once, ever."
        ),
    ] = None,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """Add credits to the account of a user.

    With --grant-id it is safe to run again, as after a time-out: name the invoice or the payment.

    \b
    Examples:
      sceneloom credits grant ann 25
      sceneloom credits grant ann 12.50 --grant-id invoice-2041
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from pydantic import ValidationError

    from models.credit_messages import GrantCredits
    from sceneloom.cli import accounts

    settings = _settings(broker, topic_prefix)
    try:
        command = GrantCredits(user_id=user, grant_id=grant_id or str(uuid.uuid4()), micros=_micros(amount))
    except ValidationError as error:
        wrong = [str(fault["loc"][0]) for fault in error.errors()]
        raise Stop("\n".join(_RULES[name] for name in wrong), Outcome.INVALID) from error
    account = asyncio.run(accounts.grant(settings, command))
    if account.last and account.last.granted != command.micros:
        raise _taken(command.grant_id, account)
    _tell(account, as_json=as_json)


@_app.command()
def show(
    user: _User,
    *,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the balance of a user, what running projects hold of it, and what is available.

    With --json all amounts are whole micro-dollars.

    \b
    Example:
      sceneloom credits show ann
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli import accounts

    account = asyncio.run(accounts.read_account(_settings(broker, topic_prefix), user))
    _tell(account, as_json=as_json)


def _settings(broker: str | None, topic_prefix: str | None) -> "Settings":
    from sceneloom.cli.configuration import load_settings, shown

    settings = load_settings(broker=broker, topic_prefix=topic_prefix)
    match settings.credits:
        case "table":
            return settings
        case "http":
            raise Stop(f"the credits are kept by {shown(settings.credits_url)}: ask there", Outcome.INVALID)
        case "off":
            raise Stop(
                "credits are off: set SCENELOOM_CREDITS=table here, and for every worker", Outcome.INVALID
            )


def _micros(amount: str) -> int:
    from models.money import MOST_MICROS

    with contextlib.suppress(ArithmeticError):
        exact = Decimal(amount.removeprefix("$")).scaleb(6)
        if exact == exact.to_integral_value() and 0 < exact <= MOST_MICROS:
            return int(exact)
    raise Stop(
        f"AMOUNT: {amount!r} will not do: write US dollars above 0, with at most six digits after the point, "
        "such as 12.50",
        Outcome.INVALID,
    )


def _taken(grant_id: str, account: "AccountSnapshot") -> Stop:
    from models.money import dollars

    granted = dollars(account.last.granted) if account.last else "another amount"
    return Stop(f"grant {grant_id} was made before, with {granted}: nothing was added", Outcome.FAILED)


def _tell(account: "AccountSnapshot", *, as_json: bool) -> None:
    if as_json:
        console.say_json(
            {
                "user_id": account.user_id,
                "balance_micros": account.balance,
                "reserved_micros": account.reserved,
                "available_micros": account.available,
            }
        )
        return
    from models.money import dollars

    console.say(f"balance    {dollars(account.balance)}")
    console.say(f"reserved   {dollars(account.reserved)}")
    console.say(f"available  {dollars(account.available)}")
