"""The suppliers that cost money: there when their accounts are, and never called twice by themselves."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import httpx

from models.policy import RARE_POLLS
from models.ports import AssetStore, Clock, SpeechToTextProvider, TaskProvider
from models.work import JobKind, Offer
from sceneloom.assets.store import open_assets
from sceneloom.callbacks import callback_url
from sceneloom.choices import ear_among
from sceneloom.clock import SystemClock
from sceneloom.deals import Deal, ProviderMisset, deals, variable_of
from sceneloom.providers.catalogue import Kind
from sceneloom.providers.comfyui import WorkflowUnusable
from sceneloom.providers.connection import Connection
from sceneloom.providers.orders import Callback
from sceneloom.settings import Settings
from sceneloom.workshop.hearing import RememberedHearing
from sceneloom.workshop.makers import ClipMaker, SpeechMaker, fetch_from
from sceneloom.workshop.pictures import PictureMaker, PictureTaskMaker
from sceneloom.workshop.supplier import Maker, TaskMaker
from sceneloom.workshop.workshop import Supplier

LETTERS_PER_SECOND: Final = 10.0
"""So fast is narration when transcription, which is billed by the second, is priced: slow, to be safe."""


def paid_suppliers(
    settings: Settings, assets: AssetStore, *, client: httpx.AsyncClient, clock: Clock
) -> Iterator[Supplier]:
    """Return a supplier for each deal. Raises `ProviderMisset` for an account that cannot work."""
    found = list(deals(settings, clock.now().date()))
    ear = _ear(settings, found, assets, client=client, clock=clock)
    for deal in found:
        if not isinstance(deal.kind, JobKind):
            continue
        callback = _callback(settings, deal)
        to = replace(connection(deal, assets, client=client, clock=clock), callback=callback)
        heard_by = ear if deal.kind is JobKind.SPEECH and not deal.service.entry.tells_words else None
        build = partial(_maker, deal, to, settings.allow_private_downloads, heard_by)
        offer = _offer(deal, to, heard_by)
        yield Supplier(
            kind=deal.kind,
            offer=offer,
            maker=build(offer),
            rebuild=build,
            repeatable=deal.service.entry.free,
            parallel=settings.parallel_paid,
            per_minute=settings.paid_per_minute,
            poll_schedule=RARE_POLLS if callback else deal.polls,
            deadline_seconds=deal.deadline_seconds,
            usd_per_second=deal.price.second,
            usd_per_letter=deal.price.letter + (heard_by.usd_per_letter if heard_by else 0.0),
            limits=deal.known,
        )


@dataclass(frozen=True, slots=True)
class _Ear:
    """Who times the words of speech that comes without."""

    term: str
    """Names account and model, for the row of a job."""
    usd: float
    usd_per_letter: float
    provider: SpeechToTextProvider


def _ear(
    settings: Settings, found: Iterable[Deal], assets: AssetStore, *, client: httpx.AsyncClient, clock: Clock
) -> _Ear | None:
    """Return who times words, None where nobody is chosen. Raises `ProviderMisset`."""
    name = settings.transcription_provider
    if not name:
        return None
    deal = ear_among(settings, found, clock.now().date())
    provider = adapter(deal, connection(deal, assets, client=client, clock=clock))
    per_letter = deal.price.second / LETTERS_PER_SECOND
    term = f"{name} {deal.model}"
    heard_once = RememberedHearing(provider, name=term, assets=assets)
    return _Ear(term, deal.price.call, per_letter, heard_once)


def _offer(deal: Deal, to: Connection, ear: _Ear | None) -> Offer:
    """Return what a job freezes in its row, so that a change of the settings does not touch it."""
    workflow = hashlib.sha256(to.workflow.encode()).hexdigest()[:16] if to.workflow else ""
    terms = {"resolution": to.resolution, "tier": to.tier, "voice": to.voice, "workflow": workflow}
    terms |= {"transcription": ear.term if ear else ""}
    return Offer(
        provider=deal.name,
        model=deal.model,
        cost_usd=deal.price.call + (ear.usd if ear else 0.0),
        endpoint=to.url,
        list_endpoint=to.list_url,
        terms={name: term for name, term in terms.items() if term},
    )


def _maker(
    deal: Deal,
    to: Connection,
    allow_private: bool,  # noqa: FBT001 -- for partial
    ear: _Ear | None,
    offer: Offer,
) -> Maker | TaskMaker:
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
    provider = adapter(deal, frozen)
    if deal.kind is JobKind.SPEECH:
        # Only what the job's price holds is asked for.
        is_paid = ear is not None and offer.terms.get("transcription") == ear.term
        return SpeechMaker(
            provider=provider, assets=to.assets, transcriber=ear.provider if ear and is_paid else None
        )
    return _MAKERS[deal.kind](provider, deal, to.assets, allow_private)


def adapter(deal: Deal, to: Connection) -> Any:
    """Make who speaks with the provider of *deal*. Raises `ProviderMisset` for a setting that cannot work."""
    try:
        return deal.service.adapters[deal.kind](to)
    except ValueError as error:
        at_fault = "WORKFLOW" if isinstance(error, WorkflowUnusable) else "KEY"
        raise ProviderMisset(f"{variable_of(deal.name)}_{at_fault}: {error}") from error


def require_reachable(deal: Deal) -> None:
    """Return if no setting keeps the provider of *deal* from being spoken with. Raises `ProviderMisset`."""
    nowhere = httpx.AsyncClient(transport=httpx.AsyncBaseTransport())  # opens nothing, so is not closed
    adapter(deal, connection(deal, open_assets("memory://"), client=nowhere, clock=SystemClock()))


def _list_beside(url: str, list_url: str) -> str:
    """Return where the list is of a service that is reached at *url*: its key goes to no other host."""
    return (
        str(httpx.URL(url).copy_with(raw_path=httpx.URL(list_url).raw_path)) if url and list_url else list_url
    )


def connection(deal: Deal, assets: AssetStore, *, client: httpx.AsyncClient, clock: Clock) -> Connection:
    """Return the way to the provider of *deal*. Raises `ProviderMisset` for a file that cannot be read."""
    entry, account = deal.service.entry, deal.account
    return Connection(
        entry=entry,
        client=client,
        key=account.key,
        clock=clock,
        assets=assets,
        url=account.url or entry.url,
        list_url=account.list_url or _list_beside(account.url, entry.list_url),
        model=deal.model,
        resolution=deal.resolution,
        voice=account.voice,
        workflow=_workflow(deal),
        tier=deal.tier,
        cost_usd=deal.price.call,
    )


def _workflow(deal: Deal) -> str:
    """Return the text of the account's own workflow, empty where it has none."""
    if not deal.account.workflow:
        return ""
    try:
        return Path(deal.account.workflow).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise ProviderMisset(f"{variable_of(deal.name)}_WORKFLOW: cannot be read: {error}") from error


