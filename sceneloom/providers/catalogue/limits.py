"""Tells what of a request a model cannot do, before any money is spent."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from models.faults import either
from models.work import ClipRequest, ImageRequest, JobRequest, RenderRequest, SpeechRequest
from sceneloom.providers.catalogue.entries import Model
from sceneloom.providers.catalogue.words import spans


class Misfit(NamedTuple):
    """One thing that the model does not do: the field of the request, the rule, and words for it."""

    field: str
    rule: str
    text: str
    nearest: JobRequest | None = None
    """The request that the model would take, where only a length stands in the way."""


def misfits(model: Model, request: JobRequest) -> Iterator[Misfit]:
    """Yield what of *request* the *model* cannot do."""
    match request:
        case ClipRequest():
            yield from _clip(model, request)
        case ImageRequest():
            if request.picture_url is None:
                yield from _too_long(model, "prompt", request.prompt)
        case SpeechRequest():
            yield from _too_long(model, "narration", request.text)
        case RenderRequest():
            return


def _clip(model: Model, clip: ClipRequest) -> Iterator[Misfit]:
    yield from _too_long(model, "prompt", clip.prompt)
    has_picture = clip.first_frame_url is not None
    if has_picture and model.first_frame == "none":
        yield Misfit("picture", "unsupported", f"{model.name} makes clips from words only; leave it out")
    if not has_picture and model.first_frame == "required":
        yield Misfit("picture", "required", f"{model.name} makes clips only from a first frame; give one")
    ratios = (model.ratios_with_picture if has_picture else ()) or model.ratios
    if ratios and clip.aspect_ratio not in ratios:
        text = f"is {clip.aspect_ratio}; {model.name} makes {either(ratios)}"
        near = min(ratios, key=lambda ratio: abs(math.log(_wide(ratio) / _wide(clip.aspect_ratio))))
        yield Misfit("aspect_ratio", "unsupported", text, clip.model_copy(update={"aspect_ratio": near}))
    lengths = (model.seconds_with_picture if has_picture else ()) or model.seconds
    if lengths and clip.duration_seconds not in lengths:
        # Of two that are as near, the longer one holds all that was asked for.
        nearest = min(lengths, key=lambda seconds: (abs(seconds - clip.duration_seconds), -seconds))
        text = f"is {clip.duration_seconds:g}; {model.name} makes {spans(lengths)} seconds"
        fitting = clip.model_copy(update={"duration_seconds": float(nearest)})
        yield Misfit("duration_seconds", "unsupported", text, fitting)


def _wide(ratio: str) -> float:
    """Return width by height; a word such as `adaptive` is near to nothing."""
    width, _, height = ratio.partition(":")
    return float(width) / float(height) if height else 1e9


def _too_long(model: Model, field: str, text: str) -> Iterator[Misfit]:
    most = model.prompt_characters
    if most is not None and len(text) > most:
        yield Misfit(field, "too_long", f"has {len(text)} characters; {model.name} takes {most}: shorten it")
