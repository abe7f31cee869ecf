"""Everything that leaves the process, made from the settings: the part that tests replace."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

import httpx
import structlog

from models.ports import Admission, AssetStore, Clock, CreditLedger
from models.work import JobKind, Offer
from sceneloom import admission
from sceneloom.assets.store import open_assets
from sceneloom.choices import notices, require_usable, why_unknown
from sceneloom.clock import SystemClock
from sceneloom.credits.http import HttpLedger
from sceneloom.deals import ProviderMisset
from sceneloom.paid import paid_suppliers
from sceneloom.providers import voices
from sceneloom.providers.motion import Motion
from sceneloom.providers.speech import OfflineSpeech
from sceneloom.providers.storyboard import Storyboard
from sceneloom.providers.studio import Studio
from sceneloom.providers.wire import open_client
from sceneloom.rendering.cache import FolderCache
from sceneloom.rendering.renderer import Renderer
from sceneloom.settings import Settings
from sceneloom.tracing.environment import from_environment
from sceneloom.tracing.traces import Traces, Untraced
from sceneloom.workshop.makers import ClipMaker, FilmMaker, SpeechMaker, fetch_from
from sceneloom.workshop.pictures import PictureMaker
from sceneloom.workshop.workshop import Supplier, Workshop

_log = structlog.get_logger(__name__)

Closer = Callable[[], Awaitable[None]]
"""Closes something that was opened for the worker."""

OFFLINE_POLLS: Final = (0.5,) * 240
"""A local clip is looked at twice a second."""


OFFLINE: Final[Mapping[JobKind, Offer]] = MappingProxyType(
    {
        JobKind.IMAGE: Offer(provider="storyboard", model="storyboard-1"),
        JobKind.SPEECH: Offer(provider="offline", model="voices-1"),
        JobKind.CLIP: Offer(provider="motion", model="motion-1"),
        JobKind.RENDER: Offer(provider="ffmpeg", model="film-1"),
    }
)
"""Who needs no network and no keys."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outside:
    """Everything that leaves the process; tests pass their own."""

    clock: Clock
    admission: Admission
    workshop: Workshop
    ledger: CreditLedger | None = None
    """Another company's ledger of credits, where the settings name one."""
    closers: Sequence[Closer] = ()
    traces: Traces = field(default_factory=Untraced)


def offline_suppliers(
    settings: Settings, assets: AssetStore, *, drawing: Studio, speaking: Studio, motion: Motion
) -> list[Supplier]:
    """Return the suppliers that need no network and no keys: all of them local, so a call may be repeated."""
    fetch = fetch_from(assets, allow_private=settings.allow_private_downloads)
    renderer = Renderer(cache=FolderCache(settings.data_folder / "segments"))
    return [
        Supplier(
            kind=JobKind.IMAGE,
            offer=OFFLINE[JobKind.IMAGE],
            maker=PictureMaker(provider=Storyboard(drawing), assets=assets, fetch=fetch),
            repeatable=True,
            parallel=settings.parallel_images,
        ),
        Supplier(
            kind=JobKind.SPEECH,
            offer=OFFLINE[JobKind.SPEECH],
            maker=SpeechMaker(provider=OfflineSpeech(speaking), assets=assets),
            repeatable=True,
            parallel=settings.parallel_speech,
        ),
        Supplier(
            kind=JobKind.CLIP,
            offer=OFFLINE[JobKind.CLIP],
            maker=ClipMaker(provider=motion, assets=assets),
            repeatable=True,
            parallel=settings.parallel_clips,
            poll_schedule=OFFLINE_POLLS,
        ),
        Supplier(
            kind=JobKind.RENDER,
            offer=OFFLINE[JobKind.RENDER],
            maker=FilmMaker(
                renderer=renderer, assets=assets, workspace=settings.data_folder.resolve() / "work"
            ),
            repeatable=True,
            parallel=settings.parallel_renders,
        ),
    ]


