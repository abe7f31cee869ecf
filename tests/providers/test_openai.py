"""The OpenAI adapters, against the fake provider's real HTTP and its ledger."""

import base64
import io
import struct
import wave
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from PIL import Image
from pydantic import SecretStr

from models.errors import ErrorCode, OutcomeUnknown, ProviderFailure
from models.ports import TextToImageProvider, TextToSpeechProvider
from models.shapes import AspectRatio, Size
from sceneloom.providers.openai import OpenAIImages, OpenAISpeech, orderable
from sceneloom.testing.fake_provider import FakeProvider
from tests.fakes import MovedClock
from tests.providers.paid import FAKE_KEY, everything_shown, faking, mocked, patience_for

SMALL = Size(90, 160)
KEY = "sk-proj-0123456789abcdef"
Call = Callable[..., Awaitable[Any]]


def an_adapter(
    kind: type[Any], client: httpx.AsyncClient, url: str = "https://openai.example", **changes: Any
) -> Any:
    options = {"key": FAKE_KEY, "clock": MovedClock(), "cost_usd": 0.05}
    return kind(client=client, base_url=f"{url}/v1", **{**options, **changes})


async def draw(client: httpx.AsyncClient, url: str = "https://openai.example", **changes: Any) -> bytes:
    picture: bytes = await an_adapter(OpenAIImages, client, url, **changes).generate("a fox", SMALL, seed=3)
    return picture


async def speak(client: httpx.AsyncClient, url: str = "https://openai.example", **changes: Any) -> Any:
    return await an_adapter(OpenAISpeech, client, url, **changes).speak("once upon a time", language="en")


BOTH = pytest.mark.parametrize("call", [draw, speak])


@asynccontextmanager
async def playing(scenario: Any = None) -> AsyncIterator[tuple[httpx.AsyncClient, FakeProvider]]:
    async with faking(scenario) as (provider, client):
        yield client, provider


def a_picture(size: Size, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, "orange").save(file, kind)
    return file.getvalue()


def with_picture(content: bytes) -> httpx.AsyncClient:
    body = {"data": [{"b64_json": base64.b64encode(content).decode()}]}
    return mocked(lambda _: httpx.Response(200, json=body))


