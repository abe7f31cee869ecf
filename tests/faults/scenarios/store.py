"""The disk fails: folders of tables that are gone or corrupt."""

import asyncio
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

from models.job_events import JobSubmitted
from sceneloom.topics import JOBS_TABLE, changelog_name
from tests.faults.arena import COMMIT_SECONDS, Arena
from tests.faults.scenario import scenario
from tests.faults.scenarios.provider import play
from tests.faults.vanishing import backup, make_anew, put_back


@scenario(17, "the folder of the tables deleted, and corrupt", runs=2, without="damaged tables are read anew")
async def broken_folder(arena: Arena) -> None:
    """End a worker, spoil its folder, start it again: the tables come back, and nothing is bought again."""
    arena.worker("only", SCENELOOM_INSTANCE="only")
    names = [f"p{number}" for number in range(4)]
    await arena.placed(0)
    ways: list[Callable[[Path], None]] = [shutil.rmtree, _spoil_files, _spoil_current]
    arena.random.shuffle(ways)
    for number, way in enumerate(ways):
        await arena.order([names[number]], clips=2)
        await arena.accepted(2 * number + 1)
        await _ended(arena, in_good_order=way is not shutil.rmtree)
        way(arena.folder / "only" / "tables")
        arena.worker("only", SCENELOOM_INSTANCE="only")
        await arena.reach(partial(_has_taken_up, arena, arena.started - 1), "the worker took up its work")
    await arena.ended(arena.prompts.values())


async def _ended(arena: Arena, *, in_good_order: bool) -> None:
    """End the last worker; a copy of the tables is used again only where that was in good order."""
    worker = arena.workers[-1]
    if not in_good_order:
        arena.kill(worker)
        return
    worker.send_signal(signal.SIGTERM)
    await asyncio.to_thread(worker.wait, 60)


def _has_taken_up(arena: Arena, first: int) -> bool:
    """Tell whether a worker from number *first* on holds all partitions; one may have ended meanwhile."""
    wanted = f"held={arena.settings.partitions}"
    return any(wanted in arena.log(number) for number in range(first, arena.started))


def _spoil_files(tables: Path) -> None:
    """Write over the middle of every file that holds rows."""
    for file in [*tables.rglob("*.sst"), *tables.rglob("*.log"), *tables.rglob("MANIFEST*")]:
        size = file.stat().st_size
        with file.open("r+b") as spoiled:
            spoiled.seek(size // 3)
            spoiled.write(b"\xde\xad" * max(8, size // 8))


def _spoil_current(tables: Path) -> None:
    """Let the store's first file point nowhere."""
    for file in tables.rglob("CURRENT"):
        file.write_bytes(b"MANIFEST-999999\n")


@scenario(
    18,
    "a changelog deleted and made anew beneath open work, then restored",
    without="changelogs must hold what was acknowledged",
)
async def lost_changelog(arena: Arena) -> None:
    """Make the changelog of the jobs anew: workers stop loudly and buy nothing, until it is restored."""
    topic = changelog_name(arena.settings, JOBS_TABLE)
    names = [f"p{number}" for number in range(3)]
    worker = arena.worker("only")
    await arena.placed(0)
    play(arena, running=5)
    await arena.order(names, clips=2)
    await arena.accepted(6)
    await arena.reach(lambda: _known(arena) == 6, "all tasks are known")
    await asyncio.sleep(3 * COMMIT_SECONDS)  # the notes go with commits, and a worker idles after them
    arena.kill(worker)
    kept = await backup(arena.settings, topic)
    await make_anew(arena.settings, topic)
    worker = arena.worker("only")
    code = await asyncio.to_thread(worker.wait, 60)
    arena.require(code > 0, f"a worker on a changelog without rows ended with {code}")
    arena.require("has lost rows" in arena.log(1), "no line says that the changelog has lost rows")
    arena.require(len(arena.provider.ledger.accepted()) == 6, "bought again after a changelog was lost")
    await put_back(arena.settings, topic, kept)
    arena.keep("only")
    await arena.ended(names)
    arena.figures["rows_restored"] = len(kept)


def _known(arena: Arena) -> int:
    return sum(isinstance(event, JobSubmitted) for event in arena.witness.job_events)
