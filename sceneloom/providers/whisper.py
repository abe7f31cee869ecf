"""The times of spoken words, by Whisper on this machine: faster-whisper, an extra, in a process of its own.

The process lives for one recording: a second or two to begin is little beside the work, and then no memory is
held. Weights are never fetched here: its environment keeps it from the network.
"""

import asyncio
import json
import subprocess
from typing import Final

from models.errors import ErrorCode, ProviderFailure
from models.ports import Word
from sceneloom.providers import orders
from sceneloom.providers.connection import Connection
from sceneloom.providers.processes import child_environment, python_module, run

_PROCESS: Final = "sceneloom.providers.whisper_process"
_SECONDS: Final = 180.0
"""How long the words of one narration may be looked for: as long as those who are paid for it have."""

_LOAD_SECONDS: Final = 120.0


class LocalWhisper:
    """A SpeechToTextProvider; one recording at a time, as each takes all the cores it is given."""

    def __init__(self, connection: Connection) -> None:
        self._to = connection
        self._place = asyncio.Semaphore(1)

    async def transcribe(self, audio: bytes, *, language: str) -> tuple[Word, ...]:
        """Return the words of the audio file *audio*. Raises `ProviderFailure`."""
        asked = {"model": self._to.model, "language": language.partition("-")[0].lower()}
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


def why_unusable(model: str) -> str | None:
    """Say why *model* cannot be used on this machine, None where it can: it is loaded once, in seconds."""
    asked = json.dumps({"model": model}).encode()
    try:
        done = subprocess.run(
            python_module(_PROCESS),
            input=asked,
            capture_output=True,
            check=False,
            timeout=_LOAD_SECONDS,
            env=child_environment(),
        )
    except subprocess.TimeoutExpired:
        return f"{model} cannot be loaded within {_LOAD_SECONDS:.0f} s"
    return _last_words(done.returncode, done.stderr.decode(errors="replace")) if done.returncode else None


def _last_words(status: int, complaint: str) -> str:
    lines = complaint.strip().splitlines()
    # One that a signal has ended says nothing of why.
    return lines[-1] if lines and status > 0 else f"its process ended with {status}"