def a_recording(seconds: float, *, claimed: int | None = None) -> bytes:
    """Return a WAV file, whose header claims so many bytes of samples."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(24_000)
        writer.writeframes(bytes(int(seconds * 24_000) * 2))
    content = bytearray(file.getvalue())
    if claimed is not None:
        content[4:8], content[40:44] = struct.pack("<I", claimed), struct.pack("<I", claimed)
    return bytes(content)


def recording(seen: list[httpx.Request], answer: httpx.Response) -> httpx.AsyncClient:
    def note(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return answer

    return mocked(note)


def test_they_are_providers_with_a_price() -> None:
    client = mocked(lambda _: httpx.Response(200))
    images, speech = an_adapter(OpenAIImages, client), an_adapter(OpenAISpeech, client)
    assert isinstance(images, TextToImageProvider)
    assert isinstance(speech, TextToSpeechProvider)
    assert images.cost_per_call() == speech.cost_per_call() == 0.05


# -- pictures ------------------------------------------------------------------------------------------------


async def test_a_picture_is_ordered_with_exactly_these_words() -> None:
    seen: list[httpx.Request] = []
    body = {"data": [{"b64_json": base64.b64encode(a_picture(Size(96, 160))).decode()}]}
    await draw(recording(seen, httpx.Response(200, json=body)))
    (request,) = seen
    assert request.url.path == "/v1/images/generations"
    assert httpx.Response(200, content=request.content).json() == {
        "model": "gpt-image-2",
        "prompt": "a fox",
        "n": 1,
        "size": "96x160",
        "quality": "medium",
        "output_format": "png",
    }


async def test_the_picture_has_exactly_the_size_asked_for() -> None:
    async with playing() as (client, provider):
        with Image.open(io.BytesIO(await draw(client, provider.url))) as picture:
            assert picture.format == "PNG"
            assert picture.size == SMALL
        assert len(provider.ledger.billed()) == 1


@pytest.mark.parametrize("made", [Size(96, 160), Size(160, 160), Size(32, 64), SMALL])
async def test_whatever_size_was_made_the_picture_fits(made: Size) -> None:
    with Image.open(io.BytesIO(await draw(with_picture(a_picture(made, "JPEG"))))) as picture:
        assert picture.size == SMALL


@pytest.mark.parametrize(
    ("wanted", "ordered"),
    [
        (AspectRatio.PORTRAIT.size, Size(1088, 1920)),
        (AspectRatio.LANDSCAPE.size, Size(1920, 1088)),
        (AspectRatio.SQUARE.size, Size(1088, 1088)),
        (Size(1024, 1536), Size(1024, 1536)),
        (Size(7680, 4320), Size(3840, 2160)),
        (Size(1600, 100), Size(1600, 544)),
        (Size(3841, 3841), Size(3840, 3840)),
        (Size(1, 1), Size(16, 16)),
    ],
)
def test_the_ordered_size_is_one_that_openai_makes(wanted: Size, ordered: Size) -> None:
    assert orderable(wanted) == ordered
    assert all(side % 16 == 0 and side <= 3840 for side in ordered)
    assert max(ordered) <= 3 * min(ordered)


@pytest.mark.parametrize("prompt", ["", "x" * 32_001])
async def test_a_prompt_that_openai_would_refuse_is_not_sent(prompt: str) -> None:
    seen: list[httpx.Request] = []
    images = an_adapter(OpenAIImages, recording(seen, httpx.Response(200)))
    with pytest.raises(ProviderFailure) as raised:
        await images.generate(prompt, SMALL)
    assert raised.value.code is ErrorCode.INVALID_REQUEST
    assert seen == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": []},
        {"data": [{}]},
        {"data": [{"b64_json": "!"}]},
        {"data": [{"b64_json": base64.b64encode(b"GIF89a, or so").decode()}]},
        {"data": [{"b64_json": base64.b64encode(a_picture(SMALL)[:60]).decode()}]},
    ],
)
async def test_an_answer_without_a_picture_is_a_missing_output(body: dict[str, Any]) -> None:
    with pytest.raises(ProviderFailure) as raised:
        await draw(mocked(lambda _: httpx.Response(200, json=body)))
    assert raised.value.code is ErrorCode.OUTPUT_MISSING


async def test_an_answer_that_is_no_json_leaves_the_outcome_unknown() -> None:
    with pytest.raises(OutcomeUnknown):
        await draw(mocked(lambda _: httpx.Response(200, text="<html>")))


# -- speech --------------------------------------------------------------------------------------------------


async def test_speech_is_ordered_with_exactly_these_words() -> None:
    seen: list[httpx.Request] = []
    client = recording(seen, httpx.Response(200, content=a_recording(0.5)))
    speech = an_adapter(OpenAISpeech, client, voice="coral")
    await speech.speak("hello", language="fa")
    await speech.speak("hello", language="fa", voice="nova")
    first, second = (httpx.Response(200, content=request.content).json() for request in seen)
    assert seen[0].url.path == "/v1/audio/speech"
    assert first == {
        "model": "gpt-4o-mini-tts",
        "input": "hello",
        "voice": "coral",
        "response_format": "wav",
    }
    assert second["voice"] == "nova"


async def test_speech_is_a_whole_wav_file_without_words() -> None:
    async with playing() as (client, provider):
        speech = await speak(client, provider.url)
        with wave.open(io.BytesIO(speech.audio)) as reader:
            assert reader.getnframes() / reader.getframerate() == pytest.approx(speech.seconds)
        assert speech.seconds > 1
        assert speech.words == ()


@pytest.mark.parametrize("claimed", [0xFFFFFFFF, 0x7FFFFFFF])
async def test_a_streamed_header_that_claims_too_much_is_put_right(claimed: int) -> None:
    content = a_recording(1.25, claimed=claimed)
    speech = await speak(mocked(lambda _: httpx.Response(200, content=content)))
    assert speech.seconds == 1.25
    assert speech.audio == a_recording(1.25)


@pytest.mark.parametrize("content", [b"", b"ID3-this-is-mp3", a_recording(0.5)[:20], a_recording(0.0)])
async def test_bytes_that_are_no_sound_are_a_missing_output(content: bytes) -> None:
    with pytest.raises(ProviderFailure) as raised:
        await speak(mocked(lambda _: httpx.Response(200, content=content)))
    assert raised.value.code is ErrorCode.OUTPUT_MISSING


async def test_narration_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(ProviderFailure) as raised:
        await an_adapter(OpenAISpeech, mocked(lambda _: httpx.Response(200))).speak("x" * 4097, language="en")
    assert raised.value.code is ErrorCode.INVALID_REQUEST


# -- errors of both ------------------------------------------------------------------------------------------


@BOTH
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
        ("overloaded", ErrorCode.PROVIDER_UNAVAILABLE),
    ],
)
async def test_a_refusal_is_named_in_our_words(call: Call, problem: str, code: ErrorCode) -> None:
    async with playing({"defaults": {"error": problem, "retry_after": 12}}) as (client, provider):
        with pytest.raises(ProviderFailure) as raised:
            await call(client, provider.url)
        assert (raised.value.code, raised.value.retry_after) == (code, 12.0)
        assert provider.ledger.accepted() == []


@pytest.mark.parametrize(
    ("status", "kind", "name", "code"),
    [
        (429, "insufficient_quota", None, ErrorCode.PROVIDER_QUOTA_EXHAUSTED),
        (429, "x", "credit_balance_exhausted", ErrorCode.PROVIDER_QUOTA_EXHAUSTED),
        (429, "x", "organization_spend_limit_exceeded", ErrorCode.PROVIDER_QUOTA_EXHAUSTED),
        (429, "x", "organization_usage_limit_exceeded", ErrorCode.PROVIDER_QUOTA_EXHAUSTED),
        (400, "x", "billing_hard_limit_reached", ErrorCode.PROVIDER_QUOTA_EXHAUSTED),
        (429, "tokens", "rate_limit_exceeded", ErrorCode.PROVIDER_RATE_LIMITED),
        (400, "x", "content_policy_violation", ErrorCode.MODERATION_REJECTED),
        (400, "x", "image_content_policy_violation", ErrorCode.MODERATION_REJECTED),
        (400, "x", "invalid_image_format", ErrorCode.PROVIDER_BAD_REQUEST),
    ],
)
async def test_every_documented_code_has_a_meaning(
    status: int, kind: str, name: str | None, code: ErrorCode
) -> None:
    body = {"error": {"type": kind, "code": name, "message": "no", "param": None}}
    with pytest.raises(ProviderFailure) as raised:
        await draw(mocked(lambda _: httpx.Response(status, json=body)))
    assert raised.value.code is code


async def test_milliseconds_to_wait_are_understood() -> None:
    headers = {"retry-after-ms": "250", "retry-after": "1"}
    with pytest.raises(ProviderFailure) as raised:
        await draw(mocked(lambda _: httpx.Response(429, headers=headers)))
    assert raised.value.retry_after == 0.25


@BOTH
@pytest.mark.parametrize(
    "then",
    [
        {"fault": "hang", "accepted": True},
        {"fault": "disconnect", "accepted": True},
        {"fault": "half_body"},
        {"error": "unavailable", "accepted": True},
        {"error": "timeout", "accepted": True},
        {"status": 503, "body": "upstream reset", "accepted": True},
        {"outcome": "never"},
    ],
)
async def test_what_may_have_been_bought_is_unknown_and_not_sent_again(
    call: Call, then: dict[str, Any]
) -> None:
    async with playing({"defaults": then}) as (client, provider):
        with pytest.raises(OutcomeUnknown):
            await call(client, provider.url, patience=patience_for(then))
        assert len(provider.ledger.entries()) == len(provider.ledger.accepted()) == 1


@BOTH
@pytest.mark.parametrize("status", [400, 401, 500])
async def test_the_key_is_never_shown(call: Any, status: int) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        said = (
            f"Incorrect API key provided: {request.headers['Authorization'].split()[1][:11]}***cdef, {KEY}."
        )
        return httpx.Response(status, json={"error": {"message": said, "type": "x", "code": "y"}})

    with pytest.raises((ProviderFailure, OutcomeUnknown)) as raised:
        await call(mocked(answer), key=SecretStr(KEY))
    shown = everything_shown(raised.value)
    assert KEY not in shown
    assert KEY[:11] not in str(raised.value)
