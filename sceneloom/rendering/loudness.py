"""Measures how loud samples are, as ITU-R BS.1770-4 and EBU R 128 define it."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sceneloom.rendering.film import SAMPLE_RATE

Samples = NDArray[np.float32]
Powers = NDArray[np.float64]

STEP = SAMPLE_RATE // 10
"""Samples of one step: a gating block of 400 ms is four of them, and moves by one."""
_CHUNK = 100 * STEP
_PREROLL = 5 * STEP
_OVERSAMPLING = 4
# The two filters of K-weighting at 48 kHz, as (feed-forward, feedback): BS.1770-4, tables 1 and 2.
_SHELF = ((1.53512485958697, -2.69169618940638, 1.19839281085285), (1.0, -1.69065929318241, 0.73248077421585))
_HIGH_PASS = ((1.0, -2.0, 1.0), (1.0, -1.99004745483398, 0.99007225036621))


def powers(samples: Samples) -> Powers:
    """Return the K-weighted power of each step of *samples* (channels by samples), summed over channels."""
    if samples.shape[1] < STEP:
        return np.zeros(0)
    return np.concatenate(
        [_step_powers(_weighted(chunk)[:, skipped:]) for chunk, skipped in _chunks(samples)]
    )


def integrated(steps: Powers) -> float | None:
    """Return the loudness in LUFS over *steps* of `powers`, or None where nothing passes the gates."""
    if len(steps) < 4:
        return None
    blocks = np.convolve(steps, np.full(4, 0.25), mode="valid")
    audible = blocks[blocks > _power(-70.0)]
    if not len(audible):
        return None
    gated = audible[audible > audible.mean() / 10]
    return round(_loudness(float(gated.mean())), 2)


def true_peak(samples: Samples) -> float | None:
    """Return the highest point of the wave between the samples too, in dBTP; None for digital silence."""
    loudest = float(np.max(np.abs(samples), initial=0.0))
    if not loudest:
        return None
    peaks = [
        _peak_between(chunk[:, max(0, skipped - 480) :]) for chunk, skipped in _chunks(samples, loudest / 2)
    ]
    return round(20 * math.log10(max(loudest, *peaks)), 2)


def _chunks(samples: Samples, least: float = 0.0) -> Iterator[tuple[Samples, int]]:
    """Yield overlapping chunks, each with the samples at its front that the chunk before already had."""
    for start in range(0, samples.shape[1], _CHUNK):
        begun = max(0, start - _PREROLL)
        chunk = samples[:, begun : start + _CHUNK]
        if not least or float(np.max(np.abs(chunk))) >= least:
            yield chunk, start - begun


def _step_powers(weighted: NDArray[np.float64]) -> Powers:
    channels, length = weighted.shape
    steps = weighted[:, : length // STEP * STEP].reshape(channels, -1, STEP)
    powers: Powers = np.square(steps).mean(axis=2).sum(axis=0)
    return powers


def _weighted(chunk: Samples) -> NDArray[np.float64]:
    length = chunk.shape[1] + _PREROLL
    turns = np.exp(-2j * np.pi * np.fft.rfftfreq(length))
    response = np.ones_like(turns)
    for forward, back in (_SHELF, _HIGH_PASS):
        response *= np.polyval(forward[::-1], turns) / np.polyval(back[::-1], turns)
    weighted: NDArray[np.float64] = np.fft.irfft(np.fft.rfft(chunk, length) * response, length)
    return weighted[:, : chunk.shape[1]]


def _peak_between(chunk: Samples) -> float:
    length = chunk.shape[1]
    finer = np.fft.irfft(np.fft.rfft(chunk), length * _OVERSAMPLING) * _OVERSAMPLING
    # The ends of a chunk ring, because the transform takes it for a circle.
    edge = min(480, length // 8) * _OVERSAMPLING
    return float(np.max(np.abs(finer[:, edge : finer.shape[1] - edge]), initial=0.0))


def _power(loudness: float) -> float:
    return float(10 ** ((loudness + 0.691) / 10))


def _loudness(power: float) -> float:
    return -0.691 + 10 * math.log10(power)
