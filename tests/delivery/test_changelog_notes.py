import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP
from hypothesis import given
from hypothesis import strategies as st

from sceneloom.changelog_notes import LONGEST_NOTE, ChangelogNotes, Extent, read_note, write_note
from tests.delivery.fakes import PARTITION, FakeThread, Rig


class Worker(Rig):
    """A worker with one table; several of one name share what *broker* holds."""

    def __init__(self, name: str, broker: FakeThread | None = None) -> None:
        super().__init__(name=name)
        self.table = self.delivery.table("rows", partitions=1, key_type=bytes, value_type=bytes)
        self.changelog = TP(self.table.changelog_topic_name, 0)
        if broker is not None:
            self.thread = broker
            self.consumer._thread = broker  # type: ignore[assignment]  # speaks the part that is used
        self._queued: list[asyncio.Future[Any]] = []
        self.producer.send_soon = self._queued.append  # type: ignore[attr-defined]

    async def write_row(self, offset: int) -> None:
        self.table.send_changelog(0, b"key", b"1")
        self._queued.pop().set_result(SimpleNamespace(topic=self.changelog.topic, partition=0, offset=offset))
        await asyncio.sleep(0)
        self.thread.ends[self.changelog] = max(offset + 1, self.thread.ends.get(self.changelog, 0))

    async def process(self, offset: int) -> None:
        self.finish(*self.hand_out(offset))
        assert await self.consumer.commit()

    async def finds_all_rows(self) -> bool:
        """Tell whether a recovery of the table may begin; otherwise the worker ends."""
        asking = asyncio.ensure_future(self.consumer.highwaters(self.changelog))
        await asyncio.wait({asking}, timeout=1)
        answered = asking.done()
        asking.cancel()
        assert answered is not bool(self.app.crashed)
        return answered


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("sceneloom.changelog_check._LOOK_SECONDS", 0.0)
    caplog.set_level(logging.WARNING)


@pytest.fixture
async def before(unique: str) -> Worker:
    """A worker that wrote rows to offset 7, and committed."""
    worker = Worker(unique)
    await worker.consumer.perform_seek()
    await worker.write_row(6)
    await worker.write_row(7)
    await worker.process(0)
    return worker


async def test_a_commit_notes_the_last_acknowledged_row_of_its_partition(before: Worker) -> None:
    assert read_note(before.thread.notes[PARTITION]) == {before.changelog.topic: Extent(0, 7)}


async def test_a_changelog_with_all_rows_is_read(before: Worker, unique: str) -> None:
    assert await Worker(unique, before.thread).finds_all_rows()


@pytest.mark.parametrize("end", [0, 1, 7])
async def test_a_changelog_that_ends_before_a_row_that_was_acknowledged_ends_the_worker(
    before: Worker, unique: str, end: int, caplog: pytest.LogCaptureFixture
) -> None:
    before.thread.ends[before.changelog] = end
    assert not await Worker(unique, before.thread).finds_all_rows()
    assert (
        f"the changelog {before.changelog.topic}[0] has lost rows: it ends at offset {end}, though a row at "
        "offset 7 was acknowledged; restore the topic from a backup" in caplog.text
    )


async def test_a_changelog_whose_beginning_was_deleted_ends_the_worker(
    before: Worker, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    before.thread.earliest = 3
    assert not await Worker(unique, before.thread).finds_all_rows()
    assert "[0] has lost rows: it begins at offset 3 instead of 0" in caplog.text


async def test_a_beginning_that_a_person_has_accepted_is_no_loss(before: Worker, unique: str) -> None:
    before.thread.earliest = 3
    before.thread.notes[PARTITION] = write_note({before.changelog.topic: Extent(3, 7)})
    assert await Worker(unique, before.thread).finds_all_rows()


async def test_a_commit_of_a_worker_that_wrote_no_row_keeps_what_was_noted_before(
    before: Worker, unique: str
) -> None:
    second = Worker(unique, before.thread)
    assert await second.finds_all_rows()
    await second.consumer.perform_seek()
    await second.process(1)
    before.thread.ends[before.changelog] = 7
    assert not await Worker(unique, before.thread).finds_all_rows()


@pytest.mark.parametrize(
    "note", ["", "of another tool", "[1]", '{"changelogs": 1}', '{"changelogs": {"x": 1}}']
)
async def test_commits_without_a_note_are_fine_and_the_next_ones_have_it(
    before: Worker, unique: str, note: str
) -> None:
    before.thread.notes[PARTITION] = note
    second = Worker(unique, before.thread)
    assert await second.finds_all_rows()
    await second.consumer.perform_seek()
    await second.process(1)
    assert read_note(before.thread.notes[PARTITION]) == {before.changelog.topic: Extent(0, 7)}


async def test_a_row_that_was_not_acknowledged_is_not_noted(before: Worker) -> None:
    before.table.send_changelog(0, b"key", b"1")
    assert read_note(before.delivery._notes.note(0))[before.changelog.topic].last == 7


async def test_a_table_on_disk_that_is_ahead_of_its_changelog_ends_the_worker(
    before: Worker, unique: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    second = Worker(unique, before.thread)
    monkeypatch.setattr(second.table, "persisted_offset", lambda _tp: 8)
    assert not await second.finds_all_rows()
    assert "ends at offset 8, though the table on disk has rows to offset 8" in caplog.text


async def test_a_leader_that_does_not_know_all_rows_yet_is_asked_again(
    before: Worker, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends, answers = before.thread.highwaters, iter([7, 7])

    async def late(*tps: TP) -> Any:
        return {**await ends(*tps), **({before.changelog: end} if (end := next(answers, None)) else {})}

    monkeypatch.setattr(before.thread, "highwaters", late)
    assert await Worker(unique, before.thread).finds_all_rows()


async def test_notes_that_the_broker_does_not_tell_in_time_are_not_taken_for_none(
    before: Worker, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    before.thread.answers_late = True
    second = Worker(unique, before.thread)
    second.app.conf.broker_request_timeout = 0.05
    assert not await second.finds_all_rows()
    assert "the broker did not say in time where the changelogs end" in caplog.text


@pytest.mark.parametrize("question", ["earliest_offsets", "seek_wait"])
async def test_a_recovery_does_not_go_on_without_an_answer(
    unique: str, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def for_ever(*_: object) -> None:
        await asyncio.Event().wait()

    worker = Worker(unique)
    worker.app.conf.broker_request_timeout = 0.05
    monkeypatch.setattr(worker.thread, question, for_ever)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(getattr(worker.consumer, question)({}), 1)
    assert worker.app.crashed


def test_notes_of_other_partitions_stay_with_them() -> None:
    notes = ChangelogNotes()
    notes.acknowledged(TP("jobs", 1), 5)
    notes.acknowledged(TP("jobs", 2), 9)
    assert read_note(notes.note(1)) == {"jobs": Extent(0, 5)}
    assert notes.note(0) == ""


@given(
    st.dictionaries(
        st.text(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", min_size=1, max_size=249
        ),
        st.tuples(st.integers(0, 2**63 - 1), st.integers(-1, 2**63 - 1)).map(lambda pair: Extent(*pair)),
        max_size=8,
    )
)
def test_a_note_of_eight_tables_with_the_longest_names_is_read_back_and_fits(
    extents: dict[str, Extent],
) -> None:
    note = write_note(extents)
    assert read_note(note) == extents
    assert len(note.encode()) <= LONGEST_NOTE
