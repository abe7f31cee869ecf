"""Samples of one voice: trimmed of silence, kept from clipping, and packed as a WAV file."""

import io
import wave
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sceneloom.providers.words import Mark, Recording, Token, timed

Samples = NDArray[np.floating[Any]]

_AUDIBLE: Final = 0.006
_LEAD: Final = 0.05
_TAIL: Final = 0.15
_LOUDEST: Final = 0.89


class Trimmed(NamedTuple):
    """Samples without the silence around them, and the seconds cut from their start."""

    samples: Samples
    cut: float


def trim(samples: Samples, rate: int) -> Trimmed:
    """Cut the silence at both ends, except a short breath; nothing is left where nothing sounds."""
    loud = np.flatnonzero(np.abs(samples) > _AUDIBLE)
    if not loud.size:
        return Trimmed(samples[:0], 0.0)
    first = max(0, int(loud[0]) - int(_LEAD * rate))
    last = min(len(samples), int(loud[-1]) + int(_TAIL * rate))
    return Trimmed(samples[first:last], first / rate)


def wav(samples: Samples, rate: int) -> bytes:
    """Pack *samples* (-1 to 1, one channel) as a 16-bit WAV file, turned down where they would clip."""
    peak = float(np.abs(samples).max(initial=0.0))
    steps = samples * (32767 * min(1.0, _LOUDEST / peak if peak else 1.0))
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(np.round(steps).astype("<i2").tobytes())
    return file.getvalue()


def record(samples: Samples, rate: int, written: Sequence[Token], marks: Sequence[Mark | None]) -> Recording:
    """Make a recording of *samples*, whose tokens sound at *marks* before the silence is trimmed."""
    heard, cut = trim(samples, rate)
    if not heard.size:
        return Recording(b"", 0.0, ())
    seconds = len(heard) / rate
    moved = [mark and Mark(mark.start - cut, None if mark.end is None else mark.end - cut) for mark in marks]
    return Recording(wav(heard, rate), seconds, timed(written, moved, seconds))
