"""What an adapter of a task API must do."""

from dataclasses import replace
from typing import Any, Final

from structlog.testing import capture_logs

from models.errors import ErrorCode, ProviderFailure
from models.ports import CallsBack, Reconciler, TaskProvider
from models.work import JobKind, SpeechRequest
from sceneloom.testing.contract.emulation import Fault, Refusal, Reply, TaskEmulation
from sceneloom.testing.contract.expecting import expect, raised, refused, unknown
from sceneloom.testing.contract.stage import KEY, OUTPUT, a_job, staged


async def it_is_a_task_provider(emulation: TaskEmulation) -> None:
    """It has the methods of the port, those that its catalogue entry promises, and no others."""
    async with staged(emulation) as (_, adapter):
        can = emulation.service.entry.capabilities
        expect(isinstance(adapter, TaskProvider), "it is a TaskProvider", adapter)
        expect(
            isinstance(adapter, Reconciler) == can.list, "it searches if the catalogue says list", can.list
        )
        expect(hasattr(adapter, "cancel") == can.cancel, "it cancels if the catalogue says so", can.cancel)
        expect(
            isinstance(adapter, CallsBack) == bool(can.sender), "it knows tasks by callback if so", can.sender
        )
        expect((emulation.search is not None) == can.list, "the emulation plays the search", can.list)
        expect((emulation.take_back is not None) == can.cancel, "the emulation plays the cancel", can.cancel)
        expect(adapter.cost_per_call() == 0.25, "it knows the price of its account", adapter.cost_per_call())


async def it_orders_polls_and_finds_the_output(emulation: TaskEmulation) -> None:
    """One order with the prompt and the model in it; then the output, which is not fetched."""
    async with staged(emulation) as (stage, adapter):
        task_id = await adapter.submit(a_job(emulation))
        expect(len(stage.orders) == 1, "one order is one request", len(stage.orders))
        sent = stage.orders[0]
        expect("a fox in the snow" in str(sent.body), "the prompt goes along", sent.body)
        model = emulation.ordered_as or emulation.model.strip("/")
        named = model in str(sent.body) or model in sent.path
        expect(named, "the model goes along", sent.path, sent.body)
        report = await adapter.poll(task_id)
        expect(report.done and report.error_code is None, "a task that succeeded is done", report)
        expect(report.output_url == OUTPUT or bool(report.output), "its output is told", report)


async def a_first_frame_goes_along(emulation: TaskEmulation) -> None:
    """A picture on the web goes as its address, one of ours as its content; one that is gone is free."""
    known = emulation.service.entry.model(emulation.model, emulation.kind)
    takes_none = known is not None and known.first_frame == "none"
    if takes_none or emulation.kind is not JobKind.CLIP:
        return
    address = "https://pictures.example/fox.png"
    # The order may take another route, which an emulation need not play: what was sent is enough.
    for frame, shown in ((address, address), ("shelf:picture", "iVBORw0KGgo")):
        async with staged(emulation) as (stage, adapter):
            stage.emulation = _everywhere(emulation)
            await adapter.submit(a_job(emulation, first_frame_url=frame))
            expect(shown in stage.orders[0].content.decode(), "the first frame goes along", stage.orders[0])
    async with staged(emulation) as (stage, adapter):
        gone = adapter.submit(a_job(emulation, first_frame_url="shelf:gone"))
        await refused(gone, ErrorCode.ASSET_FETCH_FAILED)
        expect(not stage.orders, "a first frame that is gone costs nothing")


async def a_job_for_something_else_is_refused(emulation: TaskEmulation) -> None:
    """An order for speech never leaves."""
    async with staged(emulation) as (stage, adapter):
        speech = SpeechRequest(text="x", language="en")
        job = a_job(emulation).model_copy(update={"request": speech})
        await refused(adapter.submit(job), ErrorCode.INVALID_REQUEST)
        expect(not stage.orders, "nothing was ordered")


async def a_refusal_is_named(emulation: TaskEmulation, refusal: Refusal) -> None:
    """A refusal has our code, the provider's wait, and no secret, even where the provider repeats it."""
    async with staged(emulation) as (stage, adapter):
        headers = {**refusal.headers, "Retry-After": "7"}
        stage.on_submit = lambda _: Reply(refusal.status, refusal.body, headers)
        failure = await refused(adapter.submit(a_job(emulation)), refusal.code)
        expect(failure.retry_after == 7.0, "Retry-After is read", failure.retry_after)
        expect(adapter.normalize_error(failure) is refusal.code, "normalize_error says the same")
        expect(len(stage.orders) == 1, "a refused order is not sent again", len(stage.orders))
        stage.on_submit = lambda _: Reply(refusal.status, refusal.body)
        failure = await refused(adapter.submit(a_job(emulation)), refusal.code)
        expect(failure.retry_after is None, "without Retry-After there is none", failure.retry_after)


async def an_unclear_status_is_unknown(emulation: TaskEmulation, status: int) -> None:
    """After a 5xx or 408 nobody knows, so the order is not sent again."""
    async with staged(emulation) as (stage, adapter):
        stage.on_submit = lambda _: Reply(status, {"said": f"key {KEY.get_secret_value()}"})
        error = await unknown(adapter.submit(a_job(emulation)))
        expect(adapter.normalize_error(error) is ErrorCode.SUBMIT_UNKNOWN, "normalize_error says the same")
        expect(len(stage.orders) == 1, "an unclear order is not sent again", len(stage.orders))


