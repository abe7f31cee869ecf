from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from models.job import Job
from sceneloom.operations.latest import Latest, newest
from tests.models.test_job import a_job


async def history(*rows: tuple[str, bytes | None]) -> AsyncIterator[Any]:
    for key, value in rows:
        yield SimpleNamespace(key=key.encode(), value=value, timestamp=0)


def row(**changes: Any) -> bytes:
    return a_job(**changes).model_dump_json().encode()


async def read(*rows: tuple[str, bytes | None]) -> Latest[Job]:
    return await newest(history(*rows), Job.model_validate_json)


async def test_the_last_row_of_each_key_is_read() -> None:
    latest = await read(("a", row(version=1)), ("b", row(version=7)), ("a", row(version=2)))
    assert sorted(job.version for job in latest.values) == [2, 7]
    assert latest.unreadable == 0


async def test_an_older_version_that_a_late_worker_wrote_last_does_not_win() -> None:
    latest = await read(("a", row(version=5, progress=0.5)), ("a", row(version=3)))
    assert [(job.version, job.progress) for job in latest.values] == [(5, 0.5)]


async def test_a_row_written_twice_with_the_same_version_counts_as_the_later_one() -> None:
    latest = await read(("a", row(version=5)), ("a", row(version=5, progress=0.5)))
    assert [job.progress for job in latest.values] == [0.5]


async def test_a_tombstone_removes_its_row_and_a_new_one_may_follow() -> None:
    assert (await read(("a", row(version=5)), ("a", None))).values == ()
    latest = await read(("a", row(version=5)), ("a", None), ("a", row(version=1)))
    assert [job.version for job in latest.values] == [1]


async def test_a_row_that_cannot_be_read_is_counted_until_a_readable_one_follows() -> None:
    assert (await read(("a", b"{"), ("b", b"[]"), ("b", b"{"))).unreadable == 2
    assert (await read(("a", b"{"), ("a", row()))).unreadable == 0
    newer = await read(("a", row(version=4)), ("a", b'{"version": 5}'))
    assert (newer.unreadable, newer.values) == (1, ())


@pytest.mark.parametrize(
    "value", [b"{", b"[]", b"3", b"{}", b'{"version": null}', b'{"version": "x"}', b"\xff"]
)
async def test_what_has_no_version_hides_nothing(value: bytes) -> None:
    latest = await read(("a", row(version=4)), ("a", value))
    assert (latest.unreadable, [job.version for job in latest.values]) == (1, [4])
