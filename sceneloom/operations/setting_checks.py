"""Checks of what is installed and what is set."""

import platform
import re
import sys
from collections.abc import Collection, Sequence
from importlib import metadata
from typing import Final, NamedTuple

from sceneloom.accounts import Account
from sceneloom.choices import not_there, require_usable, why_unknown
from sceneloom.clock import SystemClock
from sceneloom.deals import ProviderMisset, is_set_up, variable_of
from sceneloom.operations.examination import Finding, aside, fault, ok, warning
from sceneloom.outside import chosen_providers, without_store
from sceneloom.providers.services import BadService, services
from sceneloom.settings import Settings

_OLDEST_PYTHON: Final = (3, 11)
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)(?:>=([0-9.]+))?")


async def packages(_settings: Settings) -> list[Finding]:
    """Look whether Python and every package that we need are there, and new enough."""
    python = f"Python {platform.python_version()}"
    wrong = await aside(lambda: missing(metadata.requires("sceneloom") or []))
    advice = "set the environment up again: `make setup`, or install requirements.lock"
    if sys.version_info < _OLDEST_PYTHON:
        wrong.append(f"{python} is older than 3.11")
    return [fault(each, advice) for each in wrong] or [ok(f"{python}; every package is there")]


def missing(requirements: Sequence[str]) -> list[str]:
    """Return what is wrong with the installed packages, against requirements like `httpx>=0.28`."""
    faults = []
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement)
        if match is None or ";" in requirement:  # for another platform, or an extra
            continue
        name, least = match[1], match[2] or "0"
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            faults.append(f"the package {name} is not installed")
            continue
        if _numbers(version) < _numbers(least):
            faults.append(f"the package {name} is {version}, and {least} or newer is needed")
    return faults


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def set_keys(settings: Settings) -> list[str]:
    """Return the names of the accounts whose keys are set."""
    return [name for name, account in settings.accounts.items() if account.key.get_secret_value()]


class Choice(NamedTuple):
    """A provider that a setting chooses, and that is not there: why, and what to do."""

    provider: str
    told: str
    advice: str


async def providers(settings: Settings) -> list[Finding]:
    """Look which providers can be chosen, without a call to any: that could cost money."""
    try:
        await aside(services)
    except BadService as error:
        return [fault(str(error), "mend that package, or uninstall it: no provider can be used beside it")]
    misset = await misset_accounts(settings)
    findings = [
        *(_misset(settings.accounts[name], name, told) for name, told in misset.items()),
        *(fault(each.told, each.advice) for each in await misset_choices(settings, misset)),
        *(
            warning(f"{name} has no key: {not_there(name, account)}", "do that, or unset what is set of it")
            for name, account in settings.accounts.items()
            if not is_set_up(name, account)
        ),
    ]
    if findings:
        return findings
    keys = set_keys(settings)
    if not keys:
        return [ok("no key is set: everything is made on this machine, for nothing")]
    return [ok(f"keys are set for {', '.join(keys)}; none was tried, for that could cost money")]


def _misset(account: Account, name: str, told: str) -> Finding:
    of_it = f"{variable_of(name)}_KEY" if account.key.get_secret_value() else f"{variable_of(name)}_…"
    return fault(f"{name} cannot work as it is set up: {told}", f"correct that, or unset {of_it}")


async def misset_accounts(settings: Settings) -> dict[str, str]:
    """Return the accounts with which no worker starts, and what is wrong with each."""
    return {
        name: told
        for name, account in settings.accounts.items()
        if is_set_up(name, account) and (told := await _why_misset(settings, name))
    }


async def _why_misset(settings: Settings, name: str) -> str:
    """Return what is wrong with the settings of one provider, with all others taken away; empty: nothing."""
    ear = name if settings.transcription_provider == name else ""
    alone = {"accounts": {name: settings.accounts[name]}, "transcription_provider": ear}
    try:
        outside = without_store(settings.model_copy(update=alone))
    except ValueError as error:
        return str(error)
    for close in outside.closers:
        await close()
    return ""


async def misset_choices(settings: Settings, misset: Collection[str]) -> list[Choice]:
    """Return each choice of a provider which is neither there nor among the *misset* accounts."""
    accounts = {name: account for name, account in settings.accounts.items() if name not in misset}
    ear = "" if settings.transcription_provider in misset else settings.transcription_provider
    sound = settings.model_copy(update={"accounts": accounts, "transcription_provider": ear})
    deaf = await _unusable_ear(sound)
    outside = without_store(sound.model_copy(update={"transcription_provider": ""}) if deaf else sound)
    choices = [
        (kind, role, name) for role, names in chosen_providers(settings).items() for kind, name in names
    ]
    found = [deaf] if deaf else []
    for kind, role, name in choices:
        known = outside.workshop.names(kind)
        if name not in {*known, *misset}:
            why = why_unknown(settings, name, kind, SystemClock().now().date(), there=known)
            advice = f"set what it needs, or choose one of: {', '.join(sorted(known))}"
            found.append(Choice(name, f"SCENELOOM_{kind.upper()}_{role}: {why}", advice))
    for close in outside.closers:
        await close()
    return found


async def _unusable_ear(settings: Settings) -> Choice | None:
    """Return who shall time the words of speech where that is not there, or cannot work here."""
    try:
        await aside(lambda: require_usable(settings, SystemClock().now().date()))
    except ProviderMisset as error:
        advice = "correct that, or unset SCENELOOM_TRANSCRIPTION_PROVIDER"
        return Choice(settings.transcription_provider, str(error), advice)
    return None


def settings_check(faults: Sequence[str]) -> list[Finding]:
    """Return the *faults* of the settings themselves, which have their defaults in the other checks."""
    advice = "correct it; the other checks go on with the default. `sceneloom config show` lists what is set"
    return [fault(each, advice) for each in faults] or [ok("every setting can be read")]
