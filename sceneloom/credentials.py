"""Checks whether the accounts at providers work, by reads that cost nothing."""

import asyncio
from collections.abc import AsyncIterator
from enum import StrEnum
from typing import NamedTuple

import httpx

from models.errors import ProviderFailure
from models.ports import AssetStore, Clock
from sceneloom.deals import Deal, ProviderMisset, deals
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
    UNCHECKED = "unchecked"


class Finding(NamedTuple):
    """The state of one account, and a line about it without any secret."""

    name: str
    state: State
    detail: str


async def check_accounts(
    settings: Settings, assets: AssetStore, *, client: httpx.AsyncClient, clock: Clock
) -> AsyncIterator[Finding]:
    """Yield what is found of each account that has a key, in the order of the settings."""
    for name, account in settings.accounts.items():
        alone = settings.model_copy(update={"accounts": {name: account}})
        try:
            found = list(deals(alone, clock.now().date()))
        except ProviderMisset as misset:
            yield Finding(name, State.MISSET, str(misset))
            continue
        if found:
            yield await _check(found, assets, client, clock)


async def _check(found: list[Deal], assets: AssetStore, client: httpx.AsyncClient, clock: Clock) -> Finding:
    deal = found[0]
    made = ", ".join(f"{each.kind} by {each.model}" for each in found)
    if not deal.service.entry.url:
        return await _check_here(deal, made)
    path = deal.service.entry.free_read
    if not path:
        return Finding(deal.name, State.UNCHECKED, f"{made}; there is no read that costs nothing")
    try:
        wire = connection(deal, assets, client=client, clock=clock).wire(
            Verdicts(read=error_object, signs=())
        )
    except ValueError as bad:
        return Finding(deal.name, State.MISSET, f"SCENELOOM_{deal.name.upper()}_KEY: {bad}")
    try:
        answer = await wire.ask("GET", path)
    except ProviderFailure as failure:
        return Finding(deal.name, State.UNREACHABLE, failure.detail)
    if answer.is_success:
        return Finding(deal.name, State.GOOD, made)
    state = State.REFUSED if answer.status in {401, 403} else State.UNREACHABLE
    return Finding(deal.name, state, wire.failure(answer).detail)


async def _check_here(deal: Deal, made: str) -> Finding:
    """Check a model that works on this machine, by loading it."""
    if why := await asyncio.to_thread(deal.service.why_unusable, deal.model):
        return Finding(deal.name, State.MISSET, f"SCENELOOM_{deal.name.upper()}_MODEL: {why}")
    return Finding(deal.name, State.GOOD, f"{made}, on this machine")
