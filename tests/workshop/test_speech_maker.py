"""Speech that comes without the times of its words is transcribed at most once, and never lost for it."""

from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from models.errors import ErrorCode, OutcomeUnknown, ProviderFailure
from models.job import Job
from models.ports import Speech, Word
from models.work import Offer, Output, SpeechRequest
from sceneloom.assets.store import open_assets
from sceneloom.providers.media import speech_of
from sceneloom.providers.wire import NotAllowed
from sceneloom.workshop.makers import SpeechMaker
from tests.fakes import START

WORDS = (Word(text="hello", start=0.1, end=0.4), Word(text="there", start=0.5, end=0.9))


class Voice:
    def __init__(self, *words: Word) -> None:
        self.words = words

    async def speak(self, text: str, *, language: str, voice: str | None = None) -> Speech:
        return speech_of(b"\x10\x00" * 24_000, 24_000, words=self.words)

    def cost_per_call(self) -> float:
        return 0.0


class Ear:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def transcribe(self, audio: bytes, *, language: str) -> tuple[Word, ...]:
        self.asked.append(f"{audio[:4].decode()} {language}")
        if isinstance(self.answer, Exception):
            raise self.answer
        heard: tuple[Word, ...] = self.answer
        return heard


async def spoken(voice: Voice, ear: Ear | None) -> tuple[Output, Any]:
    """Return what was made, and the words that its captions will have."""
    assets = open_assets("memory://")
    job = Job(
        project_id="p1",
        scene_id="s1",
        user_id="u",
        offer=Offer(provider="house", model="m1"),
        request=SpeechRequest(text="Hello, there!", language="en"),
        created_at=START,
    )
    maker = SpeechMaker(provider=voice, assets=assets, transcriber=ear)
    output = await maker.make(job, progress=lambda _: None)
    return output, output.captions_url and orjson.loads(await assets.get(output.captions_url))


async def test_the_words_of_speech_without_times_are_heard() -> None:
    ear = Ear(WORDS)
    _, captions = await spoken(Voice(), ear)
    assert captions == [
        {"text": "Hello,", "start": 0.1, "end": 0.4},
        {"text": "there!", "start": 0.5, "end": 0.9},
    ]
    assert ear.asked == ["RIFF en"]


async def test_speech_that_tells_its_words_is_not_transcribed() -> None:
    ear = Ear(())
    _, captions = await spoken(Voice(*WORDS), ear)
    assert [word["text"] for word in captions] == ["hello", "there"]
    assert ear.asked == []


@pytest.mark.parametrize(
    "failure",
    [
        ProviderFailure(ErrorCode.PROVIDER_RATE_LIMITED, "later"),
        OutcomeUnknown("the line broke"),
        NotAllowed("/speech-to-text"),
        KeyError("words"),
    ],
    ids=lambda failure: type(failure).__name__,
)
async def test_a_transcription_that_fails_costs_the_captions_only(failure: Exception) -> None:
    ear = Ear(failure)
    with capture_logs() as logs:
        output, captions = await spoken(Voice(), ear)
    assert (output.seconds, captions) == (1.0, None)
    assert len(ear.asked) == 1
    assert [log["event"] for log in logs] == ["makers.not_transcribed"]


async def test_without_a_transcriber_such_speech_has_no_captions() -> None:
    assert (await spoken(Voice(), None))[1] is None
