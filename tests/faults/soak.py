"""Kills workers without end, at random points and moments, and judges again and again.

Exit code: 0 where I1 to I5 held to the end, 1 where one did not.
"""

import argparse
import asyncio
import dataclasses
import itertools
import json
import logging
import random
import shutil
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.faults.arena import Arena, arena
from tests.faults.ground import Ground
from tests.faults.worker import POINTS

_FOLDER: Final = Path("out/soak")
_ROUND_KILLS: Final = 40
_OPEN: Final = 3
"""So many projects are kept open in each arena while its workers die."""
_LIVES_SECONDS: Final = (2.0, 9.0)
_WORKERS: Final = (1, 2, 1)
"""How many workers each of the arenas side by side has: one by itself, or one and a peer."""


@dataclasses.dataclass(kw_only=True, slots=True)
class Soak:
    """What has happened so far, in all arenas."""

    seed: int
    minutes: float
    kills: int = 0
    restarts: int = 0
    rounds: int = 0
    projects: int = 0
    accepted: int = 0
    billed_usd: float = 0.0
    settled_s: float = 0.0
    """The longest time from the last kill of a round until all its projects had ended."""
    violations: list[str] = dataclasses.field(default_factory=list)


def main() -> int:
    """Soak for the minutes that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (%(default)g)")
    parser.add_argument("--kills", type=int, help="end after so many kills instead")
    parser.add_argument("--seed", type=int, default=1, help="what the dice begin with (%(default)s)")
    parser.add_argument("--json", type=Path, default=Path("soak.json"), help="where the result goes")
    asked = parser.parse_args()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    soak = Soak(seed=asked.seed, minutes=asked.minutes)
    shutil.rmtree(_FOLDER, ignore_errors=True)
    _FOLDER.mkdir(parents=True)
    asyncio.run(_soak(soak, asked.kills))
    asked.json.write_text(json.dumps(dataclasses.asdict(soak), indent=2) + "\n")
    return 1 if soak.violations else 0


async def _soak(soak: Soak, most_kills: int | None) -> None:
    ground, begun = Ground(_FOLDER.absolute()), time.monotonic()

    def goes_on() -> bool:
        is_time_up = time.monotonic() - begun > soak.minutes * 60 if most_kills is None else False
        return not (is_time_up or soak.violations or (most_kills or sys.maxsize) <= soak.kills)

    try:
        await ground.cluster(1)
        async with asyncio.TaskGroup() as group:
            for number, workers in enumerate(_WORKERS):
                group.create_task(_arena_of(soak, ground, number, workers, goes_on))
    finally:
        await ground.close()
        soak.minutes = round((time.monotonic() - begun) / 60, 1)


async def _arena_of(
    soak: Soak, ground: Ground, number: int, workers: int, goes_on: Callable[[], bool]
) -> None:
    for turn in itertools.count():
        if not goes_on():
            return
        seed = soak.seed * 1000 + number * 100 + turn
        folder = _FOLDER.absolute() / f"soak-{seed}"
        try:
            async with arena(ground, folder, seed=seed, nodes=1, changes={}) as stage:
                faults = await _round(soak, stage, workers)
        except Exception:  # noqa: BLE001 -- a round that breaks ends the soak, and says why
            faults = [traceback.format_exc()]
        soak.rounds += 1
        soak.violations += faults
        if not faults:
            shutil.rmtree(folder, ignore_errors=True)
        _say(soak, faults, folder)


async def _round(soak: Soak, stage: Arena, workers: int) -> list[str]:
    """Kill so many times, let everything end, and judge."""
    lives = [asyncio.create_task(_lives(soak, stage, f"slot-{each}", workers)) for each in range(workers)]
    customers = asyncio.create_task(_orders(soak, stage))
    try:
        await asyncio.gather(*lives)
        customers.cancel()
        for slot in range(workers):
            stage.keep(f"slot-{slot}", SCENELOOM_INSTANCE=f"slot-{slot}")
        await stage.ended(set(stage.prompts.values()))
    except AssertionError as error:
        return [str(error)]
    finally:
        customers.cancel()
        soak.restarts += stage.restarts
    faults = await stage.judge()
    soak.accepted += int(stage.figures["accepted"])
    soak.billed_usd = round(soak.billed_usd + stage.figures["billed_usd"], 2)
    soak.settled_s = max(soak.settled_s, stage.figures["settled_s"])
    return faults


async def _lives(soak: Soak, stage: Arena, slot: str, workers: int) -> None:
    """Let workers live and die in one place: at a point, or after a while."""
    dice = random.Random(f"{stage.seed} {slot}")  # noqa: S311 -- it must fall the same way again
    for _ in range(_ROUND_KILLS // workers):
        fault: dict[str, str] = {}
        if dice.random() < 0.5:
            fault = {"FAULT_POINT": dice.choice(sorted(POINTS)), "FAULT_HIT": str(dice.randint(1, 6))}
        worker = stage.worker(slot, SCENELOOM_INSTANCE=slot, **fault)
        if not await stage.died(worker, seconds=dice.uniform(*_LIVES_SECONDS)):
            if (code := worker.poll()) is not None:
                stage.restarts += 1
                stage.require(code > 0, f"a worker ended with {code}, which nobody asked for")
                continue
            stage.kill(worker)
        soak.kills += 1


async def _orders(soak: Soak, stage: Arena) -> None:
    """Keep some projects open."""
    for number in itertools.count():
        # Who is told to stop has ordered wholly, or not at all: what was not sent would be waited for.
        await asyncio.shield(stage.order([f"p{number}"], clips=stage.random.choice((1, 2))))
        soak.projects += 1
        await stage.reach(lambda: _open(stage) < _OPEN, "a project ended among all the kills", seconds=600)


def _open(stage: Arena) -> int:
    return sum(not stage.witness.has_ended(name) for name in set(stage.prompts.values()))


def _say(soak: Soak, faults: list[str], folder: Path) -> None:
    done = f"{soak.kills} kills, {soak.rounds} rounds, {soak.projects} projects"
    paid = f"{soak.accepted} accepted, ${soak.billed_usd} billed"
    lines = [f"{done}, {paid}, settled within {soak.settled_s:g} s"]
    lines += [f"   {fault}" for fault in faults] + [f"   logs in {folder}"] * bool(faults)
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
