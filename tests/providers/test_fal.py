"""The fal adapter, against the fake provider's real HTTP and its ledger."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from models.errors import ErrorCode, OutcomeUnknown, ProviderFailure
from models.ports import Absent, Adopted, Several, TaskReport, VideoProvider
from sceneloom.providers.fal import Fal
from sceneloom.testing.fake_provider import FakeProvider
from tests.fakes import START, MovedClock
from tests.providers.paid import FAKE_KEY, Shelf, a_clip_job, everything_shown, faking, mocked, patience_for

MODEL = "fal-ai/bytedance/seedance/v2/text-to-video"
APP = "fal-ai/bytedance"
JOB = a_clip_job(MODEL)
WAITS = {"defaults": {"queued": 60, "running": 60}}
KEY = "0a1b2c3d-1111-2222-3333-444455556666:0123456789abcdef0123456789abcdef"


def a_fal(client: httpx.AsyncClient, url: str = "https://queue.example", **changes: Any) -> Fal:
    options = {"key": FAKE_KEY, "clock": MovedClock(), "assets": Shelf(), "cost_usd": 0.2}
    return Fal(client=client, base_url=url, platform_url=f"{url}/v1", **{**options, **changes})


@asynccontextmanager
async def playing(scenario: Any = None, **changes: Any) -> AsyncIterator[tuple[Fal, FakeProvider]]:
    async with faking(scenario) as (provider, client):
        yield a_fal(client, provider.url, patience=patience_for(scenario), **changes), provider


def answering(*answers: httpx.Response, seen: list[httpx.Request] | None = None) -> Fal:
    """Return an adapter that gets *answers*, one after the other."""
    waiting = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        return waiting.pop(0)

    return a_fal(mocked(answer))


def completed(result: httpx.Response) -> Fal:
    """Return an adapter whose task is done and whose result is asked for with that answer."""
    return answering(httpx.Response(200, json={"status": "COMPLETED"}), result)


async def sent(job: Any = JOB, **changes: Any) -> tuple[httpx.URL, Any]:
    """Return the address and the JSON that a submit of *job* uses."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"request_id": "r-1", "status_url": "https://evil.example/steal"})

    task = await a_fal(mocked(answer), **changes).submit(job)
    assert task.endswith("/requests/r-1")
    (request,) = seen
    return request.url, httpx.Response(200, content=request.content).json()


def test_it_is_a_video_provider() -> None:
    fal = answering()
    assert isinstance(fal, VideoProvider)
    assert fal.cost_per_call() == 0.2


# -- submit --------------------------------------------------------------------------------------------------


async def test_a_submit_says_exactly_what_is_wanted() -> None:
    url, body = await sent(
        options={"generate_audio": False}, callback=lambda job: f"https://us.example/fal/{job.job_id}/t0ken"
    )
    assert str(url.copy_with(query=None)) == f"https://queue.example/{MODEL}"
    assert dict(url.params) == {"fal_webhook": "https://us.example/fal/p1/scene-001/clip/t0ken"}
    assert body == {
        "prompt": "a fox",
        "aspect_ratio": "9:16",
        "duration": "5",
        "resolution": "1080p",
        "seed": 7,
        "generate_audio": False,
    }


async def test_a_first_frame_goes_to_the_sibling_model_that_takes_one() -> None:
    url, body = await sent(a_clip_job(MODEL, first_frame_url="shelf:picture"))
    assert url.path == "/fal-ai/bytedance/seedance/v2/image-to-video"
    assert body["image_url"].startswith("data:image/png;base64,")


@pytest.mark.parametrize(
    ("model", "task"),
    [
        (MODEL, f"{APP}/requests/r-1"),
        ("fal-ai/one", "fal-ai/one/requests/r-1"),
        ("workflows/us/film/run", "workflows/us/film/requests/r-1"),
    ],
)
async def test_the_task_id_is_the_path_that_polls_need(model: str, task: str) -> None:
    fal = answering(httpx.Response(200, json={"request_id": "r-1"}))
    assert await fal.submit(a_clip_job(model)) == task


