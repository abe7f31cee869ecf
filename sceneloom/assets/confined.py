"""Decodes what came from outside in a process that may use only so much memory and time.

A decoder that a hostile file brings to fill the memory, to run for ever, or to crash, ends that process and
nothing else. The file is handed over open, as standard input: no name of it is ever read as an address.
"""

import asyncio
import json
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from models.errors import BadMedia
from sceneloom import leash

MEMORY_BYTES: Final = 2 * 1024**3
"""How much a decoder may ask for: twice what the largest picture or video that is allowed takes."""

CPU_SECONDS: Final = 600
"""How long it may compute: several times what 900 s of video at 1920x1080 take."""

_TRIES: Final = 3
_OF_THE_FILE: Final = frozenset(
    {
        signal.SIGXCPU,
        signal.SIGSEGV,
        signal.SIGABRT,
        signal.SIGBUS,
        signal.SIGILL,
        signal.SIGFPE,
    }
)
"""How a decoder ends that the file has broken; all else, such as being killed, may go well another time."""
_GRACE_SECONDS: Final = 5
"""Between the signal that says why, and SIGKILL."""
_ROOT: Final = Path(__file__).resolve().parents[2]
_TOO_MUCH: Final = "this file needs more memory than any that is sound"


async def confined(
    check: str,
    source: bytes | Path,
    options: Mapping[str, float],
    *,
    memory: int = MEMORY_BYTES,
    seconds: int = CPU_SECONDS,
) -> dict[str, Any]:
    """Return what the function *check* of `sceneloom.assets.checks` finds in *source*, as the child tells it.

    Cancelling ends the child. Raises BadMedia, also where the child did not survive the file.
    """
    left, code, told = _TRIES, -1, b""
    # Whatever else ends the child, such as being killed, says nothing of the file.
    while left and code != 0 and -code not in _OF_THE_FILE:
        left -= 1
        code, told = await _child(source, check, memory=memory, seconds=seconds, options=options)
    if code == -signal.SIGXCPU:
        raise BadMedia(f"this file takes more than {seconds} s to decode")
    if code != 0:
        raise BadMedia(f"this file broke its decoder (exit code {code})")
    answer: dict[str, Any] = json.loads(told)
    if "bad" in answer:
        raise BadMedia(answer["bad"])
    return answer


async def _child(
    source: bytes | Path, check: str, *, memory: int, seconds: int, options: Mapping[str, Any]
) -> tuple[int, bytes]:
    """Return the exit code of one child, and what it told."""
    with await asyncio.to_thread(_opened, source) as file:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", __name__),
            *(str(os.getpid()), str(memory), str(seconds), check, json.dumps(dict(options))),
            stdin=file,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,
        )
    try:
        told, _ = await child.communicate()
    finally:
        if child.returncode is None:
            child.kill()
            await asyncio.shield(asyncio.ensure_future(child.communicate()))
    return int(child.returncode or 0), told


def _environment() -> dict[str, str]:
    """Return what the child needs, and none of our keys."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return kept | {"PYTHONPATH": str(_ROOT), "MALLOC_ARENA_MAX": "2", "OPENBLAS_NUM_THREADS": "1"}


def _opened(source: bytes | Path) -> BinaryIO:
    """Return a file to hand over, which has no name where it was made for that."""
    if isinstance(source, Path):
        return source.open("rb")
    file = tempfile.TemporaryFile()  # noqa: SIM115 -- whoever asked closes it
    file.write(source)
    file.seek(0)
    return file


def answer(check: Callable[..., Any], file: BinaryIO, options: Mapping[str, float]) -> dict[str, Any]:
    """Return what *check* finds in *file*, or under `bad` why it is none of what it should be."""
    try:
        return dict(vars(check(file, **options)))
    except BadMedia as bad:
        return {"bad": str(bad)}
    except MemoryError:
        return {"bad": _TOO_MUCH}


def main(starter: int, memory: int, seconds: int, check: str, options: str) -> None:
    """Check standard input for the process *starter*, and tell it the answer."""
    leash.die_with_starter()
    if os.getppid() != starter:
        sys.exit(1)
    from sceneloom.assets import checks  # noqa: PLC0415 -- it imports this module

    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + _GRACE_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    found = answer(getattr(checks, check), sys.stdin.buffer, json.loads(options))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5])
