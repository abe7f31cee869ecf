"""Child processes that never outlive their use: killed on cancellation, and with us when we are killed."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

_ROOT: Final = Path(__file__).resolve().parents[2]

_SECRETIVE: Final = ("SCENELOOM_", "AWS_", "AZURE_", "GOOGLE_", "OTEL_")
"""What begins so may hold a key, and no child of ours reads it."""

# Runs before the program itself, so that nothing of ours executes between fork and exec (a threaded
# parent must not). The kernel keeps the setting across exec.
_LEASH: Final = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


class Finished(NamedTuple):
    """How a child ended and what it wrote."""

    status: int
    output: bytes
    complaint: str


def leashed(command: Sequence[str]) -> list[str]:
    """Return *command* (an absolute program and its arguments) so that on Linux it dies with this process."""
    if sys.platform != "linux":
        return list(command)
    return [sys.executable, "-I", "-S", "-c", _LEASH, str(os.getpid()), *command]


def python_module(module: str) -> list[str]:
    """Return the leashed command that runs *module* of this project with this interpreter."""
    return leashed([sys.executable, "-P", "-m", module])


def child_environment() -> dict[str, str]:
    """Return the environment of our Python children: they find this project, no network, no keys."""
    harmless = {name: value for name, value in os.environ.items() if not name.startswith(_SECRETIVE)}
    return harmless | {
        "PYTHONPATH": str(_ROOT),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


async def run(command: Sequence[str], given: bytes = b"") -> Finished:
    """Run *command* with *given* on its stdin until it ends; cancelling kills it first."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=child_environment(),
        start_new_session=True,
    )
    try:
        output, complaint = await process.communicate(given)
    except BaseException:
        await end(process)
        raise
    return Finished(process.returncode or 0, output, complaint.decode(errors="replace"))


async def end(process: asyncio.subprocess.Process) -> None:
    """Kill *process* if it still runs, and reap it, also while we are being cancelled."""
    if process.returncode is None:
        process.kill()
    await asyncio.shield(asyncio.ensure_future(process.communicate()))
