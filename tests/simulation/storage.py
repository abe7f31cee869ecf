"""The asset store in memory: it outlives the workers, answers after a while, and is away at times."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from models.errors import AssetMissing
from sceneloom.assets.errors import AssetStoreUnavailable
from tests.simulation.clockwork import Clockwork, Process

_SLOWEST: Final = 20.0
_BASE: Final = "memory://assets"


class Storage:
    """What is stored. Every write is whole or not there."""

    def __init__(self, clockwork: Clockwork, *, slow: float = 0.0) -> None:
        self.slow = slow
        """The chance that an answer takes seconds."""
        self.contents: dict[str, bytes] = {}
        self.entries: dict[str, dict[str, object]] = {}
        self._clockwork = clockwork
        self._away_until = 0.0

    def go_away(self, seconds: float) -> None:
        """Refuse everything for so many *seconds*."""
        self._away_until = self._clockwork.now + seconds

    def require(self) -> None:
        """Raise `AssetStoreUnavailable` while the store is away."""
        if self._clockwork.now < self._away_until:
            raise AssetStoreUnavailable("the store is away")


class Assets:
    """An AssetStore: how one process reaches the storage."""

    def __init__(self, storage: Storage, process: Process) -> None:
        self._storage = storage
        self._process = process

    def owns(self, url: str) -> bool:
        return url.startswith(_BASE)

    async def put(self, content: bytes, *, media_type: str) -> str:
        url = f"{_BASE}/{hashlib.sha256(content).hexdigest()}.{media_type.rpartition('/')[2]}"
        await self._reach(lambda: self._storage.contents.setdefault(url, content))
        return url

    async def get(self, url: str) -> bytes:
        return cast("bytes", await self._reach(lambda: self._found(url)))

    async def put_file(self, path: Path, *, media_type: str) -> str:
        raise NotImplementedError("nobody here has files")

    async def get_file(self, url: str, path: Path) -> None:
        raise NotImplementedError("nobody here has files")

    async def verify(self, url: str) -> None:
        await self.get(url)

    async def remember(self, key: str, entry: Mapping[str, object]) -> None:
        await self._reach(lambda: self._storage.entries.__setitem__(key, dict(entry)))

    async def recall(self, key: str) -> Mapping[str, object] | None:
        return cast("Mapping[str, object] | None", await self._reach(lambda: self._storage.entries.get(key)))

    async def claim(self, key: str, entry: Mapping[str, object]) -> bool:
        def create() -> bool:
            return self._storage.entries.setdefault(key, cast("dict[str, object]", entry)) is entry

        return bool(await self._reach(create))

    def _found(self, url: str) -> bytes:
        if url not in self._storage.contents:
            raise AssetMissing(f"{url} is not stored")
        return self._storage.contents[url]

    async def _reach(self, act: Callable[[], Any]) -> Any:
        def arrive() -> Any:
            self._storage.require()
            return act()

        dice = self._process.clockwork
        there = (
            dice.between(1.0, _SLOWEST) if self._storage.slow and dice.happens(self._storage.slow) else None
        )
        return await self._process.ask(arrive, there=there)
