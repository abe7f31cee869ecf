"""The suppliers that cost money: there when their accounts are, and never called twice by themselves."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import httpx

from models.policy import RARE_POLLS
from models.ports import AssetStore, Clock
from models.work import JobKind, Offer
from sceneloom.callbacks import callback_url
from sceneloom.deals import Deal, ProviderMisset, deals
from sceneloom.providers.connection import Connection
from sceneloom.providers.orders import Callback
from sceneloom.settings import Settings
from sceneloom.workshop.makers import ClipMaker, PictureMaker, SpeechMaker, fetch_from
from sceneloom.workshop.supplier import Maker, TaskMaker
from sceneloom.workshop.workshop import Supplier


def paid_suppliers(
    settings: Settings, assets: AssetStore, *, client: httpx.AsyncClient, clock: Clock
) -> Iterator[Supplier]:
    """Return a supplier for each deal. Raises `ProviderMisset` for an account that cannot work."""
    for deal in deals(settings, clock.now().date()):
        callback = _callback(settings, deal)
        to = replace(connection(deal, assets, client=client, clock=clock), callback=callback)
        build = partial(_maker, deal, to, settings.allow_private_downloads)
        offer = _offer(deal, to)
        try:
            maker = build(offer)
        except ValueError as error:
            raise ProviderMisset(f"SCENELOOM_{deal.name.upper()}_KEY: {error}") from error
        yield Supplier(
            kind=deal.kind,
            offer=offer,
            maker=maker,
            rebuild=build,
            repeatable=False,
            parallel=settings.parallel_paid,
            per_minute=settings.paid_per_minute,
            poll_schedule=RARE_POLLS if callback else deal.service.entry.polls,
            deadline_seconds=deal.deadline_seconds,
            usd_per_second=deal.price.second,
            usd_per_letter=deal.price.letter,
            limits=deal.known,
        )


def _offer(deal: Deal, to: Connection) -> Offer:
    """Return what a job freezes in its row, so that a change of the settings does not touch it."""
    terms = {"resolution": to.resolution, "tier": to.tier, "voice": to.voice}
    return Offer(
        provider=deal.name,
        model=deal.model,
        cost_usd=deal.price.call,
        endpoint=to.url,
        list_endpoint=to.list_url,
        terms={name: term for name, term in terms.items() if term},
    )


def _maker(deal: Deal, to: Connection, allow_private: bool, offer: Offer) -> Maker | TaskMaker:  # noqa: FBT001 -- for partial
    """Make what orders as *offer* says, with the key that the account has now."""
    frozen = replace(
        to,
        model=offer.model,
        url=offer.endpoint or to.url,
        list_url=offer.list_endpoint or to.list_url,
        resolution=offer.terms.get("resolution", ""),
        tier=offer.terms.get("tier", ""),
        voice=offer.terms.get("voice", ""),
    )
    provider = deal.service.adapters[deal.kind](frozen)
    return _MAKERS[deal.kind](provider, deal, to.assets, allow_private)


def connection(deal: Deal, assets: AssetStore, *, client: httpx.AsyncClient, clock: Clock) -> Connection:
    """Return the way to the provider of *deal*."""
    entry, account = deal.service.entry, deal.account
    return Connection(
        entry=entry,
        client=client,
        key=account.key,
        clock=clock,
        assets=assets,
        url=account.url or entry.url,
        list_url=account.list_url or entry.list_url,
        model=deal.model,
        resolution=deal.resolution,
        voice=account.voice,
        tier=deal.tier,
        cost_usd=deal.price.call,
    )


def _callback(settings: Settings, deal: Deal) -> Callback | None:
    """Return what names the address for each call, None where webhooks are off or cannot be proven."""
    sender = deal.service.entry.capabilities.sender
    proven = sender != "standard" or settings.standard_webhook_secret.get_secret_value()
    if not (settings.webhook_url and sender and proven):
        return None
    return partial(callback_url, settings.webhook_url, settings.webhook_secret, sender)


def _clips(provider: Any, deal: Deal, assets: AssetStore, allow_private: bool) -> TaskMaker:  # noqa: FBT001 -- all makers alike
    lines = re.fullmatch(r"(\d+)[pP]", deal.resolution)
    short_side = int(lines[1]) if lines else None
    return ClipMaker(provider=provider, assets=assets, allow_private=allow_private, short_side=short_side)


def _pictures(provider: Any, _deal: Deal, assets: AssetStore, allow_private: bool) -> Maker:  # noqa: FBT001 -- all makers alike
    fetch = fetch_from(assets, allow_private=allow_private)
    return PictureMaker(provider=provider, assets=assets, fetch=fetch)


def _speech(provider: Any, _deal: Deal, assets: AssetStore, _allow_private: bool) -> Maker:  # noqa: FBT001 -- all makers alike
    return SpeechMaker(provider=provider, assets=assets)


_Hire = Callable[[Any, Deal, AssetStore, bool], Maker | TaskMaker]
_MAKERS: Final[Mapping[JobKind, _Hire]] = MappingProxyType(
    {JobKind.CLIP: _clips, JobKind.IMAGE: _pictures, JobKind.SPEECH: _speech}
)
