"""Pictures and speech by OpenAI, or by anything that speaks its API: one blocking call each.

Wire shapes: platform.openai.com/docs/api-reference/images and /audio; codes: /docs/guides/error-codes.
"""

import asyncio
import math
from typing import Final

import httpx
from pydantic import SecretStr

from models.errors import ErrorCode
from models.ports import Clock, Speech
from models.shapes import Size
from sceneloom.providers import orders
from sceneloom.providers.media import decoded, fitted, speech_in, within
from sceneloom.providers.verdicts import Answer, Complaint, Sign, Verdicts, text_of
from sceneloom.providers.wire import Patience, Wire

BASE_URL: Final = "https://api.openai.com/v1"
_PATIENCE: Final = Patience(read=180.0, total=300.0)
_STEP: Final = 16
_LONGEST_SIDE: Final = 3840
_WIDEST: Final = 3
_PROMPT_LENGTH: Final = 32_000
_SPEECH_LENGTH: Final = 4096


def _complaint(answer: Answer) -> Complaint:
    error = (answer.json() or {}).get("error")
    if not isinstance(error, dict):
        return Complaint(message=text_of(error))
    names = f"{text_of(error.get('type'))} {text_of(error.get('code'))}".strip()
    return Complaint(names, text_of(error.get("message")))


VERDICTS: Final = Verdicts(
    read=_complaint,
    signs=(
        Sign("moderation_blocked|content_policy_violation", ErrorCode.MODERATION_REJECTED),
        Sign("failed_to_download_image|invalid_image_url", ErrorCode.ASSET_FETCH_FAILED),
        Sign(
            "insufficient_quota|credit_balance_exhausted|(spend|usage)_limit_exceeded|billing_hard_limit",
            ErrorCode.PROVIDER_QUOTA_EXHAUSTED,
        ),
        Sign("rate_limit_exceeded", ErrorCode.PROVIDER_RATE_LIMITED),
        Sign("model_not_found|model_deprecated", ErrorCode.PROVIDER_MODEL_RETIRED),
        Sign("invalid_api_key", ErrorCode.PROVIDER_AUTH),
    ),
    # "The engine is currently overloaded, please try again later": turned away at the door.
    untouched=((503, r"\b(overloaded|slow_down|engine_overloaded)"),),
)


class OpenAIImages:
    """A TextToImageProvider for gpt-image-2 and later, which take sizes in steps of 16 pixels."""

    def __init__(
        self,
        *,
        client: httpx.AsyncClient,
        key: SecretStr,
        clock: Clock,
        cost_usd: float,
        model: str = "gpt-image-2",
        quality: str = "medium",
        base_url: str = BASE_URL,
        patience: Patience = _PATIENCE,
    ) -> None:
        self._wire = Wire(
            client, base_url=base_url, key=key, verdicts=VERDICTS, clock=clock, patience=patience
        )
        self._cost_usd = cost_usd
        self._model = model
        self._quality = quality

    async def generate(self, prompt: str, size: Size, *, seed: int = 0) -> bytes:  # noqa: ARG002 -- OpenAI takes no seed
        """Return a PNG of exactly *size*; *seed* has no effect.

        The next larger size that OpenAI makes is ordered (1088x1920 for 1080x1920), and cut and scaled around
        its middle. Raises `ProviderFailure` or `OutcomeUnknown`.
        """
        within(prompt, _PROMPT_LENGTH, by="OpenAI")
        asked = orderable(size)
        body = {
            "model": self._model,
            "prompt": prompt,
            "n": 1,
            "size": f"{asked.width}x{asked.height}",
            "quality": self._quality,
            "output_format": "png",
        }
        answer = await self._wire.buy("/images/generations", body)
        return await asyncio.to_thread(fitted, self._picture_in(answer), size)

    def normalize_error(self, error: Exception) -> ErrorCode:
        """Name *error* in our words."""
        return orders.error_code(error)

    def cost_per_call(self) -> float:
        """Return the configured price of one picture, in US dollars."""
        return self._cost_usd

    def _picture_in(self, answer: Answer) -> bytes:
        body = answer.json()
        if body is None:
            raise self._wire.unclear(answer, "JSON")
        pictures = body.get("data")
        first = pictures[0] if isinstance(pictures, list) and pictures else None
        encoded = first.get("b64_json") if isinstance(first, dict) else None
        return decoded(encoded, of="picture")


class OpenAISpeech:
    """A TextToSpeechProvider; OpenAI tells no times of words."""

    def __init__(
        self,
        *,
        client: httpx.AsyncClient,
        key: SecretStr,
        clock: Clock,
        cost_usd: float,
        model: str = "gpt-4o-mini-tts",
        voice: str = "alloy",
        base_url: str = BASE_URL,
        patience: Patience = _PATIENCE,
    ) -> None:
        self._wire = Wire(
            client, base_url=base_url, key=key, verdicts=VERDICTS, clock=clock, patience=patience
        )
        self._cost_usd = cost_usd
        self._model = model
        self._voice = voice

    async def speak(self, text: str, *, language: str, voice: str | None = None) -> Speech:  # noqa: ARG002 -- OpenAI hears the language in the text
        """Return *text* spoken as a WAV file, without words. Raises `ProviderFailure` or `OutcomeUnknown`."""
        within(text, _SPEECH_LENGTH, by="OpenAI")
        body = {
            "model": self._model,
            "input": text,
            "voice": voice or self._voice,
            "response_format": "wav",
        }
        answer = await self._wire.buy("/audio/speech", body)
        return await asyncio.to_thread(speech_in, answer.content)

    def normalize_error(self, error: Exception) -> ErrorCode:
        """Name *error* in our words."""
        return orders.error_code(error)

    def cost_per_call(self) -> float:
        """Return the configured price of one narration, in US dollars."""
        return self._cost_usd


def orderable(size: Size) -> Size:
    """Return the smallest size that OpenAI makes and that covers *size*; one too large is scaled down."""
    scale = min(1.0, _LONGEST_SIDE / max(size))
    width, height = (min(_LONGEST_SIDE, math.ceil(side * scale / _STEP) * _STEP) for side in size)
    least = math.ceil(max(width, height) / _WIDEST / _STEP) * _STEP
    return Size(max(width, least), max(height, least))