def _callback(settings: Settings, deal: Deal) -> Callback | None:
    """Return what names the address for each call, None where webhooks are off or cannot be proven."""
    sender = deal.service.entry.capabilities.sender
    proven = sender != "standard" or settings.standard_webhook_secret.get_secret_value()
    if not (settings.webhook_url and sender and proven):
        return None
    return partial(callback_url, settings.webhook_url, settings.webhook_secret, sender)


def _clips(provider: Any, deal: Deal, assets: AssetStore, allow_private: bool) -> TaskMaker:  # noqa: FBT001 -- all makers alike
    lines = re.fullmatch(r"(\d+)[pP]", "2160p" if deal.resolution.lower() == "4k" else deal.resolution)
    short_side = int(lines[1]) if lines else None
    return ClipMaker(provider=provider, assets=assets, allow_private=allow_private, short_side=short_side)


def _pictures(provider: Any, _deal: Deal, assets: AssetStore, allow_private: bool) -> Maker | TaskMaker:  # noqa: FBT001 -- all makers alike
    fetch = fetch_from(assets, allow_private=allow_private)
    if isinstance(provider, TaskProvider):
        return PictureTaskMaker(provider=provider, assets=assets, fetch=fetch, allow_private=allow_private)
    return PictureMaker(provider=provider, assets=assets, fetch=fetch)


_Hire = Callable[[Any, Deal, AssetStore, bool], Maker | TaskMaker]
_MAKERS: Final[Mapping[Kind, _Hire]] = MappingProxyType({JobKind.CLIP: _clips, JobKind.IMAGE: _pictures})