async def test_polls_stay_on_our_own_host_whatever_addresses_are_returned() -> None:
    seen: list[httpx.Request] = []
    submitted = {"request_id": "r-1", "status_url": "https://evil.example/s"}
    fal = answering(
        httpx.Response(200, json=submitted), httpx.Response(202, json={"status": "IN_QUEUE"}), seen=seen
    )
    await fal.poll(await fal.submit(JOB))
    assert {request.url.host for request in seen} == {"queue.example"}
    assert seen[1].headers["Authorization"] == "Key fake-key"


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
    ],
)
async def test_a_refused_submit_is_named_in_our_words(problem: str, code: ErrorCode) -> None:
    async with playing({"defaults": {"error": problem, "retry_after": 12}}) as (fal, provider):
        with pytest.raises(ProviderFailure) as raised:
            await fal.submit(JOB)
        assert (raised.value.code, raised.value.retry_after) == (code, 12.0)
        assert fal.normalize_error(raised.value) is code
        assert provider.ledger.accepted() == []


async def test_an_exhausted_balance_is_no_question_of_the_key() -> None:
    detail = {"detail": "User is locked. Reason: Exhausted balance. Top up your balance."}
    with pytest.raises(ProviderFailure) as raised:
        await answering(httpx.Response(403, json=detail)).submit(JOB)
    assert raised.value.code is ErrorCode.PROVIDER_QUOTA_EXHAUSTED


@pytest.mark.parametrize(
    "then",
    [
        {"fault": "hang", "accepted": True},
        {"fault": "disconnect", "accepted": True},
        {"fault": "half_body"},
        {"error": "unavailable", "accepted": True},
        {"error": "overloaded", "accepted": True},
        {"error": "timeout", "accepted": True},
        {"status": 200, "body": "queued!", "accepted": True},
        {"status": 200, "body": {"request_id": None}, "accepted": True},
        {"status": 200, "body": {"request_id": "../../evil"}, "accepted": True},
    ],
)
async def test_what_may_have_been_bought_is_unknown_and_not_sent_again(then: dict[str, Any]) -> None:
    async with playing({"defaults": then}) as (fal, provider):
        with pytest.raises(OutcomeUnknown):
            await fal.submit(JOB)
        assert len(provider.ledger.entries()) == len(provider.ledger.accepted()) == 1


# -- poll ----------------------------------------------------------------------------------------------------


async def test_a_task_goes_from_the_queue_to_its_output() -> None:
    async with playing(WAITS) as (fal, provider):
        task = await fal.submit(JOB)
        for _ in range(2):
            assert await fal.poll(task) == TaskReport()
            await provider.advance(60)
        report = await fal.poll(task)
        assert (report.done, report.error_code) == (True, None)
        assert report.output_url is not None
        assert report.output_url.startswith(provider.url)


@pytest.mark.parametrize(
    ("then", "code"),
    [
        ({"outcome": "failed", "failure": "moderation"}, ErrorCode.MODERATION_REJECTED),
        ({"outcome": "failed", "failure": "asset_fetch"}, ErrorCode.ASSET_FETCH_FAILED),
        ({"outcome": "failed", "failure": "output_missing"}, ErrorCode.OUTPUT_MISSING),
        ({"outcome": "failed", "failure": "unavailable"}, ErrorCode.PROVIDER_UNAVAILABLE),
        ({"outcome": "failed", "failure": "overloaded"}, ErrorCode.PROVIDER_UNAVAILABLE),
        ({"outcome": "failed", "failure": {"code": "image_load_error"}}, ErrorCode.PROVIDER_BAD_REQUEST),
        ({"outcome": "expired"}, ErrorCode.PROVIDER_TIMEOUT),
        ({"outcome": "cancelled"}, ErrorCode.PROVIDER_CANCELLED),
        ({"without_url": True}, ErrorCode.OUTPUT_MISSING),
    ],
)
async def test_a_task_that_ends_without_an_output_says_why(then: dict[str, Any], code: ErrorCode) -> None:
    async with playing({"defaults": then}) as (fal, _):
        report = await fal.poll(await fal.submit(JOB))
        assert report.done
        assert report.error_code is code
        assert report.detail


