"""What a command needs that runs the whole system itself: a folder, an eye on the worker, a polite end."""

import asyncio
import contextlib
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

from sceneloom.cli import console
from sceneloom.cli.outcomes import Outcome, Stop
from sceneloom.demo import Demo

_MOST_SECONDS: Final = 300.0

T = TypeVar("T")


@contextlib.contextmanager
def workplace(*, keep: bool) -> Iterator[Path]:
    """Make a folder, and remove it at the end unless it is to be kept, or something broke."""
    folder = Path(tempfile.mkdtemp(prefix="sceneloom-demo-"))
    try:
        yield folder
    except (KeyboardInterrupt, Stop):
        _clear(folder, keep=keep)
        raise
    except Exception:
        console.note(f"the logs are in {folder}")
        raise
    _clear(folder, keep=keep)


def end_politely() -> None:
    """Let SIGTERM and SIGHUP take the way of Ctrl-C, which leaves no process behind."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, signal.raise_signal, signal.SIGINT)


@contextlib.asynccontextmanager
async def meanwhile(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Do *work* beside the block, and give it up where the block ends first."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])


async def unless_it_dies(demo: Demo, work: Coroutine[Any, Any, T]) -> T:
    """Await *work*. Raises `WorkerDied` where the worker ends by itself, `Stop` where it takes for ever."""
    doing = asyncio.create_task(work)
    guarding = asyncio.create_task(demo.guard())
    try:
        done, _ = await asyncio.wait(
            [doing, guarding], timeout=_MOST_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        if not done:
            raise Stop(
                f"the film is not finished after {_MOST_SECONDS:g} s; {demo.log} ends with:\n"
                f"{demo.last_lines()}",
                Outcome.TIMED_OUT,
            )
        return await (doing if doing in done else guarding)
    finally:
        for task in (doing, guarding):
            task.cancel()
        await asyncio.gather(doing, guarding, return_exceptions=True)


def _clear(folder: Path, *, keep: bool) -> None:
    if keep:
        console.note(f"kept: {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
