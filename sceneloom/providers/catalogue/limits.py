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
    """The request that the model would take, where a length or a ratio stands in the way."""


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
    near = _nearest(model, clip)
    ratios = (model.ratios_with_picture if has_picture else ()) or model.ratios
    if ratios and clip.aspect_ratio not in ratios:
        text = f"is {clip.aspect_ratio}; {model.name} makes {either(ratios)}"
        yield Misfit("aspect_ratio", "unsupported", text, near)
    lengths = (model.seconds_with_picture if has_picture else ()) or model.seconds
    if lengths and clip.duration_seconds not in lengths:
        text = f"is {clip.duration_seconds:g}; {model.name} makes {spans(lengths)} seconds"
        yield Misfit("duration_seconds", "unsupported", text, near)


def _nearest(model: Model, clip: ClipRequest) -> ClipRequest:
    """Return *clip* in the nearest ratio and length that the model makes, so that it has a price."""
    has_picture = clip.first_frame_url is not None
    ratios = (model.ratios_with_picture if has_picture else ()) or model.ratios or (clip.aspect_ratio,)
    lengths = (model.seconds_with_picture if has_picture else ()) or model.seconds or (clip.duration_seconds,)
    ratio = min(ratios, key=lambda each: abs(math.log(_wide(each) / _wide(clip.aspect_ratio))))
    # Of two lengths that are as near, the longer one holds all that was asked for.
    seconds = min(lengths, key=lambda each: (abs(each - clip.duration_seconds), -each))
    return clip.model_copy(update={"aspect_ratio": ratio, "duration_seconds": float(seconds)})


def _wide(ratio: str) -> float:
    """Return width by height; a word such as `adaptive` is near to nothing."""
    width, _, height = ratio.partition(":")
    return float(width) / float(height) if height else 1e9


def _too_long(model: Model, field: str, text: str) -> Iterator[Misfit]:
    most = model.prompt_characters
    if most is not None and len(text) > most:
        yield Misfit(field, "too_long", f"has {len(text)} characters; {model.name} takes {most}: shorten it")
