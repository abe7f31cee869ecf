"""espeak-ng: one narration per process, for the library ends its process when it cannot go on."""

import json
import unicodedata
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from models.errors import ErrorCode, ProviderFailure
from sceneloom.providers.processes import python_module, run
from sceneloom.providers.sound import Samples
from sceneloom.providers.words import Mark, Token

_CHILD: Final = "sceneloom.providers.espeak_process"
_FIRST_ARROW: Final = "\u2190"


class Spoken(NamedTuple):
    """Samples, their rate in hertz, and the mark of each token, None where it makes no sound."""

    samples: Samples
    rate: int
    marks: tuple[Mark | None, ...]


async def speak(text: str, written: Sequence[Token], identifier: str) -> Spoken:
    """Speak *text* by the espeak-ng voice *identifier*. Raises `ProviderFailure`."""
    request = json.dumps({"text": _pronounceable(text), "voice": identifier}).encode()
    finished = await run(python_module(_CHILD), request)
    head, newline, body = finished.output.partition(b"\n")
    if finished.status or not newline:
        detail = f"espeak-ng ended with status {finished.status}: {finished.complaint[-300:]}"
        raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, detail)
    reply = json.loads(head)
    samples = np.frombuffer(body, "<i2").astype(np.float32) / 32768
    return Spoken(samples, reply["rate"], _marks(written, reply["words"]))


def _marks(written: Sequence[Token], events: Sequence[tuple[int, int]]) -> tuple[Mark | None, ...]:
    """Find the first event of each token: one token may be several words of the voice (numbers), or none."""
    marks: list[Mark | None] = []
    for token in written:
        times = [milliseconds for position, milliseconds in events if token.start <= position < token.end]
        marks.append(Mark(min(times) / 1000) if times else None)
    return tuple(marks)


def _pronounceable(text: str) -> str:
    """Blank out what cannot be said, keeping every other letter in its place.

    Some voices spell emoji as code points, and a NUL would end the text.
    """
    return "".join(" " if _is_unsaid(letter) else letter for letter in text)


def _is_unsaid(letter: str) -> bool:
    kind = unicodedata.category(letter)
    return kind in {"Cc", "Cs"} or (letter >= _FIRST_ARROW and kind in {"So", "Sk", "Cn", "Co"})
