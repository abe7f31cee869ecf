"""Reads the settings for a command, and explains a wrong one by its name."""

import contextlib
import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from pydantic import SecretStr, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import DotEnvSettingsSource

from sceneloom.accounts import Account, account_and_field
from sceneloom.broker_settings import BrokerSettings
from sceneloom.cli.console import warn
from sceneloom.cli.env_file import env_file_faults
from sceneloom.cli.outcomes import Outcome, Stop
from sceneloom.providers.catalogue import entries
from sceneloom.settings import Settings

PREFIX: Final = "SCENELOOM_"
_OTHERS: Final = frozenset({"DEBUG", "KAFKA_JARS", "KAFKA_IMAGE", "TEST_BROKER", "ALLOW_NO_KAFKA", "FUZZ"})
"""What we read from the environment beside the settings."""

_TOGETHER: Final = (
    frozenset(BrokerSettings.model_fields) - {"broker"},
    frozenset({"credits", "credits_url", "credits_key"}),
    frozenset({"webhook_url", "webhook_secret"}),
)
"""Settings of which one asks for another."""

_LOGIN: Final = re.compile(r"(?<=//)[^@\s]*@|(?:^|(?<=,))[^/@\s]*@")


def load_settings(**flags: object) -> Settings:
    """Return the settings, where a flag that is given beats the environment, and that beats `.env`.

    Raises `Stop` with one line for each wrong value.
    """
    if faults := env_file_faults():
        raise Stop("\n".join(faults), Outcome.INVALID)
    _warn_of_unknown(_variables())
    try:
        return Settings(**_given(flags))  # type: ignore[arg-type]  # checked by the model itself
    except ValidationError as error:
        raise Stop("\n".join(_told(error, flags)), Outcome.INVALID) from error


def readable_settings(**flags: object) -> tuple[Settings, list[str]]:
    """Return the settings with the default in place of each wrong value, and a line for each of those.

    Where another setting asks for such a value, all that belong together have their defaults.
    A `.env` that cannot be read is left out as a whole.
    """
    faults = env_file_faults()
    given = _given(flags) | ({"_env_file": None} if faults else {})
    _warn_of_unknown(_names(os.environ) if faults else _variables())
    try:
        return Settings(**given), faults  # type: ignore[arg-type]  # checked by the model itself
    except ValidationError as error:
        faults += _told(error, flags)
        wrong = frozenset(str(fault["loc"][0]) for fault in error.errors() if fault["loc"])
    with contextlib.suppress(ValidationError):
        return Settings(**given | _defaults(wrong)), faults  # type: ignore[arg-type]  # as above
    involved = wrong.union(*(group for group in _TOGETHER if group & wrong))
    return Settings(**given | _defaults(involved)), faults  # type: ignore[arg-type]  # as above


def _defaults(names: Iterable[str]) -> dict[str, object]:
    defaults: dict[str, object] = {name: Settings.model_fields[name].get_default() for name in names}
    # What is no dict replaces the accounts of the other places, and is not merged with them.
    if "accounts" in defaults:
        defaults["accounts"] = MappingProxyType({})
    return defaults


def _given(flags: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in flags.items() if value is not None}


def _told(error: ValidationError, flags: Mapping[str, object]) -> list[str]:
    return [f"{_written_as(fault, _given(flags))}: {_explained(fault)}" for fault in error.errors()]


def variable(field: str) -> str:
    """Return the environment name of a setting."""
    return f"{PREFIX}{field.upper()}"


def origins(settings: Settings, flags: Mapping[str, object]) -> Iterator[tuple[str, str, str]]:
    """Yield every setting as its name, its value (secrets hidden) and where it came from."""
    environment, dotenv = _names(os.environ), _names(_dotenv())
    values = {field: getattr(settings, field) for field in type(settings).model_fields}
    values |= {"accounts": ", ".join(settings.accounts)} | _of_accounts(settings)
    for field, value in values.items():
        name = variable(field)
        if flags.get(field) is not None:
            origin = "flag"
        elif name in environment:
            origin = "environment"
        else:
            origin = ".env" if name in dotenv else "default"
        yield field, shown(value), origin


