"""Tries every way to die, and says what came of it.

Exit code: 0 where everything held, 1 where something did not.
"""

import argparse
import asyncio
import dataclasses
import json
import logging
import shutil
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.faults.arena import Arena, arena
from tests.faults.ground import Ground
from tests.faults.scenario import SCENARIOS, Scenario
from tests.faults.scenarios import load

_FOLDER: Final = Path("out/faults")


@dataclasses.dataclass(kw_only=True, slots=True)
class Result:
    """What came of the runs of one scenario."""

    scenario: int
    name: str
    seed: int
    runs: int = 0
    kills: int = 0
    ok: bool = True
    figures: dict[str, float] = dataclasses.field(default_factory=dict)


def main() -> int:
    """Play the scenarios that were asked for."""
    asked = _arguments()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # brokers and workers die here all the time
    chosen = [SCENARIOS[number] for number in (asked.scenario or sorted(SCENARIOS))]
    return asyncio.run(_play_all(chosen, asked))


def _arguments() -> argparse.Namespace:
    load()
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument(
        "--scenario",
        type=int,
        action="append",
        choices=sorted(SCENARIOS),
        help="only this one; may be repeated",
    )
    parser.add_argument("--seed", type=int, default=1, help="what the dice begin with (%(default)s)")
    parser.add_argument("--runs", type=int, help="how often each is played, instead of its usual number")
    parser.add_argument("--lanes", type=int, default=2, help="so many side by side (%(default)s)")
    parser.add_argument("--json", type=Path, default=Path("faults.json"), help="where the results go")
    parser.add_argument(
        "--unprotected", action="store_true", help="take the protection of each scenario away: it must fail"
    )
    return parser.parse_args()


async def _play_all(chosen: list[Scenario], asked: argparse.Namespace) -> int:
    shutil.rmtree(_FOLDER, ignore_errors=True)
    results: list[Result] = []
    left = iter(chosen)
    async with asyncio.TaskGroup() as group:
        for lane in range(min(asked.lanes, len(chosen))):
            folder = _FOLDER.absolute() / f"lane-{lane}"
            folder.mkdir(parents=True)
            group.create_task(_play_on(folder, left, results, asked))
    return 0 if all(result.ok for result in results) else 1


async def _play_on(
    folder: Path, left: Iterator[Scenario], results: list[Result], asked: argparse.Namespace
) -> None:
    """Play one after another of what is *left*, on ground of its own in *folder*."""
    ground = Ground(folder)
    try:
        for each in left:
            results.append(await _play(ground, folder, each, asked))
            results.sort(key=lambda result: result.scenario)
            asked.json.write_text(json.dumps([dataclasses.asdict(r) for r in results], indent=2) + "\n")
    finally:
        await ground.close()


async def _play(ground: Ground, lane: Path, chosen: Scenario, asked: argparse.Namespace) -> Result:
    result = Result(scenario=chosen.number, name=chosen.name, seed=asked.seed)
    begun = time.monotonic()
    for run in range(asked.runs or chosen.runs):
        seed = asked.seed + run
        folder = lane / f"s{chosen.number:02d}-{seed}"
        faults = await _run(ground, chosen, folder, seed, result, unprotected=asked.unprotected)
        result.runs += 1
        if faults:
            result.ok = False
            _say(f"   seed {seed}: " + "\n            ".join(faults))
            _say(f"   again: make faults SCENARIO={chosen.number} SEED={seed}; logs in {_shown(folder)}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    result.figures["seconds"] = round(time.monotonic() - begun, 1)
    _say(_line(result))
    return result


async def _run(
    ground: Ground, chosen: Scenario, folder: Path, seed: int, result: Result, *, unprotected: bool
) -> list[str]:
    try:
        async with arena(ground, folder, seed=seed, nodes=chosen.nodes, changes=chosen.changes) as stage:
            stage.without = chosen.without if unprotected else ""
            try:
                await chosen.play(stage)
                return await stage.judge()
            finally:
                _add(result, stage)
    except AssertionError as error:
        return [str(error)]
    except Exception:  # noqa: BLE001 -- a scenario that breaks has failed, and the others go on
        return [traceback.format_exc()]


def _add(result: Result, stage: Arena) -> None:
    result.kills += stage.kills
    figures = stage.figures | ({"restarts": stage.restarts} if stage.restarts else {})
    for name, value in figures.items():
        worst = max(result.figures.get(name, value), value)
        result.figures[name] = worst if name.endswith("_s") else round(result.figures.get(name, 0) + value, 2)


def _line(result: Result) -> str:
    figures = ", ".join(f"{name} {value:g}" for name, value in result.figures.items())
    verdict = "ok    " if result.ok else "FAILED"
    return (
        f"{result.scenario:2d}  {verdict}  {result.name}: seed {result.seed}, runs {result.runs}, "
        f"kills {result.kills}; {figures}"
    )


def _shown(folder: Path) -> Path:
    return folder.relative_to(Path.cwd())


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
