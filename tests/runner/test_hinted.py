"""What a hint makes the runner do: look sooner, and find a lost task by its name; never more than that."""

import asyncio
from datetime import timedelta

import pytest

from models.errors import ErrorCode, ProviderFailure
from models.job_events import (
    JobFailed,
    JobStillRunning,
    JobSubmitted,
    JobSucceeded,
    PollStalled,
    SubmitUnresolved,
)
from models.lifecycle import JobStatus, SubmitState
from models.policy import RARE_POLLS
from models.ports import Absent, Adopted, Several, TaskReport
from tests.fakes import START
from tests.runner.test_runner import Bench, OneCall, Tasks, a_clip, accepted, an_image, unclear

DOWN = ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE)


def rarely_polling() -> Bench:
    return Bench(Tasks(), repeatable=False, polls=RARE_POLLS)


async def test_a_hint_makes_a_task_be_polled_at_once() -> None:
    bench = rarely_polling()
    bench.maker.answers = [TaskReport(done=True)]
    bench.runner.take(accepted())
    bench.clock.advance(2)
    await bench.run()
    assert bench.maker.calls == []

    bench.runner.hint(accepted(), "task-1")
    await bench.run()

    assert bench.told() == [JobSucceeded]


async def test_a_lost_hint_costs_no_more_than_the_time_to_the_next_poll() -> None:
    bench = rarely_polling()
    bench.maker.answers = [TaskReport(), TaskReport(), TaskReport(done=True)]
    bench.runner.take(accepted())
    polled = []
    for second in range(1, 181):
        bench.clock.advance(1)
        known = len(bench.maker.calls)
        await bench.run()
        polled += [second] * (len(bench.maker.calls) - known)

    first, second, third, download = polled
    assert 54 <= first <= 60
    assert (second, third) == (first + 60, first + 120)
    assert download == third
    assert bench.told() == [PollStalled, JobSucceeded]


async def test_hints_in_a_crowd_lead_to_one_look_a_second() -> None:
    bench = rarely_polling()
    bench.runner.take(accepted())
    for _ in range(30):
        bench.runner.hint(accepted(), "task-1")
        await bench.run()
        bench.clock.advance(0.1)

    assert bench.maker.calls == ["poll"] * 3


async def test_a_hint_during_a_poll_leads_to_another_poll_as_the_answer_may_be_older() -> None:
    bench = rarely_polling()
    asked = asyncio.Event()
    answer = asyncio.Event()

    async def slow() -> TaskReport:
        asked.set()
        await answer.wait()
        return TaskReport()

    bench.maker.answers = [slow, TaskReport(done=True)]
    bench.runner.hint(accepted(), None)
    bench.runner.start_due()
    await asked.wait()
    bench.runner.hint(accepted(), None)
    answer.set()
    await bench.run()
    assert bench.told() == []

    bench.clock.advance(1)
    await bench.run()
    assert bench.told() == [JobSucceeded]


async def test_a_hint_of_success_that_the_provider_does_not_confirm_changes_nothing() -> None:
    bench = rarely_polling()
    bench.maker.answers = [TaskReport(progress=0.2)]
    bench.runner.hint(accepted(), "task-1")
    await bench.run()

    assert bench.told() == [JobStillRunning]
    assert bench.maker.calls == ["poll"]


@pytest.mark.parametrize("state", [None, SubmitState.INTENDED])
async def test_a_hint_calls_for_nothing_that_may_cost_money(state: SubmitState | None) -> None:
    bench = Bench(OneCall(), repeatable=False)
    status = JobStatus.QUEUED if state is None else JobStatus.RUNNING
    for _ in range(3):
        bench.runner.hint(an_image(status=status, submit=state), "task-1")
        await bench.run()
        bench.clock.advance(5)

    assert bench.maker.calls == []


