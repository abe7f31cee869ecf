"""The topic of requests vanishes."""

import asyncio
import sys

import orjson

from sceneloom.topics import PROJECT_REQUESTS, topic_name
from tests.faults.arena import Arena
from tests.faults.scenario import scenario
from tests.faults.vanishing import make_anew


@scenario(19, "the topic of requests deleted and made anew", without="topics are known by their ids")
async def request_topic(arena: Arena) -> None:
    """Delete the topic beneath two workers, and make it anew: no request is skipped, no lag is negative."""
    for slot in "ab":
        arena.keep(slot)
    await arena.placed(0, 1)
    first = [f"p{number}" for number in range(8)]
    await arena.order(first)
    await arena.ended(first)
    await make_anew(arena.settings, topic_name(arena.settings, PROJECT_REQUESTS))
    late = [f"late-{number}" for number in range(8)]
    await arena.order(late)
    await arena.ended(late)
    lags = await _lags(arena)
    arena.require(all(lag is None or lag >= 0 for lag in lags), f"lags: {lags}")


async def _lags(arena: Arena) -> list[int | None]:
    """Return the lag of each partition, as the command line tells it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "sceneloom", "lag", "--json"),
        env=arena.environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    output, _ = await process.communicate()
    return [each["lag"] for each in orjson.loads(output)["group"]["partitions"]]
