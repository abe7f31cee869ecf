"""Work that is given up: it leaves nothing behind, and what is still to be found out is found out."""

import asyncio

from models.job import Job
from models.job_events import (
    JobPostponed,
    JobStopped,
    JobSubmitted,
    JobSucceeded,
    SubmitIntended,
    SubmitOutcomeUnknown,
)
from models.lifecycle import JobStatus, SubmitState
from models.ports import Absent, Adopted
from models.work import Source
from tests.fakes import START
from tests.runner.test_runner import OUTPUT, Bench, OneCall, Tasks, a_clip, an_image, unclear


def cancelled_while_unclear() -> Job:
    return a_clip(status=JobStatus.CANCELLED, submit=SubmitState.UNKNOWN, intended_at=START, unclear_at=START)


async def test_a_job_that_is_over_before_its_work_takes_its_first_step_can_be_made_again() -> None:
    bench = Bench(OneCall(), repeatable=True)
    bench.runner.take(an_image())
    bench.runner.start_due()
    bench.runner.drop(an_image(status=JobStatus.SUCCEEDED, source=Source.MADE, output=OUTPUT))
    for _ in range(3):
        await asyncio.sleep(0)
    assert bench.runner.in_work == 0

    bench.runner.take(an_image(attempt=2))
    await bench.run()

    assert bench.maker.calls == ["make"]
    assert bench.told() == [JobSucceeded]


async def test_a_job_that_is_cancelled_before_its_work_takes_its_first_step_is_wound_up() -> None:
    bench = Bench(Tasks(), repeatable=False)
    bench.maker.answers = [Absent()]
    bench.runner.take(unclear(a_clip()))
    bench.runner.start_due()
    bench.runner.take(cancelled_while_unclear().model_copy(update={"version": 2}))
    bench.clock.advance(300)

    await bench.run()

    (stopped,) = bench.outbox.of(JobStopped)
    assert not stopped.billed


async def test_a_cancelled_job_that_is_told_of_again_while_it_is_looked_for_is_still_looked_for() -> None:
    bench = Bench(Tasks(), repeatable=False)
    looks = asyncio.Event()

    async def look_for_long() -> None:
        looks.set()
        await asyncio.Event().wait()

    bench.maker.answers = [look_for_long, Absent()]
    bench.clock.advance(300)
    bench.runner.take(cancelled_while_unclear())
    bench.runner.start_due()
    await looks.wait()

    bench.runner.take(cancelled_while_unclear())
    await bench.run()
    bench.clock.advance(20)
    await bench.run()

    (stopped,) = bench.outbox.of(JobStopped)
    assert not stopped.billed


async def test_a_wall_clock_that_is_set_forward_brings_no_early_order() -> None:
    bench = Bench(Tasks(), repeatable=False)
    bench.maker.answers = [Absent()] * 20
    bench.runner.take(unclear(a_clip()))
    await bench.run()

    bench.clock.advance(3600)
    bench.set_back -= 3600
    for _ in range(11):
        await bench.run()
        bench.clock.advance(20)
    assert bench.told() == []

    bench.clock.advance(20)
    await bench.run()
    assert bench.told() == [JobPostponed]


async def test_a_call_announced_just_as_another_worker_s_turns_out_unclear_is_looked_for() -> None:
    bench = Bench(Tasks(), repeatable=False)
    bench.maker.answers = [Adopted("task-9", certain=True)]
    bench.runner.take(a_clip())
    bench.runner.start_due()
    found = unclear(a_clip()).model_copy(update={"version": 3})
    bench.runner.take(found)  # the announcement is on its way already
    await bench.run()
    assert bench.told() == [SubmitIntended]

    bench.runner.take(found)  # it came too late to change anything
    await bench.run()

    assert bench.told() == [SubmitIntended, JobSubmitted]


async def test_a_call_that_another_worker_announced_and_made_meanwhile_is_not_made_again() -> None:
    here, there = Bench(Tasks(), repeatable=False), Bench(Tasks(), repeatable=False)
    await here.announced(a_clip())
    here.runner.release()  # the partition moves before that is written
    written = await there.announce(a_clip())
    there.runner.take(written)
    await there.run()
    assert there.maker.calls == ["submit"]  # and dies before it can say so

    here.runner.take(written)
    await here.run()

    assert here.maker.calls == []
    assert here.told() == [SubmitIntended, SubmitOutcomeUnknown]


async def test_a_call_whose_announcement_another_worker_wrote_does_not_keep_its_place_for_ever() -> None:
    bench = Bench(Tasks(), repeatable=False)
    await bench.announced(a_clip())
    assert bench.runner.in_work == 1

    bench.runner.release()  # the partition goes, and comes back before anybody has looked
    for _ in range(5):
        await asyncio.sleep(0)

    assert bench.runner.in_work == 0
