import io
import wave

import numpy as np
import pytest

from models.errors import ErrorCode, ProviderFailure
from models.ports import Speech, TextToSpeechProvider
from sceneloom.providers.speech import OfflineSpeech
from sceneloom.providers.studio import Studio

NARRATIONS = {
    "en": "Every morning, Dr. Smith climbed 200 steps to the sea. “Stop!” she said — in 1924, at 7:30 pm. 🎉",
    "ru": "Каждое утро старый смотритель маяка поднимался на 200 ступеней. Однажды ночью Kafka погасла 🎉",
    "fa": "هر روز صبح، نگهبان پیر از دویست پله بالا می‌رفت و Kafka را در سال ۱۹۲۴ دید 🎉.",
    "zh": "我们在海边看日落，然后回家。",
}


@pytest.fixture
def speech(studio: Studio) -> OfflineSpeech:
    return OfflineSpeech(studio)


def _samples(spoken: Speech) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    with wave.open(io.BytesIO(spoken.audio)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        steps = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        assert len(steps) / file.getframerate() == pytest.approx(spoken.seconds)
    return steps / 32768


def _assert_times_are_sound(spoken: Speech) -> None:
    assert all(0 <= word.start < word.end <= spoken.seconds for word in spoken.words)
    pairs = zip(spoken.words, spoken.words[1:], strict=False)
    assert all(before.end <= after.start for before, after in pairs)


@pytest.mark.media
@pytest.mark.parametrize("language", NARRATIONS)
async def test_narration_is_audible_and_each_word_has_its_time(language: str, speech: OfflineSpeech) -> None:
    text = NARRATIONS[language]
    spoken = await speech.speak(text, language=language)
    samples = _samples(spoken)
    assert 0.02 < float(np.sqrt((samples**2).mean())) < 0.3
    assert 0.1 < float(np.abs(samples).max()) < 0.9
    assert "".join(word.text for word in spoken.words) == "".join(text.split())
    if language != "zh":
        assert [word.text for word in spoken.words] == text.split()
        assert 1.2 < len(spoken.words) / spoken.seconds < 3.5
    _assert_times_are_sound(spoken)


@pytest.mark.media
@pytest.mark.parametrize("language", ["en", "ru"])
async def test_words_sound_where_their_times_say(language: str, speech: OfflineSpeech) -> None:
    """Between two sentences there is a pause: it lies before the first word of the second."""
    text = {"en": "The lamp went dark. Morning came.", "ru": "Лампа погасла. Пришло утро."}[language]
    spoken = await speech.speak(text, language=language)
    samples = _samples(spoken)
    rate = len(samples) / spoken.seconds
    begins = next(word.start for word in spoken.words if word.text in {"Morning", "Пришло"})
    pause = np.abs(samples[int((begins - 0.15) * rate) : int((begins - 0.05) * rate)]).mean()
    voice = np.abs(samples[int((begins + 0.05) * rate) : int((begins + 0.30) * rate)]).mean()
    assert voice > 4 * pause


@pytest.mark.media
@pytest.mark.parametrize("language", ["en", "fa"])
async def test_the_same_narration_sounds_the_same(language: str, speech: OfflineSpeech) -> None:
    first = await speech.speak(NARRATIONS[language], language=language)
    assert await speech.speak(NARRATIONS[language], language=language) == first


@pytest.mark.media
@pytest.mark.parametrize(
    ("language", "sentence"), [("en", "The keeper lit the lamp. "), ("ru", "смотритель зажёг лампу ")]
)
async def test_a_long_narration_is_spoken_to_its_end(
    language: str, sentence: str, speech: OfflineSpeech
) -> None:
    text = (sentence * 100)[:2000]
    spoken = await speech.speak(text, language=language)
    assert [word.text for word in spoken.words] == text.split()
    assert spoken.seconds > 90
    _assert_times_are_sound(spoken)


@pytest.mark.media
async def test_another_speaker_sounds_different(speech: OfflineSpeech) -> None:
    usual = await speech.speak("Привет, мир.", language="ru")
    other = await speech.speak("Привет, мир.", language="ru", voice="ru+f3")
    assert usual.audio != other.audio


@pytest.mark.parametrize(
    ("text", "language", "voice"),
    [
        ("我们在海边", "en", None),
        ("Старый маяк", "en", None),
        ("سلام دنیا", "ru", None),
        ("🎉🚀", "en", None),
        ("…!?", "fa", None),
        ("\u200b\u200d", "ru", None),
        ("", "en", None),
        ("hello", "tlh", None),
        ("hello", "en", "nobody"),
    ],
)
async def test_what_no_voice_can_speak_is_an_invalid_request(
    text: str, language: str, voice: str | None, speech: OfflineSpeech
) -> None:
    with pytest.raises(ProviderFailure) as refused:
        await speech.speak(text, language=language, voice=voice)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


async def test_a_voice_that_stays_silent_has_no_output(
    speech: OfflineSpeech, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sceneloom.providers import espeak  # noqa: PLC0415 -- patched here only

    async def silent(*_: object) -> espeak.Spoken:
        return espeak.Spoken(np.zeros(22050, np.float32), 22050, (None,))

    monkeypatch.setattr(espeak, "speak", silent)
    with pytest.raises(ProviderFailure) as refused:
        await speech.speak("привет", language="ru")
    assert refused.value.code is ErrorCode.OUTPUT_MISSING


def test_it_is_a_free_text_to_speech_provider() -> None:
    speech = OfflineSpeech(Studio())
    assert isinstance(speech, TextToSpeechProvider)
    assert speech.cost_per_call() == 0.0


@pytest.mark.media
@pytest.mark.parametrize("language", ["en", "ru"])
async def test_invisible_signs_in_a_narration_do_no_harm(language: str, speech: OfflineSpeech) -> None:
    word = {"en": "hello", "ru": "привет"}[language]
    text = f"{word}\x00{word} \u200b {word}\ufe0f\x1b <b>{word}</b> [[x]] {word}\u202e"
    spoken = await speech.speak(text, language=language)
    assert [written.text for written in spoken.words] == text.split()
    assert spoken.seconds > 1.5