def description_of(field: str) -> str:
    """Say what the setting called *field* is for, which may be one of an account."""
    own = Settings.model_fields
    if field in own:
        return own[field].description or ""
    found = account_and_field(field, own)
    return (Account.model_fields[found[1]].description or "") if found else ""


def _of_accounts(settings: Settings) -> dict[str, object]:
    return {
        f"{name}_{field}": getattr(account, field)
        for name, account in settings.accounts.items()
        for field in sorted(account.model_fields_set)
    }


def shown(value: object) -> str:
    """Write a setting's value, without a password in it."""
    return "(hidden)" if isinstance(value, SecretStr) else _LOGIN.sub("(hidden)@", str(value))


def _variables() -> frozenset[str]:
    """Return the names of the variables that are set, in the environment or in `.env`."""
    return _names(os.environ) | _names(_dotenv())


def _dotenv() -> Mapping[str, str | None]:
    return DotEnvSettingsSource(Settings).env_vars


def _names(variables: Mapping[str, str | None]) -> frozenset[str]:
    """Return the names of the variables that say something, in capitals: Settings reads them in any case."""
    return frozenset(name.upper() for name, value in variables.items() if value)


def _warn_of_unknown(said: frozenset[str]) -> None:
    known = {variable(field) for field in Settings.model_fields} | {f"{PREFIX}{name}" for name in _OTHERS}
    for name in sorted(said):
        if name.startswith(PREFIX) and name not in known and not _is_of_account(name, said):
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
            advice = f"did you mean {near[0]}?" if near else "`sceneloom config show` lists all there are"
            warn(f"{name} is no setting; {advice}")


def _is_of_account(name: str, said: frozenset[str]) -> bool:
    """Tell whether the variable is of an account: of a known provider, or one that says whose it is."""
    found = account_and_field(name.removeprefix(PREFIX).lower(), Settings.model_fields)
    if found is None:
        return False
    return (
        found[0] in entries()
        or found[1] in {"key", "service"}
        or bool(said & {variable(f"{found[0]}_key"), variable(f"{found[0]}_service")})
    )


def _written_as(fault: ErrorDetails, flags: Mapping[str, object]) -> str:
    match fault["loc"]:
        case ("accounts", account, name, *_):
            field = f"{account}_{name}"
        case (first, *_):
            field = str(first)
        case _:
            field = "settings"
    return f"--{field.replace('_', '-')}" if field in flags else variable(field)


_RULES: Final[Mapping[str, str]] = {
    "greater_than_equal": "{ge:g} or more",
    "greater_than": "more than {gt:g}",
    "less_than_equal": "{le:g} or less",
    "less_than": "less than {lt:g}",
    "literal_error": "{expected}",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "bool_parsing": "true or false",
    "string_pattern_mismatch": "made of letters, digits, dots, underscores and hyphens, at most 64",
}


def _written(fault: ErrorDetails) -> str:
    """Write the wrong value itself, unless it is a secret."""
    if _may_be_secret(fault["loc"]):
        return "(hidden)"
    value = _LOGIN.sub("(hidden)@", str(fault["input"]))
    return value if value and value.isprintable() and " " not in value else repr(value)


def _may_be_secret(place: tuple[int | str, ...]) -> bool:
    """Tell whether what stands at *place* of the settings may be a secret, or hold one."""
    match place:
        case ("accounts", _, name):
            field = Account.model_fields.get(str(name))
            return field is None or field.annotation is SecretStr
        case ("accounts", *_):
            return True
        case (name, *_):
            return Settings.model_fields[str(name)].annotation is SecretStr
        case _:
            return False


def _explained(fault: ErrorDetails) -> str:
    context: dict[str, Any] = fault.get("ctx", {})
    value = _written(fault)
    if fault["type"] == "value_error":
        return f"{value} will not do: {context['error']}"
    rule = _RULES.get(fault["type"])
    return f"{value} is not {rule.format(**context)}" if rule else f"{value}: {fault['msg']}"
