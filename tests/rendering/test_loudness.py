import numpy as np
import pytest

from sceneloom.rendering.loudness import Samples, integrated, powers, true_peak

RATE = 48_000


def tone(seconds: float, level: float, frequency: float = 997.0, phase: float = 0.0) -> Samples:
    times = np.arange(round(seconds * RATE)) / RATE
    wave = 10 ** (level / 20) * np.sin(2 * np.pi * frequency * times + phase)
    return np.stack([wave, wave]).astype(np.float32)


@pytest.mark.parametrize("level", [-23.0, -33.0])
def test_a_stereo_tone_is_as_loud_as_ebu_tech_3341_says(level: float) -> None:
    assert integrated(powers(tone(20, level))) == pytest.approx(level, abs=0.1)


def test_quiet_parts_are_gated_out() -> None:
    # EBU Tech 3341, case 3: only the loud middle counts.
    sound = np.concatenate([tone(10, -36), tone(60, -23), tone(10, -36)], axis=1)
    assert integrated(powers(sound)) == pytest.approx(-23, abs=0.1)


def test_bass_weighs_less_than_treble() -> None:
    assert (integrated(powers(tone(5, -20, 40))) or 0) < (integrated(powers(tone(5, -20, 3000))) or 0) - 4


@pytest.mark.parametrize("seconds", [0.0, 0.2, 5.0])
def test_silence_has_no_loudness_and_no_peak(seconds: float) -> None:
    silence = np.zeros((2, round(seconds * RATE)), dtype=np.float32)
    assert integrated(powers(silence)) is None
    assert true_peak(silence) is None


def test_the_peak_between_samples_is_found() -> None:
    # A quarter of the sampling rate, sampled 45 degrees off its tops: every sample is 3 dB too low.
    sound = tone(3, -6, frequency=12_000, phase=np.pi / 4)
    assert 20 * np.log10(np.max(np.abs(sound))) == pytest.approx(-9.01, abs=0.05)
    assert true_peak(sound) == pytest.approx(-6, abs=0.2)
