"""What is particular to each task API beyond the contract: its orders, and where outputs are."""

import base64
import json
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from models.errors import ErrorCode, ProviderFailure
from models.job import Job
from models.ports import Absent, Adopted, Several, TaskReport
from models.shapes import AspectRatio
from models.work import JobKind
from sceneloom.providers import orders
from sceneloom.providers.connection import Connection
from sceneloom.providers.services import services
from tests.fakes import START, MovedClock
from tests.providers.paid import PNG, Shelf, a_clip_job, mocked
from tests.providers.wires.replicate import VERSION

FRAME = "https://pictures.example/fox.png"
OURS = base64.b64encode(PNG).decode()
HOOK = "https://us.example/hooks/t0ken"


def an_adapter(name: str, answer: Any, **changes: Any) -> Any:
    service = services()[name]
    entry = service.entry
    model = entry.usual_model(JobKind.CLIP)
    known = entry.model(model, JobKind.CLIP)
    facts = {
        "entry": entry,
        "client": mocked(answer),
        "key": SecretStr("k-0123456789"),
        "clock": MovedClock(),
        "assets": Shelf(),
        "url": entry.url,
        "model": model,
        "resolution": known.resolution if known else "",
        **changes,
    }
    return service.adapters[JobKind.CLIP](Connection(**facts))


