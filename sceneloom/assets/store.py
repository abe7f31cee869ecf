"""The asset store: finished files under the hash of their content, and small entries that point at them."""

import asyncio
import hashlib
import os
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import obstore
import orjson
import structlog
from obstore.exceptions import AlreadyExistsError, BaseError

from models.errors import AssetMissing, BadMedia
from sceneloom.assets.errors import AssetStoreUnavailable
from sceneloom.assets.locations import Location, asset_key, digest_in, entry_key, first_line, locate

_CHUNK: Final = 5 * 1024 * 1024
_JSON: Final = "application/json"
_log = structlog.get_logger(__name__)


def open_assets(url: str, *, public_url: str | None = None) -> "ObjectAssets":
    """Open the asset store at *url*: a folder, file://, s3://bucket/prefix, gs://, az:// or memory://.

    Cloud options may follow as a query (`?endpoint=http://127.0.0.1:9000&region=eu-west-1`); credentials come
    from the environment (AWS_*, GOOGLE_*, AZURE_*). *public_url* is where others read the same objects.
    Raises ValueError for a URL that names no store, AssetStoreUnavailable for a folder that cannot be made.
    """
    return ObjectAssets(locate(url), public_url=public_url)


class ObjectAssets:
    """An `AssetStore` on any object store. Every write is whole or not visible at all."""

    def __init__(self, location: Location, *, public_url: str | None = None) -> None:
        self._store = location.store
        self._folder = location.folder
        self._own_url = location.url
        self.base_url: Final = (public_url or location.url).rstrip("/")

    def owns(self, url: str) -> bool:
        """Tell whether *url* names an asset of this store, by the public or by our own name."""
        try:
            self._find(url)
        except AssetMissing:
            return False
        return True

    async def put(self, content: bytes, *, media_type: str) -> str:
        """Store *content* unless it is there already and whole, and return its URL."""
        digest = await asyncio.to_thread(lambda: hashlib.sha256(content).hexdigest())
        key = asset_key(digest, media_type)
        if not await self._holds(key, digest, len(content)):
            await self._write(key, content, media_type)
        return f"{self.base_url}/{key}"

    async def put_file(self, path: Path, *, media_type: str) -> str:
        """Store the file at *path* as `put` does, some megabytes at a time.

        Raises BadMedia, and stores nothing, where the file changes meanwhile.
        """
        digest, size = await asyncio.to_thread(_measure, path)
        key = asset_key(digest, media_type)
        if not await self._holds(key, digest, size):
            await self._write(key, _unchanged(path, digest), media_type)
        return f"{self.base_url}/{key}"

    async def get(self, url: str) -> bytes:
        """Return the content at *url*. Raises AssetMissing, or BadMedia where what is stored is damaged."""
        key, digest = self._find(url)
        with self._reaching("read", key):
            answer = await obstore.get_async(self._store, key)
            content = bytes(await answer.bytes_async())
        if await asyncio.to_thread(lambda: hashlib.sha256(content).hexdigest()) != digest:
            raise _damaged(url)
        return content

    async def get_file(self, url: str, path: Path) -> None:
        """Write the content at *url* to *path*, whole or not at all. Raises as `get` does."""
        key, digest = self._find(url)
        arriving = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        try:
            with await asyncio.to_thread(arriving.open, "wb") as file:
                found = hashlib.sha256()
                async for chunk in self._stream(key):
                    found.update(chunk)
                    await asyncio.to_thread(file.write, chunk)
            if found.hexdigest() != digest:
                raise _damaged(url)
            arriving.replace(path)
        finally:
            arriving.unlink(missing_ok=True)

    async def verify(self, url: str) -> None:
        """Return if the content at *url* is there and whole, without keeping it. Raises as `get` does."""
        key, digest = self._find(url)
        if await self._digest(key) != digest:
            raise _damaged(url)

    async def remember(self, key: str, entry: Mapping[str, object]) -> None:
        """Keep a small JSON *entry* under *key*, replacing an older one."""
        await self._write(entry_key(key), orjson.dumps(dict(entry)), _JSON)

    async def claim(self, key: str, entry: Mapping[str, object]) -> bool:
        """Keep *entry* under *key* only where there is none; of many at once, exactly one is told True.

        False may also mean that an earlier attempt of the same caller got through and its answer was lost, so
        an entry should name its owner.
        """
        try:
            await self._write(entry_key(key), orjson.dumps(dict(entry)), _JSON, mode="create")
        except AlreadyExistsError:
            return False
        return True

    async def recall(self, key: str) -> Mapping[str, object] | None:
        """Return the entry under *key*; None where there is none, or none that can be read."""
        name = entry_key(key)
        try:
            with self._reaching("read", name):
                answer = await obstore.get_async(self._store, name)
                content = bytes(await answer.bytes_async())
        except AssetMissing:
            return None
        try:
            entry = orjson.loads(content)
        except orjson.JSONDecodeError:
            entry = None
        if not isinstance(entry, dict):
            _log.warning("asset_entry_unreadable", key=key, store=self._own_url)
            return None
        return entry

    async def forget(self, key: str) -> None:
        """Remove the entry under *key*, if there is one."""
        name = entry_key(key)
        try:
            with self._reaching("delete", name):
                await obstore.delete_async(self._store, name)
        except AssetMissing:
            return

    def _find(self, url: str) -> tuple[str, str]:
        """Return the key and the digest of the asset at *url*, by the public or by our own name."""
        for base in (self.base_url, self._own_url):
            key = url.removeprefix(f"{base}/")
            digest = digest_in(key) if key != url else None
            if digest is not None:
                return key, digest
        raise AssetMissing(f"{url!r} is no asset of the store {self.base_url}")

    async def _holds(self, key: str, digest: str, size: int) -> bool:
        """Tell whether *key* is stored undamaged: a put must not rely on what a failing disk left there."""
        try:
            with self._reaching("look up", key):
                if (await obstore.head_async(self._store, key))["size"] != size:
                    return False
            return await self._digest(key) == digest
        except AssetMissing:
            return False

    async def _digest(self, key: str) -> str:
        found = hashlib.sha256()
        async for chunk in self._stream(key):
            await asyncio.to_thread(found.update, chunk)
        return found.hexdigest()

    async def _stream(self, key: str) -> AsyncIterator[bytes]:
        with self._reaching("read", key):
            answer = await obstore.get_async(self._store, key)
            async for chunk in answer.stream(min_chunk_size=_CHUNK):
                yield bytes(chunk)

    async def _write(
        self,
        key: str,
        content: bytes | AsyncIterator[bytes],
        media_type: str,
        *,
        mode: Literal["create", "overwrite"] = "overwrite",
    ) -> None:
        # A folder has no place for a content type; the extension tells it there.
        attributes = None if self._folder else {"Content-Type": media_type}
        with self._reaching("write", key):
            await obstore.put_async(
                self._store,
                key,
                content,
                attributes=attributes,
                mode=mode,
                chunk_size=_CHUNK,
                max_concurrency=4,
            )
            if self._folder is not None:
                await asyncio.to_thread(_make_durable, self._folder, key)

    @contextmanager
    def _reaching(self, action: str, key: str) -> Iterator[None]:
        try:
            yield
        except AlreadyExistsError:
            raise
        except (BaseError, OSError) as exc:
            if isinstance(exc, FileNotFoundError) and action != "write":
                raise AssetMissing(f"{self.base_url}/{key} is not stored") from exc
            reason = first_line(exc)
            raise AssetStoreUnavailable(f"{self._own_url} could not {action} {key}: {reason}") from exc


def _damaged(url: str) -> BadMedia:
    return BadMedia(f"{url} is damaged: its content no longer has the hash in its name")


def _measure(path: Path) -> tuple[str, int]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return digest, file.tell()


async def _unchanged(path: Path, digest: str) -> AsyncIterator[bytes]:
    """Yield the file at *path* in chunks; fail at its end, so that nothing is stored, if it was changed."""
    found = hashlib.sha256()
    with await asyncio.to_thread(path.open, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            found.update(chunk)
            yield chunk
    if found.hexdigest() != digest:
        raise BadMedia(f"{path} was changed while it was being stored")


def _make_durable(folder: Path, key: str) -> None:
    """Bring the file and its names from memory to disk: a job that was paid is about to say it is done."""
    path = folder / key
    for item in (path, *path.parents):
        descriptor = os.open(item, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if item == folder:
            return
