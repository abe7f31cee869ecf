"""Who must be called: lag alone does not tell."""

import pytest
from aiokafka import TopicPartition

from models.lifecycle import JobStatus
from sceneloom.monitoring.group import Look, Member
from sceneloom.monitoring.report import Histories, MemberReport, Report
from sceneloom.monitoring.verdicts import WINDOW, Observation, Verdict
from sceneloom.monitoring.work import WorkBook
from tests.fakes import START
from tests.monitoring.rows import a_job

PLACE = TopicPartition("t", 0)
READ = {PLACE: Observation(at=START, committed=2, begin=0, end=2)}
NOBODY = Histories("g").add(Look("Empty", (), READ, 0))
SOMEBODY = NOBODY.model_copy(
    update={"members": (MemberReport(name="w", member_id="w-1", host="h", partitions=4),)}
)


def work(status: JobStatus) -> WorkBook:
    book = WorkBook()
    book.put_job(b"film-1/scene-001/image", a_job(status=status))
    return book


def test_open_jobs_without_a_worker_are_trouble_though_there_is_no_lag() -> None:
    waiting = work(JobStatus.RUNNING).counts(START)

    assert Report(group=NOBODY, work=waiting).is_trouble
    assert not Report(group=SOMEBODY, work=waiting).is_trouble


def test_without_open_jobs_nobody_is_needed() -> None:
    assert not Report(group=NOBODY, work=work(JobStatus.SUCCEEDED).counts(START)).is_trouble
    assert not Report(group=NOBODY, work=None).is_trouble


def a_look(committed: int | None, end: int, *, worker: bool = False, state: str = "Empty") -> Look:
    seen = {PLACE: Observation(at=START, committed=committed, begin=0, end=end)}
    members = (Member("w-1", "w", "h", frozenset({PLACE})),) if worker else ()
    return Look("Stable" if worker else state, members, seen, 0)


@pytest.mark.parametrize(
    ("committed", "of_partition"),
    [(2, Verdict.NO_MEMBERS), (0, Verdict.NO_MEMBERS), (None, Verdict.NO_COMMITS)],
)
def test_messages_that_wait_for_a_group_without_members_are_trouble_at_the_first_look(
    committed: int | None, of_partition: Verdict
) -> None:
    group = Histories("g").add(a_look(committed, end=5))
    report = Report(group=group, work=None)

    assert (group.verdict, group.partitions[0].verdict) == (Verdict.NO_MEMBERS, of_partition)
    assert report.is_trouble
    (advice,) = report.advice
    assert "messages wait, and no worker runs in the group g" in advice
    assert "`sceneloom worker`" in advice


def test_messages_that_come_while_nobody_is_there_are_trouble_also_after_many_quiet_looks() -> None:
    histories = Histories("g")
    for _ in range(WINDOW):
        assert histories.add(a_look(2, end=2)).verdict is Verdict.OK
    assert histories.add(a_look(2, end=3)).verdict is Verdict.NO_MEMBERS
    assert histories.add(a_look(2, end=3, worker=True)).verdict is Verdict.OK, "somebody may be reading it"


@pytest.mark.parametrize("committed", [2, None])
def test_a_group_without_members_and_without_messages_is_no_trouble(committed: int | None) -> None:
    report = Report(group=Histories("g").add(a_look(committed, end=committed or 0)), work=None)
    assert (report.group.verdict, report.is_trouble, report.advice) == (Verdict.OK, False, ())


def test_what_is_worse_than_missing_workers_stays_the_verdict() -> None:
    histories = Histories("g")
    histories.add(a_look(2, end=5))
    group = histories.add(a_look(2, end=5))
    assert group.verdict is Verdict.STALLED
    assert "no worker runs" in Report(group=group, work=None).advice[0], "the cause comes before the effect"


@pytest.mark.parametrize("verdict", [each for each in Verdict if each.is_trouble])
def test_every_trouble_says_what_to_do(verdict: Verdict) -> None:
    group = Histories("g").add(a_look(1, end=5, worker=verdict is not Verdict.NO_MEMBERS))
    partition = group.partitions[0].model_copy(update={"verdict": verdict})
    told = Report(group=group.model_copy(update={"verdict": verdict, "partitions": (partition,)}), work=None)
    assert told.advice


def test_no_commits_where_nothing_waits_need_no_advice() -> None:
    group = Histories("g").add(a_look(None, end=0, worker=True))
    assert Report(group=group, work=None).advice == ()
