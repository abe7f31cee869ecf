"""A new release comes in mid-flight, and goes again."""

import asyncio
import signal

from tests.faults.arena import Arena
from tests.faults.scenario import scenario


@scenario(
    21,
    "a new release deployed and rolled back in mid-flight",
    without="fields of newer releases are ignored",
)
async def releases(arena: Arena) -> None:
    """Let old and new workers follow each other, each on what the other has left unfinished."""
    worker = arena.worker("only", SCENELOOM_INSTANCE="only")
    for number in range(4):
        await arena.order([f"p{number}"], clips=2)
        await arena.accepted(2 * number + arena.random.randint(1, 2))
        if number % 2:
            arena.kill(worker)
        else:
            worker.send_signal(signal.SIGTERM)
            await asyncio.to_thread(worker.wait, 60)
        release = "" if number % 2 else "next"
        worker = arena.worker("only", SCENELOOM_INSTANCE="only", FAULT_RELEASE=release)
    await arena.ended(arena.prompts.values())
