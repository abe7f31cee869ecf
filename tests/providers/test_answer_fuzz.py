"""Whatever a provider answers, an adapter says an outcome or a normalised failure, and keeps our key."""

import fnmatch
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import ErrorCode, OutcomeUnknown, ProviderFailure
from models.job_events import JobSubmitted
from models.ports import (
    Absent,
    Adopted,
    CallsBack,
    Reconciler,
    Several,
    Speech,
    Stopper,
    TaskReport,
    VideoProvider,
)
from models.shapes import Size
from sceneloom.providers.wire import Patience
from sceneloom.testing.contract import CallEmulation, Seen, TaskEmulation
from sceneloom.testing.contract.stage import KEY, NOW, OUTPUT, Stage, a_job, adapter
from tests.fuzzing import any_json, nearly, patiently
from tests.providers.test_contract import EMULATIONS

pytestmark = pytest.mark.fuzz

TASKS = [each for each in EMULATIONS if isinstance(each, TaskEmulation)]
CALLS = [each for each in EMULATIONS if isinstance(each, CallEmulation)]
STATUSES = st.sampled_from([200] * 8 + [201, 202, 204, 206, 301, 302, 307, 400, 401, 402, 403, 404, 408])
MORE_STATUSES = st.sampled_from([409, 410, 418, 422, 425, 429, 451, 500, 502, 503, 504, 529])
HEADERS = st.dictionaries(
    st.sampled_from(["retry-after", "retry-after-ms", "location", "content-type", "date", "x-request-id"]),
    st.sampled_from(
        [
            *("", "-1", "nan", "1e999", "soon", "9" * 400, "Wed, 21 Oct 2015 07:28:00 GMT", "image/png"),
            *("https://evil.example/x", "//evil.example/x", "/x", "http://[", "https://evil.example:99999/"),
        ]
    ),
    max_size=3,
)
SECRET = KEY.get_secret_value()


class Impostor:
    """Answers with what it is told to, and remembers whom our key was shown to."""

    def __init__(self) -> None:
        self.answers: list[httpx.Response | Callable[[httpx.Request], httpx.Response]] = []
        self.asked = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        shown = str(request.url) + repr(request.headers.raw)
        if SECRET in shown:
            assert request.url.host == "provider.example", f"our key went to {request.url.host}"
            assert request.url.scheme == "https"
        self.asked += 1
        assert self.asked < 50, "it asks for ever"
        told = self.answers[min(self.asked, len(self.answers)) - 1]
        if not isinstance(told, httpx.Response):
            return told(request)
        return httpx.Response(told.status_code, headers=told.headers, content=told.content)


def adapter_of(emulation: Any, impostor: Impostor) -> Any:
    stage = Stage(emulation)
    stage.url = "https://provider.example"
    client = httpx.AsyncClient(transport=httpx.MockTransport(impostor))
    made = adapter(stage, client, patience=Patience(total=5.0))
    if hasattr(made, "_look"):
        made._look, made._wait = 0.0, 0.2
    return made


@st.composite
def answers(draw: st.DrawFn, *sound: Any) -> httpx.Response:
    body = draw(st.one_of(any_json, *(nearly(each) for each in sound)))
    raw = draw(
        st.one_of(
            st.just(json.dumps(body).encode()),
            st.binary(max_size=60),
            st.just(json.dumps({"error": f"Authorization: Bearer {SECRET}", "message": SECRET}).encode()),
        )
        if draw(st.integers(0, 4)) == 0
        else st.just(json.dumps(body).encode())
    )
    headers = draw(HEADERS) if draw(st.booleans()) else {}
    return httpx.Response(draw(STATUSES | MORE_STATUSES), headers=headers, content=raw)


async def outcome_of(call: Callable[[], Awaitable[Any]]) -> Any:
    """Return what *call* returns, or the failure that it raises; anything else it raises fails the test."""
    try:
        return await call()
    except (ProviderFailure, OutcomeUnknown) as raised:
        failure = raised
    assert SECRET not in str(failure) + repr(failure)
    assert "\n" not in str(failure)
    if isinstance(failure, ProviderFailure):
        assert failure.code in ErrorCode
        assert failure.retry_after is None or 0 <= failure.retry_after <= 86_400
    return failure


def check_report(report: Any) -> None:
    if not isinstance(report, TaskReport):
        assert isinstance(report, ProviderFailure)
        return
    assert SECRET not in repr(report)
    assert report.progress is None or 0.0 <= report.progress <= 1.0
    has_output = report.output_url is not None or bool(report.output)
    assert not (has_output and report.error_code)
    assert report.done == (has_output or report.error_code is not None)
    if report.output_url is not None:
        url = httpx.URL(report.output_url)
        assert url.scheme in {"http", "https"}
        assert url.host


def sound_answers(emulation: TaskEmulation) -> list[Any]:
    words = [*emulation.under_way, emulation.succeeded, *emulation.ended]
    replies = [answer("task-1", OUTPUT) for answer in emulation.others.values()]
    bodies = [reply.body for reply in replies if not isinstance(reply.body, bytes)]
    failures = [body for body, _ in emulation.failures if not callable(body)]
    return [*(emulation.task("task-1", word, OUTPUT) for word in words), *bodies, *failures]


