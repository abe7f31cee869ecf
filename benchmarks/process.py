"""What this process uses."""

import asyncio
import resource
import sys
import time


def peak_megabytes() -> float:
    """Return the most memory that this process ever held, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e6 / 1024)


async def bare_task_microseconds(count: int = 50_000) -> float:
    """Return the CPU time of one asyncio task that does nothing: the unit that makes machines comparable."""

    async def nothing() -> None:
        await asyncio.sleep(0)

    loop, began = asyncio.get_running_loop(), time.process_time()
    for _ in range(count // 1000):
        await asyncio.wait([loop.create_task(nothing()) for _ in range(1000)])
    return (time.process_time() - began) / count * 1e6


def share(values: list[float], part: float) -> float:
    """Return the value below which *part* (0 to 1) of the sorted *values* lie."""
    return values[min(len(values) - 1, int(part * len(values)))] if values else 0.0
