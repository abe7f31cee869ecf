"""The Ark adapter, against the fake provider's real HTTP and its ledger."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from models.errors import ErrorCode, OutcomeUnknown, ProviderFailure
from models.ports import Absent, Adopted, Several, TaskReport, VideoProvider
from models.work import ImageRequest
from sceneloom.providers import orders
from sceneloom.providers.ark import Ark
from sceneloom.providers.wire import Patience
from sceneloom.testing.fake_provider import FakeProvider, HandClock
from tests.fakes import START, MovedClock
from tests.providers.paid import (
    FAKE_KEY,
    PNG,
    Shelf,
    a_clip_job,
    direct_client,
    everything_shown,
    faking,
    mocked,
    patience_for,
    raw_server,
)

MODEL = "dreamina-seedance-2-0-260128"
JOB = a_clip_job(MODEL)
WAITS = {"defaults": {"queued": 60, "running": 60}}
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]


def an_ark(client: httpx.AsyncClient, url: str = "https://ark.example", **changes: Any) -> Ark:
    options = {"key": FAKE_KEY, "clock": MovedClock(), "assets": Shelf(), "cost_usd": 0.15}
    return Ark(client=client, base_url=f"{url}/api/v3", **{**options, **changes})


@asynccontextmanager
async def playing(scenario: Any = None, **changes: Any) -> AsyncIterator[tuple[Ark, FakeProvider]]:
    async with faking(scenario) as (provider, client):
        yield an_ark(client, provider.url, patience=patience_for(scenario), **changes), provider


async def body_of(job: Any = JOB, **changes: Any) -> Any:
    """Return the JSON that a submit of *job* sends."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"id": "cgt-1"})

    assert await an_ark(mocked(answer), **changes).submit(job) == "cgt-1"
    (request,) = seen
    assert request.headers["X-Client-Request-Id"] == "p1/scene-001/clip/1.0"
    return httpx.Response(200, content=request.content).json()


def polled(task: Any, status: int = 200) -> Ark:
    return an_ark(mocked(lambda _: httpx.Response(status, json=task)))


def test_it_is_a_video_provider() -> None:
    ark = an_ark(mocked(lambda _: httpx.Response(200)))
    assert isinstance(ark, VideoProvider)
    assert ark.cost_per_call() == 0.15


# -- submit --------------------------------------------------------------------------------------------------


async def test_a_submit_says_exactly_what_is_wanted() -> None:
    body = await body_of(callback=lambda job: f"https://us.example/ark/{job.job_id}/t0ken")
    reference = body.pop("safety_identifier")
    assert body == {
        "model": MODEL,
        "content": [{"type": "text", "text": "a fox"}],
        "resolution": "1080p",
        "ratio": "9:16",
        "duration": 5,
        "seed": 7,
        "watermark": False,
        "generate_audio": False,
        "callback_url": "https://us.example/ark/p1/scene-001/clip/t0ken",
    }
    assert len(reference) == 49
    assert "user@example.com" not in reference


async def test_the_reference_tells_users_apart_and_calls_apart() -> None:
    async def reference(**changes: Any) -> tuple[str, str]:
        request_id = {"postponed": 0} | changes
        sent: dict[str, Any] = {}

        def answer(request: httpx.Request) -> httpx.Response:
            sent.update(httpx.Response(200, content=request.content).json())
            return httpx.Response(200, json={"id": "cgt-1"})

        await an_ark(mocked(answer)).submit(JOB.model_copy(update=request_id))
        user, _, call = str(sent["safety_identifier"]).partition("-")
        return user, call

    first, again = await reference(), await reference()
    later, attempt = await reference(postponed=1), await reference(attempt=2)
    other = await reference(user_id="somebody else")
    assert first == again
    assert first[0] == later[0] == attempt[0] != other[0]
    assert len({first[1], later[1], attempt[1]}) == 3


