"""Who must be called: lag alone does not tell."""

from aiokafka import TopicPartition

from models.lifecycle import JobStatus
from sceneloom.monitoring.group import Look
from sceneloom.monitoring.report import Histories, MemberReport, Report
from sceneloom.monitoring.verdicts import Observation
from sceneloom.monitoring.work import WorkBook
from tests.fakes import START
from tests.monitoring.rows import a_job

READ = {TopicPartition("t", 0): Observation(at=START, committed=2, begin=0, end=2)}
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
