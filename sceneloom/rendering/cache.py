"""Keeps encoded segments between renders, and tells whole files from damaged ones."""

import asyncio
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Protocol, runtime_checkable

_SEAL_BOX = (8 + hashlib.sha256().digest_size).to_bytes(4, "big") + b"free"
_SEAL_BYTES = len(_SEAL_BOX) + hashlib.sha256().digest_size


@runtime_checkable
class SegmentCache(Protocol):
    """Keeps segments under the hash of everything that went into them."""

    async def fetch(self, key: str, path: Path) -> bool:
        """Write the segment kept under *key* to *path*; return False where there is none."""
        ...

    async def keep(self, key: str, path: Path) -> None:
        """Keep the file at *path* under *key*, whole or not at all, replacing what was there."""
        ...


class FolderCache:
    """A `SegmentCache` in a local folder, which many renders may share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def fetch(self, key: str, path: Path) -> bool:
        """Copy the segment kept under *key* to *path*; return False where there is none."""
        try:
            await asyncio.to_thread(shutil.copyfile, self._place(key), path)
        except FileNotFoundError:
            return False
        return True

    async def keep(self, key: str, path: Path) -> None:
        """Keep a copy of *path*: it appears under its name only when it is complete."""
        await asyncio.to_thread(publish, path, self._place(key))

    def _place(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.mp4"


def publish(source: Path, target: Path) -> None:
    """Copy *source* to *target* so that no reader ever sees half of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".part-", dir=target.parent)
    os.close(handle)
    part = Path(name)
    try:
        shutil.copyfile(source, part)
        part.chmod(0o644)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def seal(path: Path) -> None:
    """Append the hash of an MP4 file to it, as a `free` box: players skip it (ISO/IEC 14496-12, 8.1.2)."""
    digest = hashlib.sha256(path.read_bytes()).digest()
    with path.open("ab") as file:
        file.write(_SEAL_BOX + digest)


def is_sealed(path: Path) -> bool:
    """Tell whether the file at *path* is, to the last bit, the one that was sealed."""
    content = path.read_bytes()
    body, box = content[:-_SEAL_BYTES], content[-_SEAL_BYTES:]
    return box == _SEAL_BOX + hashlib.sha256(body).digest()
