"""Every service there is: our own, and those of other packages, by entry points `sceneloom.providers`."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from models.work import JobKind
from sceneloom.providers.ark import PLAIN, TIERS, Ark
from sceneloom.providers.automatic1111 import Automatic1111
from sceneloom.providers.azure import Azure
from sceneloom.providers.catalogue import Aid, Entry, Kind, entries
from sceneloom.providers.comfyui import ComfyUI
from sceneloom.providers.connection import Connection
from sceneloom.providers.elevenlabs import ElevenLabs
from sceneloom.providers.fal import Fal
from sceneloom.providers.google import Google
from sceneloom.providers.hosted_pictures import FalPictures, ReplicatePictures
from sceneloom.providers.kling import Kling
from sceneloom.providers.luma import Luma
from sceneloom.providers.minimax import MiniMax
from sceneloom.providers.openai import OpenAIImages, OpenAISpeech
from sceneloom.providers.replicate import Replicate
from sceneloom.providers.runway import Runway
from sceneloom.providers.stability import Stability
from sceneloom.providers.stock import Pexels, Pixabay
from sceneloom.providers.transcription import Scribe, Whisper
from sceneloom.providers.whisper import LocalWhisper, why_absent, why_unusable

GROUP: Final = "sceneloom.providers"
"""The group of entry points; each is a `Service`."""

Adapter = Callable[[Connection], Any]
"""Makes a VideoProvider, or one of the providers of pictures, speech or words, by its kind."""


def _usable(_model: str) -> None:
    """Most work elsewhere."""


@dataclass(frozen=True, slots=True)
class Service:
    """A provider: what the catalogue says of it, and who speaks with it about each kind of asset."""

    entry: Entry
    adapters: Mapping[Kind, Adapter]
    why_absent: Callable[[str], str | None] = _usable
    """Says why a model is not on this machine, in a second or two; None where it is, or works elsewhere."""
    why_unusable: Callable[[str], str | None] = _usable
    """The same by loading it, which may take a minute."""


class BadService(ValueError):
    """Another package's provider cannot be used."""


def _ark(to: Connection) -> Ark:
    return Ark(
        client=to.client,
        key=to.key,
        clock=to.clock,
        assets=to.assets,
        cost_usd=to.cost_usd,
        base_url=to.url,
        resolution=to.resolution,
        callback=to.callback,
        options={**PLAIN, **TIERS[to.tier or "default"]},
        patience=to.patience,
    )


def _openai_images(to: Connection) -> OpenAIImages:
    more = {"patience": to.patience} if to.patience else {}
    return OpenAIImages(
        client=to.client,
        key=to.key,
        clock=to.clock,
        cost_usd=to.cost_usd,
        model=to.model,
        quality=to.resolution,
        base_url=to.url,
        **more,
    )


def _openai_speech(to: Connection) -> OpenAISpeech:
    more: dict[str, Any] = {"voice": to.voice} if to.voice else {}
    more |= {"patience": to.patience} if to.patience else {}
    return OpenAISpeech(
        client=to.client,
        key=to.key,
        clock=to.clock,
        cost_usd=to.cost_usd,
        model=to.model,
        base_url=to.url,
        **more,
    )


_ADAPTERS: Final[Mapping[str, Mapping[Kind, Adapter]]] = {
    "ark": {JobKind.CLIP: _ark},
    "automatic1111": {JobKind.IMAGE: Automatic1111},
    "azure": {JobKind.SPEECH: Azure},
    "comfyui": {JobKind.IMAGE: ComfyUI},
    "elevenlabs": {JobKind.SPEECH: ElevenLabs, Aid.TRANSCRIPTION: Scribe},
    "fal": {JobKind.CLIP: Fal.reached_by, JobKind.IMAGE: FalPictures.reached_by},
    "google": {JobKind.CLIP: Google},
    "kling": {JobKind.CLIP: Kling},
    "luma": {JobKind.CLIP: Luma},
    "minimax": {JobKind.CLIP: MiniMax},
    "openai": {
        JobKind.IMAGE: _openai_images,
        JobKind.SPEECH: _openai_speech,
        Aid.TRANSCRIPTION: Whisper,
    },
    "pexels": {JobKind.CLIP: Pexels},
    "pixabay": {JobKind.CLIP: Pixabay},
    "replicate": {JobKind.CLIP: Replicate, JobKind.IMAGE: ReplicatePictures},
    "runway": {JobKind.CLIP: Runway},
    "stability": {JobKind.IMAGE: Stability},
    "whisper": {Aid.TRANSCRIPTION: LocalWhisper},
}
_LOCAL: Final = {"whisper": (why_absent, why_unusable)}


@functools.cache
def services() -> Mapping[str, Service]:
    """Return all services by name. Raises `BadService` where a package offers something else, or nothing."""
    own = {
        name: Service(entries()[name], adapters, *_LOCAL.get(name, ()))
        for name, adapters in _ADAPTERS.items()
    }
    return own | dict(_others(own))


def _others(own: Mapping[str, Service]) -> Mapping[str, Service]:
    found: dict[str, Service] = {}
    for point in entry_points(group=GROUP):
        service = _loaded(point)
        name = service.entry.name
        if name in own or name in found:
            whose = "one of ours" if name in own else "another package's"
            raise BadService(f"{_named(point)} takes the name {name}, which is {whose}")
        found[name] = service
    return found


def _loaded(point: EntryPoint) -> Service:
    try:
        service = point.load()
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise BadService(f"{_named(point)} cannot be loaded: {why}") from error
    if not isinstance(service, Service):
        raise BadService(f"{_named(point)} is no Service, but of the type {type(service).__name__}")
    return service


def _named(point: EntryPoint) -> str:
    package = point.dist.name if point.dist else "that nobody names"
    return f"the entry point {point.name} = {point.value} ({GROUP}) of the package {package}"
