"""Speech by ElevenLabs, with the times of its words: one blocking call.

Wire shapes: elevenlabs.io/docs/api-reference/text-to-speech/convert-with-timestamps.
"""

import asyncio
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

from models.errors import ErrorCode
from models.ports import Speech, Word
from sceneloom.providers import orders
from sceneloom.providers.connection import Connection
from sceneloom.providers.media import decoded, speech_of, within
from sceneloom.providers.verdicts import Answer, Complaint, Sign, Verdicts, text_of
from sceneloom.providers.wire import Patience

_PATIENCE: Final = Patience(read=120.0, total=180.0)
_RATE: Final = 24_000
_LENGTH: Final = 5000
_WITHOUT_LANGUAGE: Final = frozenset({"eleven_multilingual_v2"})


def _complaint(answer: Answer) -> Complaint:
    detail = (answer.json() or {}).get("detail")
    if not isinstance(detail, dict):
        return Complaint(message=text_of(detail))
    return Complaint(text_of(detail.get("status") or detail.get("code")), text_of(detail.get("message")))


VERDICTS: Final = Verdicts(
    read=_complaint,
    signs=(
        Sign("quota_exceeded", ErrorCode.PROVIDER_QUOTA_EXHAUSTED),  # which comes as a 401
        Sign("invalid_api_key|missing_permissions", ErrorCode.PROVIDER_AUTH),
        Sign("too_many_concurrent_requests|system_busy|rate_limit", ErrorCode.PROVIDER_RATE_LIMITED),
        Sign("max_character_limit_exceeded|voice_not_found", ErrorCode.PROVIDER_BAD_REQUEST),
        Sign("model_not_found", ErrorCode.PROVIDER_MODEL_RETIRED),
        Sign("(?i)moderation|content_against|safety", ErrorCode.MODERATION_REJECTED),
    ),
)


class ElevenLabs:
    """A TextToSpeechProvider that tells the times of its words."""

    def __init__(self, connection: Connection) -> None:
        self._to = connection
        self._wire = connection.wire(VERDICTS, patience=_PATIENCE)

    async def speak(self, text: str, *, language: str, voice: str | None = None) -> Speech:
        """Return *text* spoken, with its words. Raises `ProviderFailure` or `OutcomeUnknown`."""
        within(text, _LENGTH, by="ElevenLabs")
        path = f"/v1/text-to-speech/{quote(voice or self._to.voice, safe='')}/with-timestamps"
        body = {"text": text, "model_id": self._to.model}
        if self._to.model not in _WITHOUT_LANGUAGE:
            body["language_code"] = language.partition("-")[0]
        answer = await self._wire.buy(path, body, params={"output_format": f"pcm_{_RATE}"})
        return await asyncio.to_thread(self._speech, answer)

    def normalize_error(self, error: Exception) -> ErrorCode:
        """Name *error* in our words."""
        return orders.error_code(error)

    def cost_per_call(self) -> float:
        """Return the fixed part of the price of one narration, in US dollars."""
        return self._to.cost_usd

    def _speech(self, answer: Answer) -> Speech:
        body = answer.json()
        if body is None:
            raise self._wire.unclear(answer, "JSON")
        samples = decoded(body.get("audio_base64"), of="sound")
        return speech_of(samples, _RATE, words=words_in(body.get("alignment")))


def words_in(alignment: object) -> tuple[Word, ...]:
    """Fold the times of characters to those of words, which spaces divide; none where they do not fit."""
    if not isinstance(alignment, dict):
        return ()
    letters = alignment.get("characters")
    starts = alignment.get("character_start_times_seconds")
    ends = alignment.get("character_end_times_seconds")
    if not (isinstance(letters, list) and isinstance(starts, list) and isinstance(ends, list)):
        return ()
    if not len(letters) == len(starts) == len(ends):
        return ()
    try:
        return tuple(_folded(zip(letters, starts, ends, strict=True)))
    except (TypeError, ValueError, OverflowError):  # the sound is there, and paid for
        return ()


def _folded(timed: Iterator[tuple[Any, Any, Any]]) -> Iterator[Word]:
    text, first, last = "", 0.0, 0.0
    for letter, start, end in timed:
        if text_of(letter).isspace():
            if text:
                yield Word(text=text, start=first, end=last)
            text = ""
            continue
        first = first if text else float(start)
        text, last = text + text_of(letter), float(end)
    if text:
        yield Word(text=text, start=first, end=last)
