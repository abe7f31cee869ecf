"""What was heard in a sound: found out once, and kept beside the sound."""

import hashlib

import structlog
from pydantic import TypeAdapter, ValidationError

from models.ports import AssetStore, SpeechToTextProvider, Word

_WORDS = TypeAdapter(tuple[Word, ...])
_log = structlog.get_logger(__name__)


class RememberedHearing:
    """A SpeechToTextProvider that asks another one, called *name*, once about each sound."""

    def __init__(self, provider: SpeechToTextProvider, *, name: str, assets: AssetStore) -> None:
        self._provider = provider
        self._name = name
        self._assets = assets

    async def transcribe(self, audio: bytes, *, language: str) -> tuple[Word, ...]:
        """Return the words of *audio*, as they were heard the first time. Raises what the other one does."""
        key = self._key(audio, language)
        if (known := await self._known(key)) is not None:
            return known
        heard = await self._provider.transcribe(audio, language=language)
        try:
            await self._assets.remember(key, {"words": [word.model_dump() for word in heard]})
        except Exception as error:  # noqa: BLE001 -- they are heard; only another time would ask again
            _log.warning("hearing.not_remembered", error=repr(error))
        return heard

    async def _known(self, key: str) -> tuple[Word, ...] | None:
        try:
            entry = await self._assets.recall(key)
            return None if entry is None else _WORDS.validate_python(entry["words"])
        except (ValidationError, KeyError) as error:
            _log.warning("hearing.entry_unusable", error=repr(error))
            return None

    def _key(self, audio: bytes, language: str) -> str:
        named = hashlib.sha256(f"{self._name}\n{language}\n".encode() + audio).hexdigest()
        return f"heard/{named[:2]}/{named}"
