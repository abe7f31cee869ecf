"""The times of spoken words, by Whisper on this machine: faster-whisper, an extra, in a process of its own.

The process lives for one recording: a second or two to begin is little beside the work, and then no memory is
held. Weights are never fetched here: its environment keeps it from the network.
"""

import asyncio
import json
import subprocess
from collections.abc import Mapping
from typing import Final

from models.errors import ErrorCode, ProviderFailure
from models.ports import Word
from sceneloom.providers import orders
from sceneloom.providers.connection import Connection
from sceneloom.providers.processes import child_environment, python_module, run

_PROCESS: Final = "sceneloom.providers.whisper_process"
_SECONDS: Final = 180.0
"""How long the words of one narration may be looked for: as long as those who are paid for it have."""

LONGEST_SECONDS: Final = 900.0
"""The longest sound that is listened to: no narration is longer."""

MOST_BYTES: Final = 180_000_000
"""So large is the longest sound as 16-bit stereo at 48 kHz."""

_LOAD_SECONDS: Final = 120.0


class LocalWhisper:
    """A SpeechToTextProvider; one recording at a time, as each takes all the cores it is given."""

    def __init__(self, connection: Connection) -> None:
        self._to = connection
        self._place = asyncio.Semaphore(1)

    async def transcribe(self, audio: bytes, *, language: str) -> tuple[Word, ...]:
        """Return the words of *audio*, a file; its time counts from its turn. Raises `ProviderFailure`."""
        if len(audio) > MOST_BYTES:
            detail = f"the sound has {len(audio)} bytes; at most {MOST_BYTES} are listened to"
            raise ProviderFailure(ErrorCode.INVALID_REQUEST, detail)
        spoken = language.partition("-")[0].lower()
        asked = {"model": self._to.model, "language": spoken, "longest": LONGEST_SECONDS}
        try:
            async with self._place, asyncio.timeout(_SECONDS):
                done = await run(python_module(_PROCESS), json.dumps(asked).encode() + b"\n" + audio)
        except TimeoutError as late:
            detail = f"{self._to.model} has not heard the words within {_SECONDS:.0f} s"
            raise ProviderFailure(ErrorCode.PROVIDER_TIMEOUT, detail) from late
        if done.status:
            raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, _last_words(done.status, done.complaint))
        words = tuple(Word.model_validate(word) for word in json.loads(done.output))
        if not words:
            raise ProviderFailure(ErrorCode.OUTPUT_MISSING, "no words were heard")
        return words

    def normalize_error(self, error: Exception) -> ErrorCode:
        """Name *error* in our words."""
        return orders.error_code(error)

    def cost_per_call(self) -> float:
        """Return what one transcription costs, in US dollars."""
        return self._to.cost_usd


def why_absent(model: str) -> str | None:
    """Say why *model* is not on this machine, None where it is; its weights are not loaded."""
    return _why_not({"model": model})


def why_unusable(model: str) -> str | None:
    """Say why *model* cannot be used on this machine, None where it can: it is loaded once."""
    return _why_not({"model": model, "language": ""})


def _why_not(asked: Mapping[str, str]) -> str | None:
    try:
        done = subprocess.run(
            python_module(_PROCESS),
            input=json.dumps(asked).encode(),
            capture_output=True,
            check=False,
            timeout=_LOAD_SECONDS,
            env=child_environment(),
        )
    except subprocess.TimeoutExpired:
        return f"{asked['model']} cannot be loaded within {_LOAD_SECONDS:.0f} s"
    return _last_words(done.returncode, done.stderr.decode(errors="replace")) if done.returncode else None


def _last_words(status: int, complaint: str) -> str:
    lines = complaint.strip().splitlines()
    # One that a signal has ended says nothing of why.
    return lines[-1] if lines and status > 0 else f"its process ended with {status}"
