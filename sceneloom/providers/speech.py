"""Speech that needs no network: a neural English voice, and espeak-ng for every other language."""

import asyncio

from models.errors import ErrorCode, ProviderFailure
from models.ports import Speech, Word
from sceneloom.providers.studio import Studio
from sceneloom.providers.voices import NEURAL, UnknownVoice, Voice, has_words, unspeakable, voice_for
from sceneloom.providers.words import Recording, Timed, tokens

_SHOWN = 12


class OfflineSpeech:
    """A TextToSpeechProvider; the same narration always sounds the same."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    async def speak(self, text: str, *, language: str, voice: str | None = None) -> Speech:
        """Return *text* spoken in *language*, with a time for each of its words.

        Raises `ProviderFailure`: `INVALID_REQUEST` where no voice can speak it, `OUTPUT_MISSING` where the
        voice stayed silent, `PROVIDER_UNAVAILABLE` where it broke off.
        """
        chosen = _able_voice(text, language, voice)
        recording = await (self._neural(text, chosen) if chosen.provider == NEURAL else _espeak(text, chosen))
        if not recording.audio:
            raise ProviderFailure(ErrorCode.OUTPUT_MISSING, f"the voice {chosen.name} stayed silent")
        words = tuple(Word(text=word.text, start=word.start, end=word.end) for word in recording.words)
        return Speech(audio=recording.audio, seconds=recording.seconds, words=words)

    def cost_per_call(self) -> float:
        """Return 0.0 US dollars: this machine does the work."""
        return 0.0

    async def _neural(self, text: str, voice: Voice) -> Recording:
        audio, facts = await self._studio.ask("speak", text=text, voice=voice.identifier)
        return Recording(audio, facts["seconds"], tuple(Timed(*word) for word in facts["words"]))


async def _espeak(text: str, voice: Voice) -> Recording:
    from sceneloom.providers import espeak
    from sceneloom.providers.sound import record

    written = tokens(text)
    spoken = await espeak.speak(text, written, voice.identifier)
    return await asyncio.to_thread(record, spoken.samples, spoken.rate, written, spoken.marks)


def _able_voice(text: str, language: str, voice: str | None) -> Voice:
    if not has_words(text):
        raise ProviderFailure(ErrorCode.INVALID_REQUEST, "the narration holds nothing that can be spoken")
    try:
        chosen = voice_for(language, voice)
    except UnknownVoice as error:
        raise ProviderFailure(ErrorCode.INVALID_REQUEST, str(error)) from error
    if strange := unspeakable(text, chosen):
        letters = " ".join(strange[:_SHOWN])
        raise ProviderFailure(ErrorCode.INVALID_REQUEST, f"the voice {chosen.name} cannot speak: {letters}")
    return chosen
