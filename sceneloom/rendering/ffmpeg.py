"""Runs ffmpeg as a child process that ends when its render does."""

import asyncio
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import imageio_ffmpeg

from sceneloom import leash
from sceneloom.rendering.errors import RenderFailed

_KEPT_BYTES = 64 * 1024
_LAST_LINES = 12


async def run_ffmpeg(arguments: Sequence[str], *, folder: Path, about: str, verbose: bool = False) -> str:
    """Run ffmpeg in *folder* and return the end of what it wrote to standard error.

    Cancelling ends ffmpeg before the cancellation goes on. Raises `RenderFailed`, which names *about*.
    """
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-hide_banner", "-nostdin", "-y"]
    command += ["-loglevel", "info" if verbose else "error", "-nostats", *arguments]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", leash.__file__, *command),
        cwd=folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        said = await _tail(process)
        code = await process.wait()
    finally:
        await _end(process)
    if code:
        raise RenderFailed(f"ffmpeg failed on {about}", "\n".join(said.splitlines()[-_LAST_LINES:]))
    return said


async def _tail(process: asyncio.subprocess.Process) -> str:
    stream = process.stderr
    assert stream is not None  # noqa: S101  (asked for as a pipe above)
    kept = b""
    while chunk := await stream.read(_KEPT_BYTES):
        kept = (kept + chunk)[-_KEPT_BYTES:]
    return kept.decode(errors="replace")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    # Shielded: a second cancellation must not leave the child behind. Reading to the end matters:
    # asyncio does not report the exit of a process while one of its pipes is still full.
    await asyncio.shield(process.communicate())


@cache
def ffmpeg_version() -> str:
    """Name the ffmpeg in use: segments of different builds are never joined."""
    return str(imageio_ffmpeg.get_ffmpeg_version())
