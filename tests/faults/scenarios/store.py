"""The disk fails: folders of tables that are gone or corrupt."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.faults.arena import Arena
from tests.faults.scenario import scenario


@scenario(17, "the folder of the tables deleted, and corrupt", runs=2)
async def broken_folder(arena: Arena) -> None:
    """Kill a worker, spoil its folder, start it again: the tables come back, and nothing is bought again."""
    arena.worker("only", SCENELOOM_INSTANCE="only")
    names = [f"p{number}" for number in range(4)]
    await arena.placed(0)
    ways: list[Callable[[Path], None]] = [shutil.rmtree, _spoil_files, _spoil_current]
    arena.random.shuffle(ways)
    for number, way in enumerate(ways):
        await arena.order([names[number]], clips=2)
        await arena.accepted(2 * number + 1)
        arena.kill(arena.workers[-1])
        way(arena.folder / "only" / "tables")
        arena.keep("only", SCENELOOM_INSTANCE="only")
        await arena.reach(partial(_has_taken_up, arena, arena.started - 1), "the worker took up its work")
    await arena.ended(arena.prompts.values())


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