@pytest.mark.parametrize(
    ("model", "seconds", "ordered"),
    [
        (MODEL, 4.0, 4),
        (MODEL, 4.01, 5),
        (MODEL, 1.5, 4),
        ("doubao-seedance-1-0-pro-250528", 1.5, 2),
        ("seedance-1-5-pro-251215", 1.5, 4),
        ("ep-2026", 9.2, 10),
    ],
)
async def test_the_clip_is_never_shorter_than_asked(model: str, seconds: float, ordered: int) -> None:
    assert (await body_of(a_clip_job(model, duration_seconds=seconds)))["duration"] == ordered


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("a fox --rs 480p --dur 30", "a fox"),
        ("--seed -1 a fox --wm true runs", "a fox runs"),
        ("a fox --ratio 16:9", "a fox"),
        ("a fox -- and a hen --fast", "a fox -- and a hen --fast"),
        ("a fox --cf running", "a fox running"),
    ],
)
async def test_parameters_typed_into_the_prompt_change_nothing(typed: str, sent: str) -> None:
    body = await body_of(a_clip_job(MODEL, prompt=typed))
    assert body["content"] == [{"type": "text", "text": sent}]


async def test_a_first_frame_on_the_web_is_named_and_one_of_ours_goes_along() -> None:
    body = await body_of(a_clip_job(MODEL, first_frame_url="https://pictures.example/fox.png"))
    assert body["content"][1] == {
        "type": "image_url",
        "image_url": {"url": "https://pictures.example/fox.png"},
        "role": "first_frame",
    }
    body = await body_of(a_clip_job("dreamina-seedance-2-5-260628", first_frame_url="shelf:picture"))
    assert body["content"][1]["image_url"]["url"].startswith("data:image/png;base64,iVBORw0KGgot")
    assert body["ratio"] == "adaptive"
    assert len(PNG) > 8


async def test_a_first_frame_that_is_gone_costs_nothing() -> None:
    async with playing() as (ark, provider):
        with pytest.raises(ProviderFailure) as raised:
            await ark.submit(a_clip_job(MODEL, first_frame_url="shelf:gone"))
        assert raised.value.code is ErrorCode.ASSET_FETCH_FAILED
        assert provider.ledger.entries() == []


async def test_a_job_for_something_else_is_refused() -> None:
    picture = JOB.model_copy(update={"request": ImageRequest(prompt="x", width=1, height=1)})
    with pytest.raises(ProviderFailure) as raised:
        await an_ark(mocked(lambda _: httpx.Response(200))).submit(picture)
    assert raised.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        ("invalid_request", ErrorCode.PROVIDER_BAD_REQUEST),
        ("unauthorized", ErrorCode.PROVIDER_AUTH),
        ("forbidden", ErrorCode.PROVIDER_AUTH),
        ("quota_exhausted", ErrorCode.PROVIDER_QUOTA_EXHAUSTED),
        ("moderation", ErrorCode.MODERATION_REJECTED),
        ("model_not_found", ErrorCode.PROVIDER_MODEL_RETIRED),
        ("asset_fetch", ErrorCode.ASSET_FETCH_FAILED),
        ("rate_limited", ErrorCode.PROVIDER_RATE_LIMITED),
        ("overloaded", ErrorCode.PROVIDER_RATE_LIMITED),
    ],
)
async def test_a_refused_submit_is_named_in_our_words(problem: str, code: ErrorCode) -> None:
    async with playing({"defaults": {"error": problem, "retry_after": 12}}) as (ark, provider):
        with pytest.raises(ProviderFailure) as raised:
            await ark.submit(JOB)
        assert (raised.value.code, raised.value.retry_after) == (code, 12.0)
        assert ark.normalize_error(raised.value) is code
        assert provider.ledger.accepted() == []


def _error(code: str, message: str = "") -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "param": "", "type": "X"}}


@pytest.mark.parametrize(
    ("status", "name", "message", "code"),
    [
        (400, "InputImageSensitiveContentDetected.PrivacyInformation", "", ErrorCode.MODERATION_REJECTED),
        (400, "InputTextRiskDetection", "", ErrorCode.MODERATION_REJECTED),
        (429, "QuotaExceeded", "free trial is used up", ErrorCode.PROVIDER_QUOTA_EXHAUSTED),
        (429, "QuotaExceeded", "too many tasks in the queue", ErrorCode.PROVIDER_RATE_LIMITED),
        (429, "ModelAccountRpmRateLimitExceeded", "", ErrorCode.PROVIDER_RATE_LIMITED),
        (429, "ModelLoadingError", "", ErrorCode.PROVIDER_RATE_LIMITED),
        (400, "InvalidEndpoint.ClosedEndpoint", "", ErrorCode.PROVIDER_MODEL_RETIRED),
        (404, "ModelNotOpen", "", ErrorCode.PROVIDER_MODEL_RETIRED),
        (400, "InvalidParameter.TaskTypeConstraint", "ratio", ErrorCode.PROVIDER_BAD_REQUEST),
        (400, "MissingParameter", "", ErrorCode.PROVIDER_BAD_REQUEST),
    ],
)
async def test_every_documented_code_has_a_meaning(
    status: int, name: str, message: str, code: ErrorCode
) -> None:
    with pytest.raises(ProviderFailure) as raised:
        await polled(_error(name, message), status).submit(JOB)
    assert raised.value.code is code


