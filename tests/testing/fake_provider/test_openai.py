import base64
import io
import wave
from typing import Any

import av
import pytest
from PIL import Image

from tests.testing.fake_provider.stage import always, playing


def picture_in(answer: Any, number: int = 0) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(answer.json()["data"][number]["b64_json"])))


@pytest.mark.parametrize(
    ("size", "pixels"), [("64x96", (64, 96)), ("1536x1024", (1536, 1024)), ("auto", (1024, 1024))]
)
async def test_a_picture_has_the_size_that_was_asked_for(size: str, pixels: tuple[int, int]) -> None:
    async with playing() as openai:
        picture = picture_in(await openai.image(size=size))
        picture.load()
        assert (picture.size, picture.format) == (pixels, "PNG")


async def test_pictures_come_in_the_format_and_number_that_were_asked_for() -> None:
    async with playing() as openai:
        answer = await openai.image(output_format="jpeg", n=2)
        assert [picture_in(answer, number).format for number in range(2)] == ["JPEG", "JPEG"]
        assert answer.json()["usage"]["total_tokens"] > 0
        assert answer.headers["x-request-id"]


async def test_no_two_calls_give_the_same_bytes() -> None:
    async with playing() as openai:
        pictures = [(await openai.image()).json()["data"][0]["b64_json"] for _ in range(2)]
        assert pictures[0] != pictures[1]


async def test_speech_is_a_real_wav_as_long_as_its_words() -> None:
    async with playing() as openai:
        answer = await openai.speech("one two three four five", response_format="wav")
        assert answer.headers["content-type"] == "audio/wav"
        with wave.open(io.BytesIO(answer.content)) as sound:
            assert sound.getnframes() / sound.getframerate() == pytest.approx(2.0)


@pytest.mark.media
@pytest.mark.parametrize(
    ("name", "codec"),
    [("mp3", "mp3"), ("opus", "opus"), ("aac", "aac"), ("flac", "flac"), ("wav", "pcm_s16le")],
)
async def test_speech_comes_in_every_format(name: str, codec: str) -> None:
    async with playing(patience=60) as openai:
        answer = await openai.speech(response_format=name)
        with av.open(io.BytesIO(answer.content), mode="r") as sound:
            stream = sound.streams.audio[0]
            assert stream.codec_context.name.startswith(codec)
            seconds = sum((frame.samples / frame.sample_rate for frame in sound.decode(stream)), 0.0)
        assert seconds == pytest.approx(1.6, abs=0.2)


async def test_raw_samples_are_raw() -> None:
    async with playing() as openai:
        answer = await openai.speech("a b c d e", response_format="pcm")
        assert len(answer.content) == 2 * 24_000 * 2


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        ("moderation", 400, "moderation_blocked"),
        ("quota_exhausted", 429, "insufficient_quota"),
        ("overloaded", 503, "overloaded"),
        ({"code": "odd", "message": "Strange."}, 500, "odd"),
    ],
)
async def test_work_can_fail_while_the_client_waits(failure: Any, status: int, code: str) -> None:
    async with playing(always(outcome="failed", failure=failure)) as openai:
        answer = await openai.image()
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        await openai.provider.advance(0)
        assert (len(openai.provider.ledger.accepted()), openai.provider.ledger.billed_usd()) == (1, 0)


async def test_success_can_come_without_a_picture() -> None:
    async with playing(always(without_url=True)) as openai:
        assert (await openai.image()).json()["data"] == [{}]


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": ""},
        {"model": ""},
        {"size": "63x64"},
        {"size": "64x640"},
        {"size": "big"},
        {"n": 0},
        {"n": 11},
        {"output_format": "gif"},
        {"prompt": "x" * 32_001},
    ],
)
async def test_a_picture_against_the_rules_is_refused(body: dict[str, Any]) -> None:
    async with playing() as openai:
        asked: dict[str, Any] = {"prompt": "a fox"} | body
        answer = await openai.image(**asked)
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")
        assert openai.provider.ledger.accepted() == []


@pytest.mark.parametrize(
    "body", [{"text": ""}, {"text": "x" * 4097}, {"voice": ""}, {"response_format": "ogg"}, {"speed": 9}]
)
async def test_speech_against_the_rules_is_refused(body: dict[str, Any]) -> None:
    async with playing() as openai:
        asked: dict[str, Any] = {"text": "hello"} | body
        assert (await openai.speech(**asked)).status_code == 400
        assert openai.provider.ledger.accepted() == []
