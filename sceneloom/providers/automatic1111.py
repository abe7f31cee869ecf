"""Pictures by AUTOMATIC1111's web UI on a machine of one's own: one blocking call, free.

Wire shapes: github.com/AUTOMATIC1111/stable-diffusion-webui/wiki/API, with `--api`.
"""

import asyncio
from typing import Any, Final

from models.errors import ErrorCode
from models.shapes import Size
from sceneloom.providers import orders
from sceneloom.providers.connection import Connection
from sceneloom.providers.media import decoded, fitted, of_area
from sceneloom.providers.verdicts import Answer, Complaint, Sign, Verdicts, text_of
from sceneloom.providers.wire import Patience

LOADED: Final = "loaded"
"""Stands for the checkpoint that the server has loaded, whichever it is."""

_PATIENCE: Final = Patience(read=900.0, total=900.0)  # one picture at a time: the others wait in the call
_SEEDS: Final = 2**32
_STEPS: Final = 30


def _complaint(answer: Answer) -> Complaint:
    body = answer.json() or {}
    told = (text_of(body.get(name)) for name in ("detail", "errors"))
    return Complaint(text_of(body.get("error")), " ".join(filter(None, told)))


VERDICTS: Final = Verdicts(
    read=_complaint,
    signs=(
        Sign("", ErrorCode.PROVIDER_MODEL_RETIRED, message="(?i)checkpoint.*not found"),
        Sign("OutOfMemory", ErrorCode.PROVIDER_UNAVAILABLE),
    ),
)


class Automatic1111:
    """A TextToImageProvider; the key, where there is one, is the USER:PASSWORD of `--api-auth`."""

    def __init__(self, connection: Connection) -> None:
        self._to = connection
        self._wire = connection.wire(VERDICTS, patience=_PATIENCE)

    async def generate(self, prompt: str, size: Size, *, seed: int = 0) -> bytes:
        """Return a PNG of exactly *size*, scaled from as many pixels as the account's resolution says.

        Raises `ProviderFailure` or `OutcomeUnknown`.
        """
        asked = of_area(size, int(self._to.resolution))
        body: dict[str, Any] = {
            "prompt": prompt,
            "width": asked.width,
            "height": asked.height,
            "seed": seed % _SEEDS,
            "steps": _STEPS,
            "batch_size": 1,
            "n_iter": 1,
            "send_images": True,
            "save_images": False,
        }
        if self._to.model != LOADED:
            body["override_settings"] = {"sd_model_checkpoint": self._to.model}
            # To load the other checkpoint again after each picture would take longer than the picture.
            body["override_settings_restore_afterwards"] = False
        answer = await self._wire.buy("/sdapi/v1/txt2img", body)
        made = answer.json()
        if made is None:
            raise self._wire.unclear(answer, "JSON")
        pictures = made.get("images")
        first = pictures[0] if isinstance(pictures, list) and pictures else None
        return await asyncio.to_thread(fitted, decoded(first, of="picture"), size)

    def normalize_error(self, error: Exception) -> ErrorCode:
        """Name *error* in our words."""
        return orders.error_code(error)

    def cost_per_call(self) -> float:
        """Return the configured price of one picture, in US dollars."""
        return self._to.cost_usd