async def an_answer_that_comes_to_harm_is_unknown(emulation: TaskEmulation) -> None:
    """The order was taken, and the answer hangs, breaks off, or never begins."""
    for fault in Fault:
        async with staged(emulation, hasty=True) as (stage, adapter):
            stage.on_submit = stage.accept_and(fault)
            await unknown(adapter.submit(a_job(emulation)))
            expect(len(stage.orders) == 1, f"an order is not sent again after {fault}", len(stage.orders))


async def an_answer_without_an_id_is_unknown(emulation: TaskEmulation) -> None:
    """A success that does not say which task it is."""
    bodies: tuple[Any, ...] = ({}, b"<html>", [], {"id": ""})
    for body in bodies:
        async with staged(emulation) as (stage, adapter):
            stage.on_submit = lambda _, body=body: Reply(200, body)  # type: ignore[misc]
            await unknown(adapter.submit(a_job(emulation)))


async def what_was_not_sent_is_a_failure(emulation: TaskEmulation) -> None:
    """Nobody listens: surely nothing was bought."""
    async with staged(emulation) as (stage, adapter):
        await stage.stop_listening()
        await refused(adapter.submit(a_job(emulation)), ErrorCode.PROVIDER_UNAVAILABLE)
        expect(not stage.orders, "nothing was ordered")


async def a_task_under_way_goes_on(emulation: TaskEmulation, word: str) -> None:
    """A word for work that goes on is neither an end nor an alarm."""
    async with staged(emulation) as (stage, adapter):
        task_id = await adapter.submit(a_job(emulation))
        stage.word = word
        with capture_logs() as logs:
            report = await adapter.poll(task_id)
        expect(not report.done and report.error_code is None, f"{word} goes on", report)
        expect(not logs, f"{word} is known", logs)


async def an_unknown_word_goes_on_with_an_alarm(emulation: TaskEmulation) -> None:
    """A word that nobody documents is neither success nor failure, and is told to the operator."""
    async with staged(emulation) as (stage, adapter):
        task_id = await adapter.submit(a_job(emulation))
        stage.word = "meditating"
        with capture_logs() as logs:
            report = await adapter.poll(task_id)
        expect(not report.done and report.error_code is None, "an unknown word goes on", report)
        alarms = [log for log in logs if log["log_level"] == "error"]
        expect(len(alarms) == 1 and alarms[0].get("status") == "meditating", "with an alarm", logs)


async def an_end_without_output_is_named(emulation: TaskEmulation, word: str, code: ErrorCode) -> None:
    """A task that expired or was cancelled is over."""
    async with staged(emulation) as (stage, adapter):
        task_id = await adapter.submit(a_job(emulation))
        stage.word = word
        report = await adapter.poll(task_id)
        expect(report.done and report.error_code is code, f"{word} means {code}", report)


async def a_failed_task_is_named(emulation: TaskEmulation, body: Any, code: ErrorCode) -> None:
    """A task that failed has our code, and a detail without a secret."""
    async with staged(emulation) as (stage, adapter):
        task_id = await adapter.submit(a_job(emulation))
        stage.on_poll = lambda *_: Reply(200, body)
        report = await adapter.poll(task_id)
        expect(report.done and report.error_code is code, f"the failure means {code}", report)
        expect(KEY.get_secret_value() not in report.detail, "no key in a detail")


async def success_without_an_output_is_missing(emulation: TaskEmulation) -> None:
    """A task that succeeded and names no output is over."""
    async with staged(emulation) as (stage, adapter):
        task_id = await adapter.submit(a_job(emulation))
        stage.on_poll = lambda _, known: Reply(200, emulation.task(known, emulation.succeeded, ""))
        stage.emulation = _without_others(emulation)
        report = await adapter.poll(task_id)
        expect(report.error_code is ErrorCode.OUTPUT_MISSING, "success without an output is missing", report)


async def a_poll_that_fails_says_nothing_about_the_task(emulation: TaskEmulation) -> None:
    """Errors, pages and a task that is not known any more: asked again, never an end by themselves."""
    for reply in (Reply(500), Reply(429), Reply(401), Reply(404), Reply(200, b"<html>"), Reply(302)):
        async with staged(emulation) as (stage, adapter):
            task_id = await adapter.submit(a_job(emulation))
            stage.on_poll = lambda *_, reply=reply: reply
            failure = await raised(ProviderFailure, adapter.poll(task_id))
            expect(failure.code is ErrorCode.PROVIDER_UNAVAILABLE, f"after {reply.status}", failure.code)


def _without_others(emulation: TaskEmulation) -> TaskEmulation:
    return replace(emulation, others={path: lambda *_: Reply(200, {}) for path in emulation.others})


def _everywhere(emulation: TaskEmulation) -> TaskEmulation:
    return replace(emulation, submit="*")


ALWAYS: Final = (
    it_is_a_task_provider,
    it_orders_polls_and_finds_the_output,
    a_first_frame_goes_along,
    a_job_for_something_else_is_refused,
    an_answer_that_comes_to_harm_is_unknown,
    an_answer_without_an_id_is_unknown,
    what_was_not_sent_is_a_failure,
    an_unknown_word_goes_on_with_an_alarm,
    success_without_an_output_is_missing,
    a_poll_that_fails_says_nothing_about_the_task,
)