def _faults(*kinds: str) -> dict[str, Any]:
    return {"detail": [{"loc": ["body"], "msg": "no", "type": kind} for kind in kinds]}


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (422, _faults("content_policy_violation"), ErrorCode.MODERATION_REJECTED),
        (422, _faults("value_error", "file_download_error"), ErrorCode.ASSET_FETCH_FAILED),
        (422, _faults("never_heard_of"), ErrorCode.PROVIDER_BAD_REQUEST),
        (422, {"detail": "no"}, ErrorCode.PROVIDER_BAD_REQUEST),
        (504, _faults("generation_timeout"), ErrorCode.PROVIDER_TIMEOUT),
        (504, {"detail": "x", "error_type": "startup_timeout"}, ErrorCode.PROVIDER_TIMEOUT),
        (503, {"detail": "x", "error_type": "runner_disconnected"}, ErrorCode.PROVIDER_UNAVAILABLE),
        (500, _faults("downstream_service_error"), ErrorCode.PROVIDER_UNAVAILABLE),
        (404, {"detail": "Request not found"}, ErrorCode.OUTPUT_MISSING),
        (410, {}, ErrorCode.OUTPUT_MISSING),
    ],
)
async def test_completed_may_mean_failed_and_the_result_says_so(
    status: int, body: dict[str, Any], code: ErrorCode
) -> None:
    report = await completed(httpx.Response(status, json=body)).poll(f"{APP}/requests/r-1")
    assert (report.done, report.error_code) == (True, code)


@pytest.mark.parametrize("status", [302, 401, 403, 429, 500, 502, 503])
async def test_a_result_that_cannot_be_read_now_says_nothing_about_the_task(status: int) -> None:
    fal = completed(httpx.Response(status, json={"detail": "later"}, headers={"Retry-After": "4"}))
    with pytest.raises(ProviderFailure) as raised:
        await fal.poll(f"{APP}/requests/r-1")
    assert (raised.value.code, raised.value.retry_after) == (ErrorCode.PROVIDER_UNAVAILABLE, 4.0)


@pytest.mark.parametrize(
    "body",
    [
        {"video": {"url": "https://cdn.example/v.mp4"}},
        {"videos": [{"url": "https://cdn.example/v.mp4"}]},
        {"video": "https://cdn.example/v.mp4"},
    ],
)
async def test_models_name_their_video_in_several_ways(body: dict[str, Any]) -> None:
    report = await completed(httpx.Response(200, json=body)).poll(f"{APP}/requests/r-1")
    assert report.output_url == "https://cdn.example/v.mp4"


@pytest.mark.parametrize("body", [{}, {"video": None}, {"videos": []}, {"video": {"url": 7}}, {"video": [1]}])
async def test_a_result_without_a_video_is_missing(body: dict[str, Any]) -> None:
    report = await completed(httpx.Response(200, json=body)).poll(f"{APP}/requests/r-1")
    assert report.error_code is ErrorCode.OUTPUT_MISSING


@pytest.mark.parametrize(
    ("word", "alarms"), [("IN_QUEUE", 0), ("IN_PROGRESS", 0), ("THINKING", 1), (None, 1)]
)
async def test_an_unknown_word_means_running_and_raises_an_alarm(word: str | None, alarms: int) -> None:
    with capture_logs() as logs:
        report = await answering(httpx.Response(202, json={"status": word})).poll(f"{APP}/requests/r-1")
    assert report == TaskReport()
    assert [log["log_level"] for log in logs] == ["error"] * alarms


@pytest.mark.parametrize(
    "task", ["", "r-1", "fal-ai/requests/r-1", "../x/requests/1", "a/b/requests/1/../2", "//evil.example/x"]
)
async def test_a_task_id_that_leads_elsewhere_is_not_followed(task: str) -> None:
    seen: list[httpx.Request] = []
    with pytest.raises(ProviderFailure):
        await answering(seen=seen).poll(task)
    assert seen == []


@pytest.mark.parametrize("then", [{"fault": "hang"}, {"error": "not_found"}, {"status": 200, "body": "x"}])
async def test_a_poll_that_fails_says_nothing_about_the_task(then: dict[str, Any]) -> None:
    scenario = {"rules": [{"when": {"operation": "poll", "to_call": 1}, "then": then}]}
    async with playing(scenario) as (fal, _):
        task = await fal.submit(JOB)
        with pytest.raises(ProviderFailure) as raised:
            await fal.poll(task)
        assert raised.value.code is ErrorCode.PROVIDER_UNAVAILABLE
        assert (await fal.poll(task)).output_url


