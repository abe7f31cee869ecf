"""The tables on disk are a copy: whatever becomes of them, the changelog gives them back."""

import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tests.delivery.stage import Stage, counts, kill
from tests.delivery.test_on_kafka import ended
from tests.delivery.worker import Plan
from tests.kafka_fixtures import TestBroker
from tests.small_disk import fill, small_disk

pytestmark = pytest.mark.kafka

ANEW = "its tables are read from the changelogs anew"


@pytest.fixture
async def stage(broker: TestBroker, unique: str, tmp_path: Path) -> AsyncIterator[Stage]:
    """A stage whose workers process a number once, as long as they have its row."""
    plan = Plan(
        broker=broker.url,
        prefix=unique,
        folder=str(tmp_path),
        partitions=1,
        store="rocksdb",
        data=str(tmp_path / "data"),
        once=True,
        ack_timeout=5,
        request_timeout=4,
    )
    async with Stage(broker.bootstrap, plan) as stage:
        yield stage


async def stopped(worker: subprocess.Popen[bytes]) -> None:
    worker.terminate()
    assert await ended(worker, seconds=90) == 0


async def goes_on(stage: Stage) -> str:
    """Send every number of before once more, and one that is new: only that one may count. Return the log."""
    await stage.publish(range(21))
    worker = stage.start_worker()
    assert await stage.commit_reaches(41)
    assert await stage.rows() == {str(n): 1 for n in range(21)}, "every number was done once"
    written = [m.key for m in await stage.read_to_end(stage.plan.changelog)]
    assert len(written) == 21
    kill(worker)
    return stage.log_of(worker)


def table_of(stage: Stage) -> Path:
    (folder,) = Path(stage.plan.data).glob("**/*-0.db")
    return folder


def overwritten(pattern: str) -> Callable[[Path], None]:
    def overwrite(folder: Path) -> None:
        for file in (found := list(folder.glob(pattern))):
            size = file.stat().st_size
            with file.open("r+b") as content:
                content.seek(size // 3)
                content.write(b"\xde\xad" * max(1, size // 6))
        assert found

    return overwrite


def removed(pattern: str) -> Callable[[Path], None]:
    def remove(folder: Path) -> None:
        for file in (found := list(folder.glob(pattern))):
            file.unlink()
        assert found

    return remove


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(shutil.rmtree, id="the folder is gone"),
        pytest.param(overwritten("CURRENT"), id="CURRENT is overwritten"),
        pytest.param(overwritten("MANIFEST-*"), id="the manifest is overwritten"),
        pytest.param(removed("MANIFEST-*"), id="the manifest is gone"),
        pytest.param(overwritten("*.log"), id="the log is overwritten"),
    ],
)
async def test_a_damaged_copy_is_read_from_the_changelog_anew(
    stage: Stage, damage: Callable[[Path], None]
) -> None:
    await stage.publish(range(20))
    worker = stage.start_worker()
    assert await stage.commit_reaches(20)
    await stopped(worker)
    damage(table_of(stage))
    assert ANEW not in await goes_on(stage)


async def test_the_copy_of_a_worker_that_was_killed_is_not_trusted(stage: Stage) -> None:
    """It may hold rows that never came to the changelog, which another worker would miss for good."""
    await stage.accept_writes(stage.plan.changelog, yes=False)
    await stage.publish(range(5))
    worker = stage.start_worker()
    assert await ended(worker, seconds=90) != 0
    assert await stage.rows() == {}
    await stage.accept_writes(stage.plan.changelog, yes=True)
    worker = stage.start_worker()
    assert await stage.commit_reaches(5)
    assert ANEW in stage.log_of(worker)
    assert await stage.rows() == {str(n): 1 for n in range(5)}


async def test_the_copy_of_a_worker_that_ended_in_good_order_is_used_again(stage: Stage) -> None:
    await stage.publish(range(20))
    worker = stage.start_worker()
    assert await stage.commit_reaches(20)
    await stopped(worker)
    assert ANEW not in await goes_on(stage)


async def test_a_folder_that_is_deleted_while_its_worker_runs_costs_nothing(stage: Stage) -> None:
    await stage.publish(range(20))
    worker = stage.start_worker()
    assert await stage.commit_reaches(20)
    shutil.rmtree(stage.plan.data)
    kill(worker)
    await goes_on(stage)


async def test_two_workers_do_not_share_a_folder(stage: Stage) -> None:
    await stage.publish(range(20))
    first = stage.start_worker()
    assert await stage.commit_reaches(20)
    second = stage.start_worker()
    assert await ended(second, seconds=90) != 0
    assert "another worker keeps its tables in" in stage.log_of(second)
    assert first.poll() is None


@pytest.fixture
def tables_disk(stage: Stage) -> Iterator[Path]:
    with small_disk(Path(stage.plan.data), megabytes=8) as disk:
        yield disk


async def test_a_full_disk_ends_the_worker_with_a_line_and_the_next_goes_on(
    stage: Stage, tables_disk: Path
) -> None:
    await stage.publish(range(20))
    worker = stage.start_worker()
    assert await stage.commit_reaches(20)
    ballast = fill(tables_disk)
    await stage.publish(range(1000, 1600))
    assert await ended(worker, seconds=120) != 0
    log = stage.log_of(worker)
    assert "cannot be processed" in log
    assert "No space left on device" in log
    done = sum((await stage.committed()).values())

    ballast.unlink()
    stage.start_worker()
    assert await stage.commit_reaches(620, seconds=180), done
    numbers = {str(n) for n in (*range(20), *range(1000, 1600))}
    assert await stage.rows() == dict.fromkeys(numbers, 1)
    assert set(counts(await stage.read_to_end(stage.plan.output))) == numbers


async def test_a_disk_that_is_full_during_a_recovery_ends_the_worker_too(
    stage: Stage, tables_disk: Path
) -> None:
    await stage.publish(range(3000))
    worker = stage.start_worker()
    assert await stage.commit_reaches(3000, seconds=120)
    kill(worker)
    shutil.rmtree(table_of(stage))
    ballast = fill(tables_disk, leave=60 * 1024)
    worker = stage.start_worker()
    assert await ended(worker, seconds=120) != 0
    assert "No space left on device" in stage.log_of(worker)

    ballast.unlink()
    await stage.publish(range(3001))
    worker = stage.start_worker()
    assert await stage.commit_reaches(6001, seconds=120)
    assert await stage.rows() == {str(n): 1 for n in range(3001)}