async def order_of(name: str, job: Job, **changes: Any) -> tuple[str, Any]:
    """Return the path and the JSON that a submit of *job* sends."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(400, json={})

    with pytest.raises(ProviderFailure):
        await an_adapter(name, answer, **changes).submit(job)
    (request,) = seen
    return request.url.path, json.loads(request.content)


def a_job(model: str = "m", **changes: Any) -> Job:
    return a_clip_job(model, duration_seconds=5.0, **changes)


def answering(*replies: Any) -> Any:
    """Answer one request after another with these bodies, or with whole responses."""
    left = list(replies)

    def answer(_: httpx.Request) -> httpx.Response:
        reply = left.pop(0)
        return reply if isinstance(reply, httpx.Response) else httpx.Response(200, json=reply)

    return answer


# -- orders --------------------------------------------------------------------------------------------------

IDENTITY = orders.safety_identifier(a_job())


@pytest.mark.parametrize(
    ("name", "path", "body"),
    [
        (
            "runway",
            "/v1/text_to_video",
            {"model": "m", "promptText": "a fox", "ratio": "720:1280", "duration": 5, "seed": 7},
        ),
        (
            "luma",
            "/v1/generations",
            {
                "type": "video",
                "model": "m",
                "prompt": "a fox",
                "aspect_ratio": "9:16",
                "user_id": IDENTITY,
                "video": {"duration": "5s", "resolution": "1080p"},
            },
        ),
        (
            "kling",
            "/v1/videos/text2video",
            {
                "model_name": "m",
                "prompt": "a fox",
                "mode": "pro",
                "duration": "5",
                "sound": "off",
                "aspect_ratio": "9:16",
                "external_task_id": IDENTITY,
            },
        ),
        (
            "minimax",
            "/v2/video_generation",
            {
                "model": "m",
                "content": [{"type": "text", "text": "a fox"}],
                "resolution": "768P",
                "duration": 5,
                "ratio": "9:16",
                "aigc_watermark": False,
            },
        ),
        (
            "google",
            "/v1beta/interactions",
            {
                "model": "m",
                "input": [{"type": "text", "text": "a fox"}],
                "background": True,
                "store": True,
                "response_format": [
                    {
                        "type": "video",
                        "aspect_ratio": "9:16",
                        "resolution": "1080p",
                        "duration": "5s",
                        "delivery": "uri",
                    }
                ],
            },
        ),
    ],
)
async def test_an_order_says_exactly_what_is_wanted(name: str, path: str, body: Any) -> None:
    assert await order_of(name, a_job()) == (path, body)


INPUT = {"prompt": "a fox", "aspect_ratio": "9:16", "duration": 5, "seed": 7}


@pytest.mark.parametrize(
    ("model", "path", "body"),
    [
        ("acme/clips", "/v1/models/acme/clips/predictions", {"input": INPUT}),
        ("acme/clips:5c7d", "/v1/predictions", {"input": INPUT, "version": "5c7d"}),
        ("5c7d", "/v1/predictions", {"input": INPUT, "version": "5c7d"}),
    ],
)
async def test_replicate_has_a_route_for_official_models_and_one_for_versions(
    model: str, path: str, body: Any
) -> None:
    assert await order_of("replicate", a_job(model)) == (path, body)


@pytest.mark.parametrize(
    ("name", "path", "at", "web", "ours"),
    [
        ("runway", "/v1/image_to_video", ("promptImage",), FRAME, f"data:image/png;base64,{OURS}"),
        ("kling", "/v1/videos/image2video", ("image",), FRAME, OURS),
        (
            "luma",
            "/v1/generations",
            ("video", "start_frame"),
            {"url": FRAME},
            {"data": OURS, "media_type": "image/png"},
        ),
        (
            "google",
            "/v1beta/interactions",
            ("input", 1),
            {"type": "image", "mime_type": "image/png", "uri": FRAME},
            {"type": "image", "mime_type": "image/png", "data": OURS},
        ),
        ("replicate", "/v1/predictions", ("input", "image"), FRAME, f"data:image/png;base64,{OURS}"),
    ],
)
async def test_a_first_frame_goes_where_the_provider_wants_it(
    name: str, path: str, at: tuple[Any, ...], web: Any, ours: Any
) -> None:
    for frame, expected in ((FRAME, web), ("shelf:picture", ours)):
        asked, body = await order_of(name, a_job(first_frame_url=frame))
        for step in at:
            body = body[step]
        assert (asked, body) == (path, expected)


async def test_the_ratio_of_a_first_frame_is_followed_where_the_provider_wants_that() -> None:
    _, body = await order_of("minimax", a_job(first_frame_url=FRAME))
    assert body["ratio"] == "adaptive"
    _, body = await order_of("kling", a_job(first_frame_url=FRAME))
    assert "aspect_ratio" not in body


async def test_runway_names_a_ratio_by_its_pixels() -> None:
    square = {"aspect_ratio": AspectRatio.SQUARE, "first_frame_url": FRAME}
    assert (await order_of("runway", a_job(**square)))[1]["ratio"] == "960:960"
    wide = a_job("veo3.1", aspect_ratio=AspectRatio.LANDSCAPE)
    assert (await order_of("runway", wide, resolution="1080p"))[1]["ratio"] == "1920:1080"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("kling", {"callback_url": HOOK}),
        ("replicate", {"webhook": HOOK, "webhook_events_filter": ["completed"]}),
        ("google", {"webhook_config": {"uris": [HOOK]}}),
    ],
)
async def test_a_callback_goes_along_and_shows_up_in_no_error(name: str, said: dict[str, Any]) -> None:
    _, body = await order_of(name, a_job(), callback=lambda _: HOOK)
    assert {field: body.get(field) for field in said} == said

    def repeating(_: httpx.Request) -> httpx.Response:
        return httpx.Response(400, text=f"{HOOK} is not allowed")

    with pytest.raises(ProviderFailure) as refused:
        await an_adapter(name, repeating, callback=lambda _: HOOK).submit(a_job())
    assert "t0ken" not in str(refused.value)


# -- Kling ---------------------------------------------------------------------------------------------------


async def test_kling_asks_for_a_task_where_it_was_ordered() -> None:
    paths: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.path)
        return httpx.Response(200, json={"code": 0, "data": {"task_id": "t/1", "task_status": "processing"}})

    kling = an_adapter("kling", answer)
    task_id = await kling.submit(a_job(first_frame_url=FRAME))
    assert await kling.poll(task_id) == TaskReport()
    assert paths == ["/v1/videos/image2video", "/v1/videos/image2video/t/1"]
    assert task_id == "image2video/t/1"


async def test_a_code_of_kling_that_nobody_knows_is_no_proof_of_absence() -> None:
    kling = an_adapter("kling", answering({"code": 5000, "message": "busy"}))
    with pytest.raises(ProviderFailure):
        await kling.candidates(a_job())


# -- Replicate -----------------------------------------------------------------------------------------------


def prediction(task_id: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": task_id,
        "created_at": "2026-01-01T00:00:10Z",
        "model": "acme/clips",
        "input": INPUT,
    } | changes


async def test_our_own_webhook_in_a_prediction_is_certain() -> None:
    page = {"results": [prediction("a"), prediction("b", webhook=HOOK)], "next": None}
    replicate = an_adapter("replicate", answering(page), callback=lambda _: HOOK)
    assert await replicate.candidates(a_job("acme/clips")) == Adopted("b", certain=True)


@pytest.mark.parametrize(
    "said", [{"model": "acme/renamed"}, {"input": {"prompt": "cut"}}, {"created_at": "2025-12-31T22:00:00Z"}]
)
async def test_our_own_webhook_is_certain_whatever_else_the_prediction_says(said: dict[str, Any]) -> None:
    page = {"results": [prediction("a"), prediction("b", webhook=HOOK, **said)], "next": None}
    replicate = an_adapter("replicate", answering(page), callback=lambda _: HOOK)
    assert await replicate.candidates(a_job("acme/clips")) == Adopted("b", certain=True)


OTHER_VERSION = VERSION[::-1]


@pytest.mark.parametrize(
    ("model", "shown", "is_ours"),
    [
        (f"acme/clips:{VERSION}", {"version": VERSION}, True),
        (f"acme/clips:{VERSION}", {}, True),
        (f"acme/clips:{VERSION}", {"version": "hidden"}, True),
        (f"acme/clips:{VERSION}", {"version": OTHER_VERSION}, False),
        (f"acme/clips:{VERSION}", {"version": VERSION, "model": "acme/other"}, False),
        (VERSION, {"version": VERSION, "model": "acme/whatever"}, True),
        (VERSION, {"model": "acme/whatever"}, True),
        (VERSION, {"version": OTHER_VERSION}, False),
        ("Acme/Clips", {"version": OTHER_VERSION}, True),
        ("acme/clips", {"model": None}, True),
    ],
)
async def test_a_prediction_of_a_version_shows_it_beside_its_model(
    model: str, shown: dict[str, Any], *, is_ours: bool
) -> None:
    replicate = an_adapter("replicate", answering({"results": [prediction("a", **shown)], "next": None}))
    found = await replicate.candidates(a_job(model))
    assert found == (Adopted("a", certain=False) if is_ours else Absent())


async def test_the_list_of_predictions_is_read_to_its_end() -> None:
    following = "https://api.replicate.com/v1/predictions?cursor=c2"
    cursors: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        cursors.append(request.url.params.get("cursor"))
        last = len(cursors) == 2
        page = {"results": [prediction("b" if last else "a")], "next": None if last else following}
        return httpx.Response(200, json=page)

    found = await an_adapter("replicate", answer).candidates(a_job("acme/clips"))
    assert (found, cursors) == (Several(("a", "b")), [None, "c2"])


@pytest.mark.parametrize(
    "other",
    [
        {"input": INPUT | {"prompt": "a hen"}},
        {"input": INPUT | {"seed": 8}},
        {"model": "acme/other"},
        {"created_at": "2025-12-31T23:58:00Z"},
    ],
)
async def test_a_prediction_of_something_else_is_not_ours(other: dict[str, Any]) -> None:
    replicate = an_adapter("replicate", answering({"results": [prediction("a", **other)], "next": None}))
    assert await replicate.candidates(a_job("acme/clips")) == Absent()


async def test_an_input_that_is_not_kept_may_have_been_ours() -> None:
    replicate = an_adapter("replicate", answering({"results": [prediction("a", input=None)], "next": None}))
    assert await replicate.candidates(a_job("acme/clips")) == Adopted("a", certain=False)


async def test_an_output_that_replicate_has_removed_is_missing() -> None:
    removed = {"status": "succeeded", "output": None, "data_removed": True}
    report = await an_adapter("replicate", answering(removed)).poll("a")
    assert report.error_code is ErrorCode.OUTPUT_MISSING


# -- MiniMax -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other", [{"duration": 6}, {"ratio": "1:1"}, {"resolution": "2K"}, {"created_at": 1}]
)
async def test_a_task_of_minimax_that_differs_is_not_ours(other: dict[str, Any]) -> None:
    task = {"task_id": "a", "model": "m", "resolution": "768P", "duration": 5, "ratio": "9:16"}
    page = {"items": [{**task, "created_at": START.timestamp() + 5, **other}]}
    assert await an_adapter("minimax", answering(page)).candidates(a_job()) == Absent()


@pytest.mark.parametrize(
    "said", [{"resolution": "768p"}, {"duration": "5"}, {"ratio": ""}, {"duration": [5]}]
)
async def test_a_task_of_minimax_that_says_the_same_otherwise_may_be_ours(said: dict[str, Any]) -> None:
    page = {"items": [{"task_id": "a", "model": "m", "resolution": "768P", "duration": 5, **said}]}
    assert await an_adapter("minimax", answering(page)).candidates(a_job()) == Adopted("a", certain=False)


async def test_a_list_of_minimax_without_an_end_says_nothing() -> None:
    page = {"items": [{"task_id": "a", "duration": 9}] * 100}
    with pytest.raises(ProviderFailure, match="too long"):
        await an_adapter("minimax", answering(*[page] * 20)).candidates(a_job())


# -- Google --------------------------------------------------------------------------------------------------

FILE = "https://generativelanguage.googleapis.com/v1beta/files/f-1:download?alt=media"


def completed(**video: str) -> dict[str, Any]:
    step = {"type": "model_output", "content": [{"type": "video", **video}]}
    return {
        "id": "i",
        "status": "completed",
        "steps": [{"type": "user_input", "content": [{"type": "video", "uri": "https://in"}]}, step],
    }


async def test_a_file_of_google_is_fetched_with_the_key() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        if request.url.path.endswith("/interactions/i"):
            return httpx.Response(200, json=completed(uri=FILE))
        return httpx.Response(200, content=b"a video")

    report = await an_adapter("google", answer).poll("i")
    assert (report.done, report.output) == (True, b"a video")
    assert str(seen[1].url) == FILE
    assert seen[1].headers["x-goog-api-key"] == "k-0123456789"


async def test_where_google_sends_us_the_key_does_not_go() -> None:
    moved = httpx.Response(302, headers={"Location": "https://storage.example/f-1?token=t"})
    report = await an_adapter("google", answering(completed(uri=FILE), moved)).poll("i")
    assert report.output_url == "https://storage.example/f-1?token=t"


async def test_an_address_elsewhere_is_left_to_the_download() -> None:
    google = an_adapter("google", answering(completed(uri="https://elsewhere.example/f-1")))
    assert (await google.poll("i")).output_url == "https://elsewhere.example/f-1"


async def test_a_video_that_comes_along_is_decoded() -> None:
    google = an_adapter("google", answering(completed(data=base64.b64encode(b"a video").decode())))
    assert (await google.poll("i")).output == b"a video"


async def test_a_file_that_cannot_be_fetched_now_is_asked_for_again() -> None:
    with pytest.raises(ProviderFailure) as failed:
        await an_adapter("google", answering(completed(uri=FILE), httpx.Response(503))).poll("i")
    assert failed.value.code is ErrorCode.PROVIDER_UNAVAILABLE


# -- progress ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("told", "share"), [(0.25, 0.25), (None, None), (7, None), ("half", None)])
async def test_runway_tells_how_far_a_task_is(told: Any, share: float | None) -> None:
    report = await an_adapter("runway", answering({"status": "RUNNING", "progress": told})).poll("t")
    assert (report.done, report.progress) == (False, share)
