import io
import wave

import numpy as np
import pytest

from sceneloom.providers.sound import Samples, record, trim, wav
from sceneloom.providers.words import Mark, tokens

RATE = 24_000


def _tone(seconds: float, loudness: float = 0.5) -> Samples:
    wave_form: Samples = loudness * np.sin(np.arange(round(seconds * RATE)) * 0.06)
    return wave_form.astype(np.float32)


def test_silence_around_the_voice_is_cut_to_a_breath() -> None:
    silence = np.zeros(RATE, np.float32)
    heard, cut = trim(np.concatenate([silence, _tone(1.0), silence]), RATE)
    assert cut == pytest.approx(0.95, abs=0.01)
    assert len(heard) / RATE == pytest.approx(1.2, abs=0.01)


def test_the_marks_move_with_the_cut() -> None:
    samples = np.concatenate([np.zeros(RATE, np.float32), _tone(1.0)])
    recording = record(samples, RATE, tokens("word"), [Mark(1.0, 1.8)])
    assert recording.words[0].start == pytest.approx(0.05, abs=0.01)
    assert recording.words[0].end == pytest.approx(0.85, abs=0.01)


def test_silence_makes_no_recording() -> None:
    assert record(np.zeros(RATE, np.float32), RATE, tokens("word"), [None]).audio == b""


def test_loud_samples_are_turned_down_instead_of_clipped() -> None:
    with wave.open(io.BytesIO(wav(_tone(0.5, loudness=3.0), RATE))) as file:
        steps = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
    assert 28_000 < int(np.abs(steps).max()) < 29_500