# -- cancel --------------------------------------------------------------------------------------------------


async def test_only_a_task_that_still_waits_is_surely_taken_back() -> None:
    async with playing(WAITS) as (fal, provider):
        waiting, running = await fal.submit(JOB), await fal.submit(JOB)
        assert await fal.cancel(waiting)
        await provider.advance(60)
        assert not await fal.cancel(running)
        await provider.advance(60)
        assert not await fal.cancel(running)
        assert provider.ledger.billed_usd() == 0.15
        assert (await fal.poll(waiting)).error_code is ErrorCode.PROVIDER_CANCELLED


# -- after an unknown outcome --------------------------------------------------------------------------------


async def test_a_lost_task_is_found_by_what_it_asked_for() -> None:
    lost = {"when": {"to_call": 1}, "then": {"fault": "disconnect", "accepted": True}}
    async with playing({"rules": [lost]}) as (fal, provider):
        with pytest.raises(OutcomeUnknown):
            await fal.submit(JOB)
        await fal.submit(a_clip_job(MODEL, prompt="a hen"))
        await fal.submit(a_clip_job("fal-ai/other/text-to-video"))
        task = f"{APP}/requests/{provider.ledger.accepted()[0].task_id}"
        assert await fal.candidates(JOB) == Adopted(task, certain=False)
        assert await fal.candidates(JOB, taken=[task]) == Absent()
        assert (
            await fal.candidates(JOB.model_copy(update={"intended_at": START + timedelta(minutes=2)}))
            == Absent()
        )
        again = await fal.submit(JOB)
        assert await fal.candidates(JOB) == Several((again, task))


async def test_a_request_whose_input_is_not_kept_may_be_ours() -> None:
    page = {"items": [{"request_id": "r-1"}], "has_more": False}
    found = await answering(httpx.Response(200, json=page)).candidates(JOB)
    assert found == Adopted(f"{APP}/requests/r-1", certain=False)


async def test_every_page_of_the_list_is_read() -> None:
    seen: list[httpx.Request] = []
    first = {
        "items": [{"request_id": "r-0", "json_input": {"prompt": "a hen"}}],
        "has_more": True,
        "next_cursor": "c2",
    }
    second = {"items": [{"request_id": "r-1"}], "has_more": False, "next_cursor": None}
    fal = answering(httpx.Response(200, json=first), httpx.Response(200, json=second), seen=seen)
    assert await fal.candidates(JOB) == Adopted(f"{APP}/requests/r-1", certain=False)
    assert [request.url.params.get("cursor") for request in seen] == [None, "c2"]
    assert seen[0].url.params["start"] == "2025-12-31T23:59:00+00:00"


@pytest.mark.parametrize("then", [{"error": "unavailable"}, {"status": 200, "body": {"has_more": False}}])
async def test_a_list_that_fails_is_not_an_absence(then: dict[str, Any]) -> None:
    async with playing({"rules": [{"when": {"operation": "list"}, "then": then}]}) as (fal, _):
        with pytest.raises(ProviderFailure):
            await fal.candidates(JOB)


# -- secrets -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 500])
async def test_the_key_is_never_shown(status: int) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        said = f"{request.headers['Authorization']} is not welcome"
        return httpx.Response(status, json={"detail": said, "error_type": said})

    fal = a_fal(mocked(answer), key=SecretStr(KEY))
    with pytest.raises((ProviderFailure, OutcomeUnknown)) as raised:
        await fal.submit(JOB)
    assert KEY not in everything_shown(raised.value)
    assert "is not welcome" in str(raised.value)


async def test_a_failed_task_s_words_are_cleaned_too() -> None:
    status = {"status": "COMPLETED", "error": "sorry, key fake-key", "error_type": "content_policy_violation"}
    report = await answering(httpx.Response(200, json=status)).poll(f"{APP}/requests/r-1")
    assert report.error_code is ErrorCode.MODERATION_REJECTED
    assert "fake-key" not in repr(report)
