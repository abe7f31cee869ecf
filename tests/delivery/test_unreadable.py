"""A row that cannot be read ends the worker, and is never missing."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP
from pydantic import TypeAdapter
from yarl import URL

from sceneloom.codec import RowCodec, version_of
from sceneloom.durable_table import DurableTable
from sceneloom.unreadable import RowUnreadable
from tests.delivery.fakes import Rig

GOOD, BETTER = b'{"version": 1}', b'{"version": 3}'
NEWER = b'{"version": "two"}'
DAMAGED = b'{"ver'


class Numbered(RowCodec):
    def __init__(self) -> None:
        super().__init__(dict[str, int])

    def _dumps(self, s: Any) -> bytes:
        return TypeAdapter(dict[str, int]).dump_json(s)


def event(value: bytes | None, offset: int, partition: int = 0) -> Any:
    message = SimpleNamespace(
        key=b"p1",
        value=value,
        topic="rows-changelog",
        partition=partition,
        offset=offset,
        tp=TP("rows-changelog", partition),
    )
    return SimpleNamespace(message=message, key=b"p1", value=value)


def table_of(rig: Rig, **options: Any) -> DurableTable:
    return rig.delivery.table(
        "rows",
        partitions=2,
        key_type=bytes,
        key_serializer="raw",
        value_serializer=Numbered(),
        version_of=version_of,
        default=None,
        **options,
    )


async def recovered(table: DurableTable, *active: int) -> bool:
    """Tell whether the recovery of *active* partitions comes to its end."""
    here = {TP("rows-changelog", partition) for partition in active}
    ends = asyncio.ensure_future(table.on_recovery_completed(here, set()))
    await asyncio.wait({ends}, timeout=0.2)
    ended = ends.done()
    ends.cancel()
    return ended


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize("row", [NEWER, DAMAGED])
async def test_a_recovery_with_an_unreadable_row_never_ends_and_the_worker_does(
    row: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    rig = Rig()
    table = table_of(rig)
    table.apply_changelog_batch([event(GOOD, 4), event(row, 5)])

    assert not await recovered(table, 0)

    assert "table rows, key 'p1', partition 0, offset 5: " in caplog.text
    assert "Start the release that wrote it" in caplog.text
    assert rig.delivery.failure is not None


async def test_what_can_be_read_later_was_never_in_the_way() -> None:
    rig = Rig()
    table = table_of(rig)
    table.apply_changelog_batch([event(GOOD, 4), event(NEWER, 5)])
    table.apply_changelog_batch([event(BETTER, 6)])

    assert await recovered(table, 0)
    assert table.get(b"p1") == {"version": 3}


async def test_a_row_that_was_removed_is_not_in_the_way_either() -> None:
    rig = Rig()
    table = table_of(rig)
    table.apply_changelog_batch([event(NEWER, 5), event(None, 6)])

    assert await recovered(table, 0)
    assert table.get(b"p1") is None


async def test_an_unreadable_row_of_a_partition_kept_warm_for_another_worker_ends_nobody() -> None:
    rig = Rig()
    table = table_of(rig)
    table.apply_changelog_batch([event(NEWER, 5, partition=1)])

    assert await recovered(table, 0)
    assert not await recovered(table, 0, 1), "until this worker is the one that works on it"


async def test_an_unreadable_row_on_the_disk_is_named_when_it_is_looked_at(tmp_path: Any) -> None:
    rig = Rig()
    rig.app.conf.datadir = tmp_path
    rig.app.conf.store = URL("rocksdb://")
    table = table_of(rig)
    rig.app.assignor.assigned_actives = lambda: {TP(table.changelog_topic_name, 0)}  # type: ignore[method-assign]
    table.apply_changelog_batch([event(GOOD, 4), event(NEWER, 5)])
    before, table._unreadable = table.unreadable, None  # as after a restart, with nothing new to recover
    assert before.among({0})

    with pytest.raises(RowUnreadable, match="table rows, key 'p1', partition 0, on disk since"):
        table.get(b"p1")
    with pytest.raises(RowUnreadable, match="table rows, key 'p1', partition 0, on disk since"):
        table.values()


async def test_a_row_that_a_woken_worker_wrote_is_left_out_by_a_warm_copy_too(tmp_path: Any) -> None:
    rig = Rig()
    rig.app.conf.datadir = tmp_path
    rig.app.conf.store = URL("rocksdb://")
    table = table_of(rig)
    rig.app.assignor.assigned_actives = lambda: {TP(table.changelog_topic_name, 0)}  # type: ignore[method-assign]
    table.apply_changelog_batch([event(BETTER, 4)])
    assert await recovered(table, 0)

    table.apply_changelog_batch([event(GOOD, 5)])  # the next recovery reads on from there

    assert table.get(b"p1") == {"version": 3}