async def test_a_hint_that_came_before_the_answer_to_the_submit_is_followed_after_it() -> None:
    bench = rarely_polling()
    answer = asyncio.Event()

    async def slow() -> str:
        await answer.wait()
        return "task-1"

    bench.maker.answers = [slow, TaskReport(done=True)]
    announced = await bench.announce(a_clip())
    bench.runner.take(announced)
    bench.runner.start_due()
    await asyncio.sleep(0)
    bench.runner.hint(announced, "task-1")
    answer.set()
    await bench.run()

    (submitted,) = bench.outbox.of(JobSubmitted)
    bench.runner.take(announced.evolve(submitted))
    await bench.run()
    assert bench.told()[-1] is JobSucceeded


# -- a submit without clear outcome


async def test_a_lost_task_that_a_webhook_names_is_adopted_without_the_list_and_polled_at_once() -> None:
    bench = rarely_polling()
    bench.maker.answers = [Absent(), "task-9", TaskReport(done=True)]
    lost = unclear(a_clip())
    bench.runner.take(lost)
    await bench.run()

    bench.clock.advance(1)
    bench.runner.hint(lost, "nine")
    await bench.run()
    (submitted,) = bench.outbox.of(JobSubmitted)
    assert submitted.provider_task_id == "task-9"

    bench.clock.advance(1)
    bench.runner.take(lost.evolve(submitted))
    await bench.run()
    assert bench.maker.calls == ["find", "confirm nine", "poll", "collect"]
    assert bench.told() == [JobSubmitted, JobSucceeded]


async def test_a_task_of_another_job_is_not_adopted_whoever_names_it() -> None:
    bench = rarely_polling()
    bench.taken = {"task-9"}
    bench.maker.answers = ["task-9", Several(("task-7", "task-8"))]

    bench.runner.hint(unclear(a_clip()), "nine")
    await bench.run()

    assert bench.told() == []


async def test_a_named_task_that_cannot_be_confirmed_leaves_the_list_to_tell() -> None:
    bench = rarely_polling()
    bench.maker.answers = [DOWN, Adopted("task-9", certain=True)]

    bench.runner.hint(unclear(a_clip()), "nine")
    await bench.run()

    assert bench.told() == [JobSubmitted]


async def test_the_name_of_a_lost_task_outlives_a_rebalance() -> None:
    bench = rarely_polling()
    lost = unclear(a_clip())
    bench.maker.answers = [DOWN, Absent(), "task-9"]
    bench.runner.hint(lost, "nine")
    await bench.run()

    bench.runner.release()
    bench.runner.take(lost)
    bench.clock.advance(20)
    await bench.run()

    assert bench.told() == [JobSubmitted]


async def test_while_a_webhook_named_a_task_nothing_is_ordered_again() -> None:
    bench = rarely_polling()
    bench.maker.answers = [DOWN, Absent()] * 100
    bench.runner.hint(unclear(a_clip()), "nine")
    for _ in range(40):
        await bench.run()
        bench.clock.advance(20)

    assert bench.told() == [SubmitUnresolved]
    assert set(bench.maker.calls) == {"confirm nine", "find"}


async def test_a_webhook_that_names_the_task_answers_the_question_before_a_person_does() -> None:
    bench = rarely_polling()
    until = START + timedelta(days=1)
    asked = unclear(a_clip()).model_copy(
        update={"submit": SubmitState.NEEDS_CONFIRMATION, "confirm_until": until}
    )
    bench.runner.take(asked)
    bench.maker.answers = [DOWN, "task-9"]
    bench.runner.hint(asked, "nine")
    await bench.run()
    assert bench.told() == []

    bench.clock.advance(1)
    bench.runner.hint(asked, "nine")
    await bench.run()
    (submitted,) = bench.outbox.of(JobSubmitted)
    assert asked.evolve(submitted).submit is SubmitState.ACCEPTED


async def test_a_question_that_nobody_answers_still_ends_in_time() -> None:
    bench = rarely_polling()
    asked = unclear(a_clip()).model_copy(
        update={"submit": SubmitState.NEEDS_CONFIRMATION, "confirm_until": START + timedelta(seconds=60)}
    )
    bench.maker.answers = [DOWN] * 9
    bench.runner.hint(asked, "nine")
    await bench.run()
    bench.clock.advance(60)
    await bench.run()

    assert bench.told() == [JobFailed]
