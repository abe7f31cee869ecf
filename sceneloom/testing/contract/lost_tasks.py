"""What an adapter must do for a task whose answer got lost, and for one that is not wanted any more."""

from collections.abc import Mapping
from typing import Any, Final

from models.errors import ProviderFailure
from models.ports import Absent, Adopted, Several
from models.work import JobKind
from sceneloom.testing.contract.emulation import Fault, Reply, TaskEmulation
from sceneloom.testing.contract.expecting import expect, raised, unknown
from sceneloom.testing.contract.stage import a_job, staged

_ANOTHER: Final[Mapping[JobKind, Mapping[str, Any]]] = {
    JobKind.CLIP: {"duration_seconds": 10.0},
    JobKind.IMAGE: {"prompt": "a bear in the rain"},
}
"""What tells another order from ours: of a clip, every list shows the length."""


async def a_lost_task_is_found(emulation: TaskEmulation) -> None:
    """A task whose answer got lost is adopted, and polled like any other."""
    async with staged(emulation) as (stage, adapter):
        stage.on_submit = stage.accept_and(Fault.DISCONNECT)
        job = a_job(emulation)
        await unknown(adapter.submit(job))
        found = await adapter.candidates(job)
        expect(isinstance(found, Adopted), "the lost task is adopted", found)
        expect((await adapter.poll(found.task_id)).done, "an adopted task can be polled", found)


async def a_task_that_was_never_taken_is_absent(emulation: TaskEmulation) -> None:
    """Nothing was ordered, or it was somebody else's."""
    async with staged(emulation) as (_, adapter):
        found = await adapter.candidates(a_job(emulation))
        expect(isinstance(found, Absent), "what is not in the list is absent", found)
        await adapter.submit(a_job(emulation, **_ANOTHER[emulation.kind]).model_copy(update={"attempt": 2}))
        found = await adapter.candidates(a_job(emulation))
        expect(isinstance(found, Absent), "another order is not taken for ours", found)


async def a_task_of_another_job_is_not_taken(emulation: TaskEmulation) -> None:
    """A task that a job has already belongs to it, unless it bears our own name."""
    if emulation.service.entry.capabilities.reference:
        return
    async with staged(emulation) as (_, adapter):
        first = await adapter.submit(a_job(emulation))
        found = await adapter.candidates(a_job(emulation), taken={first})
        expect(isinstance(found, Absent), "a task that is taken is not ours", found)


async def several_alike_are_not_guessed(emulation: TaskEmulation) -> None:
    """Two tasks that look like ours are left to a person, unless one bears our own name."""
    async with staged(emulation) as (_, adapter):
        job = a_job(emulation)
        twin = job.model_copy(update={"attempt": 2})
        await adapter.submit(job)
        await adapter.submit(twin)
        found = await adapter.candidates(job)
        certain = isinstance(found, Adopted) and found.certain
        expect(isinstance(found, Several) or certain, "of two that look alike none is guessed", found)


async def a_list_that_cannot_be_read_says_nothing(emulation: TaskEmulation) -> None:
    """A search that fails is no proof of absence."""
    for reply in (Reply(500), Reply(401), Reply(429), Reply(200, {"else": 1}), Reply(200, b"<html>")):
        async with staged(emulation) as (stage, adapter):
            stage.on_search = lambda _, reply=reply: reply
            await raised(ProviderFailure, adapter.candidates(a_job(emulation)))


async def only_a_waiting_task_is_taken_back_for_certain(emulation: TaskEmulation) -> None:
    """One that has begun may be billed: it is not called taken back."""
    back = emulation.take_back
    if back is None:
        return
    for word, certain in ((back.waiting, True), (emulation.succeeded, False)):
        async with staged(emulation) as (stage, adapter):
            task_id = await adapter.submit(a_job(emulation))
            stage.word = word
            expect(await adapter.cancel(task_id) is certain, f"cancel of a task that is {word}", certain)
            asked = [seen for seen in stage.questions if seen.method == back.method]
            expect(bool(asked) or not certain, "the provider was asked to", stage.questions)


WITH_SEARCH: Final = (
    a_lost_task_is_found,
    a_task_that_was_never_taken_is_absent,
    a_task_of_another_job_is_not_taken,
    several_alike_are_not_guessed,
    a_list_that_cannot_be_read_says_nothing,
)
WITH_TAKE_BACK: Final = (only_a_waiting_task_is_taken_back_for_certain,)
