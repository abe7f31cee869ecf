"""The suppliers that cost money: there when their keys are set, and never called twice by themselves."""

from collections.abc import Iterator
from functools import partial

import httpx

from models.policy import RARE_POLLS
from models.ports import AssetStore, Clock
from models.work import JobKind, Offer
from sceneloom.callbacks import callback_url
from sceneloom.providers.ark import PLAIN, TIERS, Ark
from sceneloom.providers.fal import Fal
from sceneloom.providers.openai import OpenAIImages, OpenAISpeech
from sceneloom.providers.orders import Callback
from sceneloom.settings import Settings
from sceneloom.workshop.makers import ClipMaker, PictureMaker, SpeechMaker, fetch_from
from sceneloom.workshop.workshop import Supplier


def paid_suppliers(
    settings: Settings, assets: AssetStore, *, client: httpx.AsyncClient, clock: Clock
) -> Iterator[Supplier]:
    """Return the suppliers whose keys are set. Raises `ValueError`, naming what a half-set one lacks."""
    if settings.ark_key.get_secret_value():
        yield _ark(settings, assets, client, clock)
    if settings.fal_key.get_secret_value():
        yield _fal(settings, assets, client, clock)
    if settings.openai_key.get_secret_value():
        yield from _openai(settings, assets, client, clock)


def _ark(settings: Settings, assets: AssetStore, client: httpx.AsyncClient, clock: Clock) -> Supplier:
    callback = _callback(settings, "ark")
    tier = TIERS[settings.ark_service_tier]
    ark = Ark(
        client=client,
        key=settings.ark_key,
        clock=clock,
        assets=assets,
        cost_usd=0.0,
        base_url=settings.ark_url,
        options={**PLAIN, **tier},
        callback=callback,
    )
    return Supplier(
        kind=JobKind.CLIP,
        offer=Offer(provider="ark", model=settings.ark_model),
        maker=ClipMaker(provider=ark, assets=assets, allow_private=settings.allow_private_downloads),
        repeatable=False,
        parallel=settings.parallel_paid,
        per_minute=settings.paid_per_minute,
        poll_schedule=RARE_POLLS if callback else ark.capabilities.poll_schedule,
        deadline_seconds=tier.get("execution_expires_after", 0.0),
        usd_per_second=settings.ark_usd_per_second,
    )


def _fal(settings: Settings, assets: AssetStore, client: httpx.AsyncClient, clock: Clock) -> Supplier:
    if not settings.fal_model:
        raise ValueError("SCENELOOM_FAL_MODEL: name the model at fal, as in OWNER/APP/text-to-video")
    callback = _callback(settings, "fal")
    fal = Fal(
        client=client,
        key=settings.fal_key,
        clock=clock,
        assets=assets,
        cost_usd=0.0,
        base_url=settings.fal_url,
        callback=callback,
    )
    return Supplier(
        kind=JobKind.CLIP,
        offer=Offer(provider="fal", model=settings.fal_model),
        maker=ClipMaker(provider=fal, assets=assets, allow_private=settings.allow_private_downloads),
        repeatable=False,
        parallel=settings.parallel_paid,
        per_minute=settings.paid_per_minute,
        poll_schedule=RARE_POLLS if callback else fal.capabilities.poll_schedule,
        usd_per_second=settings.fal_usd_per_second,
    )


def _callback(settings: Settings, provider: str) -> Callback | None:
    """Return what names the address for each call at *provider*, None where webhooks are off."""
    if not settings.webhook_url:
        return None
    return partial(callback_url, settings.webhook_url, settings.webhook_secret, provider)


def _openai(
    settings: Settings, assets: AssetStore, client: httpx.AsyncClient, clock: Clock
) -> Iterator[Supplier]:
    images = OpenAIImages(
        client=client,
        key=settings.openai_key,
        clock=clock,
        cost_usd=settings.openai_image_usd,
        model=settings.openai_image_model,
        base_url=settings.openai_url,
    )
    fetch = fetch_from(assets, allow_private=settings.allow_private_downloads)
    yield Supplier(
        kind=JobKind.IMAGE,
        offer=Offer(provider="openai", model=settings.openai_image_model, cost_usd=settings.openai_image_usd),
        maker=PictureMaker(provider=images, assets=assets, fetch=fetch),
        repeatable=False,
        parallel=settings.parallel_paid,
        per_minute=settings.paid_per_minute,
    )
    speech = OpenAISpeech(
        client=client,
        key=settings.openai_key,
        clock=clock,
        cost_usd=settings.openai_speech_usd,
        model=settings.openai_speech_model,
        base_url=settings.openai_url,
    )
    yield Supplier(
        kind=JobKind.SPEECH,
        offer=Offer(
            provider="openai", model=settings.openai_speech_model, cost_usd=settings.openai_speech_usd
        ),
        maker=SpeechMaker(provider=speech, assets=assets),
        repeatable=False,
        parallel=settings.parallel_paid,
        per_minute=settings.paid_per_minute,
    )
