"""A disk of its own for a test, that is soon full."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(folder: Path, *, megabytes: int) -> Iterator[Path]:
    """Mount a disk of so many *megabytes* at *folder*; skip the test where nothing can be mounted."""
    folder.mkdir(exist_ok=True)
    mount = ["/bin/mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["/bin/umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, *, leave: int = 0) -> Path:
    """Fill *disk* to its last *leave* bytes, and return the file that does it."""
    ballast = disk / "ballast"
    with ballast.open("wb") as file, contextlib.suppress(OSError):
        while os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize > leave:
            os.write(file.fileno(), b"x" * 4096)
    return ballast