@pytest.mark.parametrize(
    "then",
    [
        {"fault": "hang", "accepted": True},
        {"fault": "disconnect", "accepted": True},
        {"fault": "half_body"},
        {"error": "unavailable", "accepted": True},
        {"error": "timeout", "accepted": True},
        {"status": 503, "accepted": True},
        {"status": 200, "body": "<html>", "accepted": True},
        {"status": 200, "body": {"task": 1}, "accepted": True},
        {"status": 200, "body": {"id": ""}, "accepted": True},
    ],
)
async def test_what_may_have_been_bought_is_unknown_and_not_sent_again(then: dict[str, Any]) -> None:
    async with playing({"defaults": then}) as (ark, provider):
        with pytest.raises(OutcomeUnknown) as raised:
            await ark.submit(JOB)
        assert ark.normalize_error(raised.value) is ErrorCode.SUBMIT_UNKNOWN
        assert len(provider.ledger.entries()) == len(provider.ledger.accepted()) == 1


# -- poll ----------------------------------------------------------------------------------------------------


async def test_a_task_goes_from_the_queue_to_its_output() -> None:
    async with playing(WAITS) as (ark, provider):
        task = await ark.submit(JOB)
        assert isinstance(provider.clock, HandClock)
        for _ in range(2):
            assert await ark.poll(task) == TaskReport()
            await provider.advance(60)
        report = await ark.poll(task)
        assert report.done
        assert report.error_code is None
        assert report.output_url is not None
        assert report.output_url.startswith(provider.url)
        assert len(provider.ledger.entries(operation="download")) == 0


@pytest.mark.parametrize(
    ("then", "code"),
    [
        ({"outcome": "failed", "failure": "moderation"}, ErrorCode.MODERATION_REJECTED),
        ({"outcome": "failed", "failure": "unavailable"}, ErrorCode.PROVIDER_UNAVAILABLE),
        ({"outcome": "failed", "failure": {"code": "NeverHeardOf"}}, ErrorCode.PROVIDER_UNAVAILABLE),
        ({"outcome": "expired"}, ErrorCode.PROVIDER_TIMEOUT),
        ({"outcome": "cancelled"}, ErrorCode.PROVIDER_CANCELLED),
        ({"without_url": True}, ErrorCode.OUTPUT_MISSING),
    ],
)
async def test_a_task_that_ends_without_an_output_says_why(then: dict[str, Any], code: ErrorCode) -> None:
    async with playing({"defaults": then}) as (ark, _):
        report = await ark.poll(await ark.submit(JOB))
        assert report.done
        assert report.error_code is code
        assert report.output_url is None
        assert report.detail


@pytest.mark.parametrize("word", ["paused", "", "SUCCEEDED_MAYBE"])
async def test_an_unknown_word_means_running_and_raises_an_alarm(word: str) -> None:
    with capture_logs() as logs:
        assert await polled({"id": "t", "status": word}).poll("t") == TaskReport()
    assert [(log["event"], log["log_level"]) for log in logs] == [("ark.unknown_status", "error")]


@pytest.mark.parametrize("word", ["queued", "running", "Running"])
async def test_a_known_word_raises_no_alarm(word: str) -> None:
    with capture_logs() as logs:
        assert await polled({"id": "t", "status": word}).poll("t") == TaskReport()
    assert logs == []


@pytest.mark.parametrize("url", [None, 7, "", "ftp://x", "javascript:1"])
async def test_an_output_that_is_no_address_is_missing(url: object) -> None:
    report = await polled({"status": "succeeded", "content": {"video_url": url}}).poll("t")
    assert report.error_code is ErrorCode.OUTPUT_MISSING


