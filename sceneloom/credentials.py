"""Checks whether the accounts at providers work, by reads that cost nothing."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import quote

import httpx

from models.errors import ProviderFailure
from models.ports import AssetStore, Clock
from sceneloom.choices import not_there
from sceneloom.deals import Deal, ProviderMisset, deals, is_set_up, left_out
from sceneloom.paid import connection
from sceneloom.providers.tasks import error_object
from sceneloom.providers.verdicts import Verdicts
from sceneloom.settings import Settings


class State(StrEnum):
    """What is known of an account."""

    GOOD = "good"
    MISSET = "misset"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    """No answer came."""
    UNEXPECTED = "unexpected"
    """An answer came that says neither that the key works nor that it does not."""
    UNCHECKED = "unchecked"


class Finding(NamedTuple):
    """The state of one account, and a line about it without any secret."""

    name: str
    state: State
    detail: str


async def check_accounts(
    settings: Settings, assets: AssetStore, *, client: httpx.AsyncClient, clock: Clock
) -> AsyncIterator[Finding]:
    """Yield what is found of each account, in the order of the settings."""
    for name, account in settings.accounts.items():
        if not is_set_up(name, account):
            yield Finding(name, State.UNCHECKED, not_there(name, account))
            continue
        alone, today = settings.model_copy(update={"accounts": {name: account}}), clock.now().date()
        try:
            found, told = list(deals(alone, today)), [each.told for each in left_out(alone, today)]
        except ProviderMisset as misset:
            yield Finding(name, State.MISSET, str(misset))
            continue
        if found:
            finding = await _check(found, assets, client, clock)
            yield finding._replace(detail="; ".join([finding.detail, *told]))
        elif told:
            yield Finding(name, State.UNCHECKED, "; ".join(told))


async def _check(found: list[Deal], assets: AssetStore, client: httpx.AsyncClient, clock: Clock) -> Finding:
    deal = found[0]
    made = ", ".join(f"{each.kind} by {each.model}" for each in found)
    if not deal.service.entry.url:
        return await _check_here(deal, made)
    entry = deal.service.entry
    path = entry.free_read.replace("{model}", quote(deal.model.strip("/"), safe=""))
    if not path:
        return Finding(deal.name, State.UNCHECKED, f"{made}; there is no read that costs nothing")
    try:
        to = connection(deal, assets, client=client, clock=clock)
        read = replace(to, url=to.list_url) if entry.is_read_of_list else to
        wire = read.wire(Verdicts(read=error_object, signs=()))
    except ValueError as bad:
        return Finding(deal.name, State.MISSET, f"SCENELOOM_{deal.name.upper()}_KEY: {bad}")
    try:
        answer = await wire.ask("GET", path)
    except ProviderFailure as failure:
        return Finding(deal.name, State.UNREACHABLE, failure.detail)
    if answer.is_success:
        return Finding(deal.name, State.GOOD, made)
    state = State.REFUSED if answer.status in {401, 403} else State.UNEXPECTED
    return Finding(deal.name, state, wire.failure(answer).detail)


async def _check_here(deal: Deal, made: str) -> Finding:
    """Check a model that works on this machine, by loading it."""
    if why := await asyncio.to_thread(deal.service.why_unusable, deal.model):
        return Finding(deal.name, State.MISSET, f"SCENELOOM_{deal.name.upper()}_MODEL: {why}")
    return Finding(deal.name, State.GOOD, f"{made}, on this machine")
