"""Pictures by Stability: one blocking call. Wire shapes: platform.stability.ai/docs/api-reference, v2beta."""

import asyncio
from typing import Final

from models.errors import ErrorCode, ProviderFailure
from models.shapes import Size
from sceneloom.providers import orders
from sceneloom.providers.connection import Connection
from sceneloom.providers.media import fitted, within
from sceneloom.providers.verdicts import Answer, Complaint, Sign, Verdicts, text_of
from sceneloom.providers.wire import Patience

_PATIENCE: Final = Patience(read=180.0, total=300.0)
_LENGTH: Final = 10_000
_LARGEST_SEED: Final = 4_294_967_294
_RATIOS: Final = ("21:9", "16:9", "3:2", "5:4", "1:1", "4:5", "2:3", "9:16", "9:21")


def _complaint(answer: Answer) -> Complaint:
    body = answer.json() or {}
    errors = body.get("errors")
    names = f"{answer.status} {text_of(body.get('name'))}"
    return Complaint(names, "; ".join(map(text_of, errors if isinstance(errors, list) else [])))


VERDICTS: Final = Verdicts(
    read=_complaint,
    signs=(
        Sign("^403 |content_moderation|content_filter", ErrorCode.MODERATION_REJECTED),
        Sign("payment_required|insufficient", ErrorCode.PROVIDER_QUOTA_EXHAUSTED),
        Sign("unauthorized", ErrorCode.PROVIDER_AUTH),
        Sign("rate_limit", ErrorCode.PROVIDER_RATE_LIMITED),
    ),
)


class Stability:
    """A TextToImageProvider for Stable Image Core and Ultra, and for Stable Diffusion 3.5."""

    def __init__(self, connection: Connection) -> None:
        self._to = connection
        self._wire = connection.wire(VERDICTS, patience=_PATIENCE)

    async def generate(self, prompt: str, size: Size, *, seed: int = 0) -> bytes:
        """Return a PNG of exactly *size*, scaled from what Stability makes of the nearest ratio.

        Raises `ProviderFailure` or `OutcomeUnknown`.
        """
        within(prompt, _LENGTH, by="Stability")
        body = {
            "prompt": prompt,
            "aspect_ratio": nearest_ratio(size),
            "seed": seed % (_LARGEST_SEED + 1),
            "output_format": "png",
        }
        route = self._to.model
        if route.startswith("sd3"):
            body["model"], route = route, "sd3"
        path = f"/v2beta/stable-image/generate/{route}"
        answer = await self._wire.buy(path, body, form=True, headers={"Accept": "image/*"})
        if answer.headers.get("finish-reason") == "CONTENT_FILTERED":
            # It comes as a success, with the picture blurred.
            raise ProviderFailure(ErrorCode.MODERATION_REJECTED, "the picture was filtered")
        return await asyncio.to_thread(fitted, answer.content, size)

    def normalize_error(self, error: Exception) -> ErrorCode:
        """Name *error* in our words."""
        return orders.error_code(error)

    def cost_per_call(self) -> float:
        """Return the configured price of one picture, in US dollars."""
        return self._to.cost_usd


def nearest_ratio(size: Size) -> str:
    """Return the ratio that Stability makes which is nearest to that of *size*."""

    def distance(ratio: str) -> float:
        width, height = (int(side) for side in ratio.split(":"))
        return abs(width * size.height - height * size.width) / (height * size.height)

    return min(_RATIOS, key=distance)