@pytest.mark.parametrize(
    "then",
    [
        {"fault": "hang"},
        {"fault": "disconnect"},
        {"fault": "half_body"},
        {"error": "not_found"},
        {"error": "rate_limited", "retry_after": 3},
        {"error": "unavailable"},
        {"error": "unauthorized"},
        {"status": 200, "body": "<html>"},
    ],
)
async def test_a_poll_that_fails_says_nothing_about_the_task(then: dict[str, Any]) -> None:
    scenario = {"rules": [{"when": {"operation": "poll", "to_call": 1}, "then": then}]}
    async with playing(scenario) as (ark, _):
        task = await ark.submit(JOB)
        with pytest.raises(ProviderFailure) as raised:
            await ark.poll(task)
        assert raised.value.code is ErrorCode.PROVIDER_UNAVAILABLE
        assert raised.value.retry_after == then.get("retry_after")
        assert (await ark.poll(task)).output_url


# -- cancel --------------------------------------------------------------------------------------------------


async def test_a_waiting_task_is_taken_back_and_not_billed() -> None:
    async with playing(WAITS) as (ark, provider):
        task = await ark.submit(JOB)
        assert await ark.cancel(task)
        assert provider.ledger.billed_usd() == 0
        assert (await ark.poll(task)).error_code is ErrorCode.PROVIDER_CANCELLED


async def test_a_running_or_finished_task_is_left_alone() -> None:
    async with playing(WAITS) as (ark, provider):
        task = await ark.submit(JOB)
        await provider.advance(60)
        assert not await ark.cancel(task)
        await provider.advance(60)
        assert not await ark.cancel(task)
        assert (await ark.poll(task)).output_url
        assert provider.ledger.entries(operation="cancel") == []


# -- after an unknown outcome --------------------------------------------------------------------------------

LOST: dict[str, Any] = {"when": {"to_call": 1}, "then": {"fault": "disconnect", "accepted": True}}


async def lost(ark: Ark, job: Any = JOB) -> None:
    with pytest.raises(OutcomeUnknown):
        await ark.submit(job)


async def test_a_lost_task_is_found_by_our_reference_among_its_likes() -> None:
    async with playing({"rules": [LOST]}) as (ark, provider):
        await lost(ark)
        await ark.submit(JOB.model_copy(update={"scene_id": "scene-002"}))
        found = await ark.candidates(JOB)
        assert found == Adopted(str(provider.ledger.accepted()[0].task_id), certain=True)


async def test_without_a_reference_the_only_task_that_looks_like_ours_is_probably_it() -> None:
    async with playing({"rules": [LOST], "defaults": {"echoes_reference": False}}) as (ark, provider):
        provider.play({"rules": [{**LOST, "then": {**LOST["then"], "echoes_reference": False}}]})
        await lost(ark)
        for other in ({"seed": 8}, {"duration_seconds": 9.0}, {"aspect_ratio": "16:9"}):
            provider.play({"defaults": {"echoes_reference": False}})
            await ark.submit(a_clip_job(MODEL, **other))
        await ark.submit(a_clip_job("another-model"))
        mine = str(provider.ledger.accepted()[0].task_id)
        assert await ark.candidates(JOB) == Adopted(mine, certain=False)


async def test_several_likes_are_for_a_person_unless_other_jobs_have_them() -> None:
    async with playing({"defaults": {"echoes_reference": False}}) as (ark, _):
        first, second = await ark.submit(JOB), await ark.submit(JOB)
        found = await ark.candidates(JOB)
        assert isinstance(found, Several)
        assert set(found.task_ids) == {first, second}
        assert await ark.candidates(JOB, taken={first}) == Adopted(second, certain=False)
        assert await ark.candidates(JOB, taken={first, second}) == Absent()


@pytest.mark.parametrize(("minutes", "seen"), [(-6, Absent), (-4, Adopted), (0.9, Adopted), (1.1, Absent)])
async def test_only_tasks_made_around_the_submit_count(minutes: float, seen: type) -> None:
    async with playing({"defaults": {"echoes_reference": False}}) as (ark, _):
        await ark.submit(JOB)
        found = await ark.candidates(
            JOB.model_copy(update={"intended_at": START + timedelta(minutes=minutes)})
        )
        assert type(found) is seen


@pytest.mark.parametrize(("minutes", "seen"), [(-126, Absent), (-60, Adopted), (60, Adopted), (122, Absent)])
async def test_a_task_that_repeats_our_reference_counts_though_our_clock_was_set(
    minutes: float, seen: type
) -> None:
    async with playing() as (ark, _):
        await ark.submit(JOB)
        found = await ark.candidates(
            JOB.model_copy(update={"intended_at": START + timedelta(minutes=minutes)})
        )
        assert type(found) is seen


