"""What is heard in a sound is asked for once."""

import pytest

from models.errors import ErrorCode, ProviderFailure
from models.ports import Word
from sceneloom.assets.store import open_assets
from sceneloom.workshop.hearing import RememberedHearing
from tests.workshop.test_speech_maker import WORDS, Ear


async def test_the_same_sound_is_asked_about_once_also_by_another_worker() -> None:
    assets, ear = open_assets("memory://"), Ear(WORDS)
    for _ in range(2):
        hearing = RememberedHearing(ear, name="house small", assets=assets)
        assert await hearing.transcribe(b"RIFF-1", language="en") == WORDS
    assert len(ear.asked) == 1


@pytest.mark.parametrize(
    ("sound", "language", "name"),
    [(b"RIFF-2", "en", "house small"), (b"RIFF-1", "fa", "house small"), (b"RIFF-1", "en", "house large")],
)
async def test_another_sound_language_or_model_is_asked_about(sound: bytes, language: str, name: str) -> None:
    assets, ear = open_assets("memory://"), Ear(WORDS)
    await RememberedHearing(ear, name="house small", assets=assets).transcribe(b"RIFF-1", language="en")
    await RememberedHearing(ear, name=name, assets=assets).transcribe(sound, language=language)
    assert len(ear.asked) == 2


async def test_what_failed_is_not_remembered() -> None:
    assets, ear = open_assets("memory://"), Ear(ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, "away"))
    hearing = RememberedHearing(ear, name="house small", assets=assets)
    with pytest.raises(ProviderFailure):
        await hearing.transcribe(b"RIFF", language="en")
    ear.answer = (Word(text="fox", start=0.0, end=0.5),)
    assert await hearing.transcribe(b"RIFF", language="en") == ear.answer
