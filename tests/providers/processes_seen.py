"""Looks at the processes of this machine through /proc."""

import asyncio
import os
import time
from pathlib import Path

PATIENCE = 20.0


def children_of(pid: int) -> set[int]:
    """Return the ids of the living processes whose parent is *pid*."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == pid and state != "Z":
            found.add(int(stat.parent.name))
    return found


def our_children() -> set[int]:
    return children_of(os.getpid())


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def until(condition: object) -> bool:
    """Look at *condition* again and again until it holds, for a bounded time."""
    assert callable(condition)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if condition():
            return True
        await asyncio.sleep(0.01)
    return False
