"""What the models of the queue family take, as far as it shapes their output."""

import re
from typing import Any, Final

from sceneloom.testing.fake_provider.dialect import text_in
from sceneloom.testing.fake_provider.outputs import SHORT_SIDES, frame_of
from sceneloom.testing.fake_provider.tasks import BadOrder, Kind, Order

_RATIO: Final = re.compile(r"[1-9]\d?:[1-9]\d?")
_PICTURE_SIZES: Final = {
    "square": (512, 512),
    "square_hd": (1024, 1024),
    "portrait_4_3": (768, 1024),
    "portrait_16_9": (576, 1024),
    "landscape_4_3": (1024, 768),
    "landscape_16_9": (1024, 576),
}


def order_of(model: str, body: dict[str, Any], *, webhook: str | None, reference: str | None) -> Order:
    """Return what *body* orders of *model*. Raises `BadOrder`."""
    kind = _kind_of(model)
    prompt = text_in(body, "prompt") or text_in(body, "text")
    if not prompt:
        raise BadOrder("Field required", parameter="prompt")
    width, height = _picture(body) if kind == "image" else _frame(body) if kind == "video" else (0, 0)
    return Order(
        model=model,
        prompt=prompt,
        kind=kind,
        body=body,
        reference=reference,
        callback_url=webhook,
        width=width,
        height=height,
        seconds=max(1.0, 0.4 * len(prompt.split())) if kind == "audio" else _seconds(body),
        media_format={"video": "mp4", "image": "png", "audio": "mp3"}[kind],
        sound=body.get("generate_audio") is True,
    )


def _kind_of(model: str) -> Kind:
    if "video" in model:
        return "video"
    if re.search(r"tts|speech|audio", model):
        return "audio"
    return "image" if re.search(r"image|flux|sdxl|diffusion", model) else "video"


def _frame(body: dict[str, Any]) -> tuple[int, int]:
    resolution, ratio = str(body.get("resolution", "720p")).lower(), body.get("aspect_ratio", "16:9")
    if resolution not in SHORT_SIDES:
        raise BadOrder("Input should be '480p', '720p', '1080p' or '4k'", parameter="resolution")
    if ratio == "auto":
        ratio = "16:9"
    if not isinstance(ratio, str) or not _RATIO.fullmatch(ratio):
        raise BadOrder("Input should be a ratio such as '16:9'", parameter="aspect_ratio")
    return frame_of(resolution, ratio)


def _picture(body: dict[str, Any]) -> tuple[int, int]:
    size = body.get("image_size", "landscape_4_3")
    if isinstance(size, dict):
        sides = size.get("width"), size.get("height")
        if all(isinstance(side, int) and 16 <= side <= 8192 for side in sides):
            return sides  # type: ignore[return-value]  # checked in the line above
    if isinstance(size, str) and size in _PICTURE_SIZES:
        return _PICTURE_SIZES[size]
    raise BadOrder("Input should be a known image size, or width and height", parameter="image_size")


def _seconds(body: dict[str, Any]) -> float:
    duration = body.get("duration", 5)
    if duration == "auto":
        return 5.0
    try:
        seconds = float(str(duration).removesuffix("s"))
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 60:
        raise BadOrder("Input should be a duration in seconds", parameter="duration")
    return seconds