@pytest.mark.parametrize("said", [{"resolution": "4k"}, {"duration": 6}, {"ratio": "1:1"}, {"seed": -1}])
async def test_a_task_that_repeats_our_reference_is_ours_whatever_else_it_says(said: dict[str, Any]) -> None:
    item = {"id": "cgt-1", "safety_identifier": orders.safety_identifier(JOB), **said}
    ark = an_ark(mocked(lambda _: httpx.Response(200, json={"items": [item]})))
    assert await ark.candidates(JOB) == Adopted("cgt-1", certain=True)


@pytest.mark.parametrize(
    "said", [{"duration": "5s"}, {"duration": 5.0}, {"resolution": "1080P"}, {"safety_identifier": ""}]
)
async def test_a_task_that_says_the_same_otherwise_may_be_ours(said: dict[str, Any]) -> None:
    item = {"id": "cgt-1", "duration": 5, "resolution": "1080p", "ratio": "9:16", "seed": 7, **said}
    ark = an_ark(mocked(lambda _: httpx.Response(200, json={"items": [item]})))
    assert await ark.candidates(JOB) == Adopted("cgt-1", certain=False)


async def test_a_task_with_an_odd_age_or_none_is_judged_without_error() -> None:
    items = [{"id": "cgt-1"}, {"id": "cgt-2", "created_at": 10**30}, {"id": 3}, "cgt-4"]
    ark = an_ark(mocked(lambda _: httpx.Response(200, json={"items": items})))
    assert await ark.candidates(JOB) == Adopted("cgt-1", certain=False)


async def test_a_list_that_lags_shows_nothing_yet() -> None:
    async with playing({"rules": [{**LOST, "then": {**LOST["then"], "listed_after": 30}}]}) as (
        ark,
        provider,
    ):
        await lost(ark)
        assert await ark.candidates(JOB) == Absent()
        await provider.advance(30)
        assert isinstance(await ark.candidates(JOB), Adopted)


@pytest.mark.parametrize(
    "then", [{"error": "unavailable"}, {"fault": "half_body"}, {"status": 200, "body": {"total": 0}}]
)
async def test_a_list_that_fails_is_not_an_absence(then: dict[str, Any]) -> None:
    async with playing({"rules": [{"when": {"operation": "list"}, "then": then}]}) as (ark, _):
        with pytest.raises(ProviderFailure) as raised:
            await ark.candidates(JOB)
        assert raised.value.code is ErrorCode.PROVIDER_UNAVAILABLE


async def test_every_page_of_the_list_is_read_and_an_endless_list_is_not_an_absence() -> None:
    ours = {"id": "cgt-mine", "created_at": START.timestamp()}
    pages: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        page = int(request.url.params["page_num"])
        assert request.url.params["filter.model"] == MODEL
        pages.append(page)
        others = [{"id": f"cgt-{page}-{n}", "created_at": 0} for n in range(499)]
        return httpx.Response(200, json={"items": [*others, ours] if page < last else [ours]})

    last = 3
    assert await an_ark(mocked(answer)).candidates(JOB) == Adopted("cgt-mine", certain=False)
    assert pages == [1, 2, 3]
    last = 1000
    with pytest.raises(ProviderFailure):
        await an_ark(mocked(answer)).candidates(JOB)


# -- secrets -------------------------------------------------------------------------------------------------


KEY = "4f0c1d2e-aaaa-bbbb-cccc-0123456789ab"
TOKEN = "unguessable-0123"


async def _stays_silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()


async def _repeats_everything(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    said = await reader.readuntil(b"\r\n\r\n") + await reader.read(20_000)
    writer.write(b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\n\r\n" % len(said) + said)
    await writer.drain()


@pytest.mark.parametrize("talk", [_stays_silent, _repeats_everything])
async def test_neither_key_nor_callback_address_is_shown(
    talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    patience = Patience(connect=1.0, read=0.2, write=0.2, pool=0.2, total=0.5)
    async with raw_server(talk) as url, direct_client() as client:
        ark = an_ark(
            client,
            url,
            key=SecretStr(KEY),
            callback=lambda job: f"https://us.example/ark/{job.job_id}/{TOKEN}",
            patience=patience,
        )
        with pytest.raises((ProviderFailure, OutcomeUnknown)) as raised:
            await ark.submit(JOB)
    assert KEY not in everything_shown(raised.value)
    for shown in (str(raised.value), repr(vars(raised.value)), repr(ark), caplog.text):
        assert KEY not in shown
        assert TOKEN not in shown