@pytest.mark.parametrize("emulation", TASKS, ids=lambda each: each.service.entry.name)
@patiently(20)
@given(data=st.data())
async def test_an_order_is_taken_under_a_name_or_fails_with_one(
    emulation: TaskEmulation, data: st.DataObject
) -> None:
    impostor = Impostor()
    answer = data.draw(answers(emulation.accepted("task-1")))
    impostor.answers = [answer]
    job = a_job(emulation)
    made = adapter_of(emulation, impostor)
    outcome = await outcome_of(lambda: made.submit(job))
    if isinstance(outcome, str):
        assert 0 < len(outcome) <= 2000
        event = JobSubmitted(
            event_id="e",
            project_id=job.project_id,
            job_id=job.job_id,
            attempt=1,
            occurred_at=NOW,
            provider_task_id=outcome,
        )
        assert JobSubmitted.model_validate_json(event.model_dump_json()) == event
        assert answer.is_success


@pytest.mark.parametrize("emulation", TASKS, ids=lambda each: each.service.entry.name)
@patiently(40)
@given(data=st.data())
async def test_a_poll_gives_a_report_or_a_failure(emulation: TaskEmulation, data: st.DataObject) -> None:
    impostor = Impostor()
    sound = sound_answers(emulation)
    impostor.answers = data.draw(st.lists(answers(*sound), min_size=1, max_size=2))
    made = adapter_of(emulation, impostor)
    check_report(await outcome_of(lambda: made.poll(task_id_of(emulation))))


@pytest.mark.parametrize("emulation", TASKS, ids=lambda each: each.service.entry.name)
@patiently(15)
@given(
    word=st.text(max_size=12) | st.sampled_from(["Succeeded", "SUCCESS", "done", "ok", "FAILED ", "error"])
)
async def test_a_word_that_nobody_knows_is_neither_success_nor_failure(
    emulation: TaskEmulation, word: str
) -> None:
    made = adapter_of(emulation, impostor := Impostor())
    known = {*emulation.under_way, emulation.succeeded, *emulation.ended, *getattr(made, "stages", ())}
    if word.casefold() in {each.casefold() for each in known}:
        return
    body = emulation.task("task-1", word, OUTPUT)
    impostor.answers = [httpx.Response(200, content=json.dumps(body).encode())]
    report = await outcome_of(lambda: made.poll(task_id_of(emulation)))
    if isinstance(report, TaskReport):
        assert (report.done, report.error_code, report.output_url) == (False, None, None)


@pytest.mark.parametrize("emulation", TASKS, ids=lambda each: each.service.entry.name)
@patiently(20)
@given(data=st.data())
async def test_a_search_a_return_and_a_hint_give_an_answer_or_a_failure(
    emulation: TaskEmulation, data: st.DataObject
) -> None:
    impostor = Impostor()
    seen = Seen("GET", "", {}, {}, b"")
    listed = [emulation.search.found([], seen).body] if emulation.search else []
    impostor.answers = data.draw(
        st.lists(answers(*sound_answers(emulation), *listed), min_size=1, max_size=3)
    )
    made, job = adapter_of(emulation, impostor), a_job(emulation)
    if isinstance(made, Reconciler):
        found = await outcome_of(lambda: made.candidates(job, taken=()))
        assert isinstance(found, Absent | Adopted | Several | ProviderFailure)
    if isinstance(made, Stopper):
        impostor.asked = 0
        assert isinstance(
            await outcome_of(lambda: made.cancel(task_id_of(emulation))), bool | ProviderFailure
        )
    if isinstance(made, CallsBack) and isinstance(made, VideoProvider):
        named = made.task_named(job, data.draw(st.from_regex(r"[\w.:-]{1,40}", fullmatch=True)))
        impostor.asked = 0
        check_report(await outcome_of(lambda: made.poll(named)))


def task_id_of(emulation: TaskEmulation) -> str:
    return "acme/seedance/requests/task-1" if emulation.service.entry.name == "fal" else "task-1"


@pytest.mark.parametrize("emulation", CALLS, ids=lambda each: f"{each.service.entry.name}-{each.kind}")
@patiently(30)
@given(data=st.data())
async def test_a_blocking_call_gives_an_asset_or_a_failure(
    emulation: CallEmulation, data: st.DataObject
) -> None:
    impostor = Impostor()

    def told(request: httpx.Request) -> httpx.Response:
        seen = Seen(request.method, request.url.path, dict(request.url.params), {}, request.content)
        others = [say for path, say in emulation.others.items() if fnmatch.fnmatchcase(seen.path, path)]
        replies = [say(seen) for say in others or [emulation.made]]
        sound = [each.body for each in (*replies, *emulation.unusable) if not isinstance(each.body, bytes)]
        whole = [each.body for each in replies if isinstance(each.body, bytes)]
        cut = [each[: len(each) // 2] for each in whole]
        pool = [st.just(httpx.Response(200, content=each)) for each in (*whole, *cut)]
        drawn: httpx.Response = data.draw(st.one_of(answers(*sound), *pool))
        return drawn

    impostor.answers = [told]
    made = adapter_of(emulation, impostor)
    if hasattr(made, "generate"):
        picture = await outcome_of(lambda: made.generate("a fox", Size(320, 256)))
        assert isinstance(picture, bytes | ProviderFailure | OutcomeUnknown)
    elif hasattr(made, "speak"):
        speech = await outcome_of(lambda: made.speak("a fox", language="en"))
        assert isinstance(speech, Speech | ProviderFailure | OutcomeUnknown)
    else:
        await outcome_of(lambda: made.transcribe(b"RIFF", language="en"))
