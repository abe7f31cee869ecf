"""The times of spoken words, by ElevenLabs Scribe and by OpenAI's Whisper: one blocking call each.

Wire shapes: elevenlabs.io/docs/api-reference/speech-to-text/convert and
platform.openai.com/docs/api-reference/audio/createTranscription.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from models.errors import ErrorCode, ProviderFailure
from models.ports import Word
from sceneloom.providers import elevenlabs, openai, orders
from sceneloom.providers.connection import Connection
from sceneloom.providers.verdicts import Verdicts, text_of
from sceneloom.providers.wire import Patience

_PATIENCE: Final = Patience(read=120.0, total=180.0)


class _Transcriber:
    """What both do alike."""

    verdicts: ClassVar[Verdicts]
    path: ClassVar[str]
    text: ClassVar[str]
    """Under which name an answer has the text of a word."""

    def __init__(self, connection: Connection) -> None:
        self._to = connection
        self._wire = connection.wire(self.verdicts, patience=_PATIENCE)

    async def transcribe(self, audio: bytes, *, language: str) -> tuple[Word, ...]:
        """Return the words of the WAV file *audio*. Raises `ProviderFailure` or `OutcomeUnknown`."""
        sound = {"file": ("speech.wav", audio, "audio/wav")}
        body = {**self.wishes(language.partition("-")[0]), **sound}
        answer = await self._wire.buy(self.path, body, form=True)
        said = answer.json()
        if said is None:
            raise self._wire.unclear(answer, "JSON")
        items = said.get("words")
        words = tuple(self._words(items) if isinstance(items, list) else ())
        if not words:
            raise ProviderFailure(ErrorCode.OUTPUT_MISSING, "no words with times")
        return words

    def wishes(self, language: str) -> Mapping[str, str]:
        """Return what is asked for, beside the sound."""
        raise NotImplementedError

    def normalize_error(self, error: Exception) -> ErrorCode:
        """Name *error* in our words."""
        return orders.error_code(error)

    def cost_per_call(self) -> float:
        """Return the fixed part of the price of one transcription, in US dollars."""
        return self._to.cost_usd

    def _words(self, items: list[Any]) -> list[Word]:
        try:
            return [
                Word(text=text_of(item[self.text]), start=float(item["start"]), end=float(item["end"]))
                for item in items
                if item.get("type", "word") == "word"
            ]
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise ProviderFailure(ErrorCode.OUTPUT_MISSING, f"words without times: {error!r}") from error


class Scribe(_Transcriber):
    """A SpeechToTextProvider by ElevenLabs; between words it tells of spaces and noises."""

    verdicts = elevenlabs.VERDICTS
    path = "/v1/speech-to-text"
    text = "text"

    def wishes(self, language: str) -> Mapping[str, str]:
        """Return what is asked for, beside the sound."""
        return {
            "model_id": self._to.model,
            "language_code": language,
            "timestamps_granularity": "word",
            "tag_audio_events": "false",
        }


class Whisper(_Transcriber):
    """A SpeechToTextProvider by OpenAI; of its models only whisper-1 tells the times of words."""

    verdicts = openai.VERDICTS
    path = "/audio/transcriptions"
    text = "word"

    def wishes(self, language: str) -> Mapping[str, str]:
        """Return what is asked for, beside the sound."""
        return {
            "model": self._to.model,
            "language": language,
            "response_format": "verbose_json",
            "timestamp_granularities[]": "word",
        }
