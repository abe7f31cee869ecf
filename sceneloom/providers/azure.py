"""Speech by Azure AI Speech: one blocking call, without the times of words.

Wire shapes: learn.microsoft.com/azure/ai-services/speech-service/rest-text-to-speech.
"""

import asyncio
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from models.errors import ErrorCode
from models.ports import Speech
from sceneloom.providers import orders
from sceneloom.providers.connection import Connection
from sceneloom.providers.media import speech_in, within
from sceneloom.providers.tasks import error_object
from sceneloom.providers.verdicts import Sign, Verdicts
from sceneloom.providers.wire import Patience

_PATIENCE: Final = Patience(read=120.0, total=180.0)
_LENGTH: Final = 5000
_HEADERS: Final = {
    "Content-Type": "application/ssml+xml",
    "X-Microsoft-OutputFormat": "riff-24khz-16bit-mono-pcm",
    "User-Agent": "sceneloom",
}

VERDICTS: Final = Verdicts(
    read=error_object,
    signs=(
        Sign("(?i)quota", ErrorCode.PROVIDER_QUOTA_EXHAUSTED),
        Sign("", ErrorCode.PROVIDER_QUOTA_EXHAUSTED, message="(?i)quota exceeded|out of call volume"),
    ),
)


class Azure:
    """A TextToSpeechProvider; its REST API tells no times of words."""

    def __init__(self, connection: Connection) -> None:
        self._to = connection
        self._wire = connection.wire(VERDICTS, patience=_PATIENCE)

    async def speak(self, text: str, *, language: str, voice: str | None = None) -> Speech:
        """Return *text* spoken as a WAV file, without words. Raises `ProviderFailure` or `OutcomeUnknown`."""
        within(text, _LENGTH, by="Azure")
        speaker = f"<voice name={quoteattr(voice or self._to.voice)}>{escape(text)}</voice>"
        namespace = 'xmlns="http://www.w3.org/2001/10/synthesis"'
        ssml = f'<speak version="1.0" {namespace} xml:lang={quoteattr(language)}>{speaker}</speak>'
        answer = await self._wire.buy("/cognitiveservices/v1", ssml.encode(), headers=_HEADERS)
        return await asyncio.to_thread(speech_in, answer.content)

    def normalize_error(self, error: Exception) -> ErrorCode:
        """Name *error* in our words."""
        return orders.error_code(error)

    def cost_per_call(self) -> float:
        """Return the fixed part of the price of one narration, in US dollars."""
        return self._to.cost_usd