def connect(settings: Settings) -> Outside:
    """Make the real adapters that *settings* describe. Raises `ProviderMisset` for one that cannot work."""
    clock = SystemClock()
    assets = open_assets(settings.asset_location, public_url=settings.assets_public_url or None)
    drawing = Studio(children=settings.parallel_images)
    speaking = Studio(children=settings.parallel_speech)
    client = open_client()
    fetch = fetch_from(assets, allow_private=settings.allow_private_downloads)
    motion = Motion(pictures=Storyboard(drawing), fetch=fetch, parallel=settings.parallel_clips)
    suppliers = [
        *offline_suppliers(settings, assets, drawing=drawing, speaking=speaking, motion=motion),
        *paid_suppliers(settings, assets, client=client, clock=clock),
    ]
    workshop = Workshop(
        suppliers=suppliers,
        usual=usual_providers(settings),
        fallbacks=fallback_providers(settings),
        assets=assets,
    )
    return Outside(
        clock=clock,
        admission=create_admission(workshop, assets, settings, clock),
        workshop=workshop,
        ledger=credit_ledger(settings, client, clock),
        closers=(motion.aclose, drawing.aclose, speaking.aclose, client.aclose),
    )


def connect_worker(settings: Settings) -> Outside:
    """Connect as `connect` does, with traces where OTEL_* asks for them.

    Raises `ProviderMisset` too where a provider that is chosen is not there, or cannot work on this machine.
    """
    today = SystemClock().now().date()
    require_usable(settings, today)
    outside = connect(settings)
    for role, names in chosen_providers(settings).items():
        for kind, name in names:
            known = outside.workshop.names(kind)
            if name not in known:
                why = why_unknown(settings, name, kind, today, there=known)
                raise ProviderMisset(f"SCENELOOM_{kind.upper()}_{role}: {why}")
    traces = from_environment()
    return replace(outside, traces=traces, closers=(*outside.closers, traces.close))


def log_notices(settings: Settings) -> None:
    """Log what works in these settings, and yet should be known."""
    for notice in notices(settings, SystemClock().now().date()):
        _log.warning(notice.event, provider=notice.provider, told=notice.told)


def credit_ledger(settings: Settings, client: httpx.AsyncClient, clock: Clock) -> CreditLedger | None:
    """Return the ledger that another company keeps, if it does."""
    if settings.credits != "http":
        return None
    return HttpLedger(client, base_url=settings.credits_url, key=settings.credits_key, clock=clock)


def without_store(settings: Settings) -> Outside:
    """Make what `connect` makes, but with no asset store and no ledger: to ask it, not to work with it.

    Raises `ValueError` for a half-set provider.
    """
    away = {"assets": "memory://", "assets_public_url": "", "credits": "off"}
    return connect(settings.model_copy(update=away))


def create_admission(
    workshop: Workshop, assets: AssetStore, settings: Settings, clock: Clock
) -> admission.Admission:
    """Make the check of requests against the providers, the voices and what is already in *assets*."""

    def why(name: str, kind: str) -> str:
        made = JobKind(kind)
        return why_unknown(settings, name, made, clock.now().date(), there=workshop.names(made))

    return admission.Admission(
        voices=voices,
        known_providers={kind: workshop.names(kind) for kind in JobKind},
        is_stored=assets.owns,
        offers=workshop,
        misfits=workshop.misfits,
        why_unknown=why,
        is_local=workshop.is_local,
    )


def usual_providers(settings: Settings) -> dict[JobKind, str]:
    """Return who makes each kind of asset where the request does not say."""
    return {
        JobKind.IMAGE: settings.image_provider,
        JobKind.SPEECH: settings.speech_provider,
        JobKind.CLIP: settings.clip_provider,
        JobKind.RENDER: "ffmpeg",
    }


def chosen_providers(settings: Settings) -> dict[str, list[tuple[JobKind, str]]]:
    """Return every name in the settings that chooses who makes something, by the end of its variable."""
    fallbacks = fallback_providers(settings)
    return {
        "PROVIDER": list(usual_providers(settings).items()),
        "FALLBACK": [(kind, name) for kind, names in fallbacks.items() for name in names],
    }


def fallback_providers(settings: Settings) -> dict[JobKind, tuple[str, ...]]:
    """Return who makes each kind of asset, one after the other, where the one that was asked is away."""
    chosen = {
        JobKind.IMAGE: settings.image_fallback,
        JobKind.SPEECH: settings.speech_fallback,
        JobKind.CLIP: settings.clip_fallback,
    }
    lines = {kind: names.replace(",", " ").split() for kind, names in chosen.items()}
    return {kind: tuple(dict.fromkeys(names)) for kind, names in lines.items() if names}
