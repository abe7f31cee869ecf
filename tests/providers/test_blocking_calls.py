"""What is particular to ElevenLabs, Azure and Stability, beyond the contract."""

import xml.etree.ElementTree as ET
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from models.errors import ProviderFailure
from models.ports import Word
from models.shapes import Size
from models.work import JobKind
from sceneloom.providers.connection import Connection
from sceneloom.providers.elevenlabs import words_in
from sceneloom.providers.services import services
from sceneloom.providers.stability import nearest_ratio
from tests.fakes import MovedClock
from tests.providers.paid import Shelf, mocked


async def request_of(name: str, kind: JobKind, model: str, call: Any, **changes: Any) -> httpx.Request:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(400, json={})

    service = services()[name]
    facts = {
        "client": mocked(answer),
        "key": SecretStr("k-0123456789"),
        "clock": MovedClock(),
        "assets": Shelf(),
    }
    adapter = service.adapters[kind](
        Connection(entry=service.entry, url=service.entry.url, model=model, **{**facts, **changes})
    )
    with pytest.raises(ProviderFailure):
        await call(adapter)
    (request,) = seen
    return request


def aligned(text: str, *, step: float = 0.5) -> dict[str, Any]:
    return {
        "characters": list(text),
        "character_start_times_seconds": [step * at for at in range(len(text))],
        "character_end_times_seconds": [step * (at + 1) for at in range(len(text))],
    }


def test_characters_are_folded_to_words() -> None:
    assert words_in(aligned(" Hi, you ")) == (
        Word(text="Hi,", start=0.5, end=2.0),
        Word(text="you", start=2.5, end=4.0),
    )
    assert [word.text for word in words_in(aligned("one\n\ttwo"))] == ["one", "two"]
    assert [word.text for word in words_in(aligned("دریا آرام"))] == ["دریا", "آرام"]


@pytest.mark.parametrize(
    "broken",
    [None, {}, [], {"characters": ["a"]}, aligned("ab") | {"characters": ["a"]}, aligned("  "), aligned("")],
)
def test_times_that_do_not_fit_are_no_words(broken: object) -> None:
    assert words_in(broken) == ()


async def test_elevenlabs_is_told_voice_model_and_language() -> None:
    async def speak(adapter: Any) -> None:
        await adapter.speak("Hi", language="pt-BR", voice="v/1")

    request = await request_of("elevenlabs", JobKind.SPEECH, "eleven_flash_v2_5", speak)
    assert request.url.raw_path == b"/v1/text-to-speech/v%2F1/with-timestamps?output_format=pcm_24000"
    assert request.headers["xi-api-key"] == "k-0123456789"
    assert request.content == b'{"text":"Hi","model_id":"eleven_flash_v2_5","language_code":"pt"}'


async def test_the_voice_of_the_account_speaks_where_none_is_wished() -> None:
    async def speak(adapter: Any) -> None:
        await adapter.speak("Hi", language="en")

    request = await request_of("elevenlabs", JobKind.SPEECH, "eleven_multilingual_v2", speak, voice="usual")
    assert request.url.path == "/v1/text-to-speech/usual/with-timestamps"
    assert b"language_code" not in request.content


async def test_what_is_said_cannot_become_markup_at_azure() -> None:
    said = '</voice><voice name="other">&'

    async def speak(adapter: Any) -> None:
        await adapter.speak(said, language='en"', voice="A'\"<")

    request = await request_of("azure", JobKind.SPEECH, "neural", speak)
    root = ET.fromstring(request.content)  # noqa: S314 -- it is our own
    (voice,) = root
    assert (voice.text, voice.get("name")) == (said, "A'\"<")
    assert request.headers["Content-Type"] == "application/ssml+xml"
    assert request.headers["X-Microsoft-OutputFormat"] == "riff-24khz-16bit-mono-pcm"


@pytest.mark.parametrize(
    ("model", "path", "named"),
    [("core", "core", False), ("ultra", "ultra", False), ("sd3.5-large", "sd3", True)],
)
async def test_stability_has_a_route_for_each_family(model: str, path: str, *, named: bool) -> None:
    async def draw(adapter: Any) -> None:
        await adapter.generate("a fox", Size(1920, 1080), seed=4_294_967_295)

    request = await request_of("stability", JobKind.IMAGE, model, draw)
    assert request.url.path == f"/v2beta/stable-image/generate/{path}"
    assert request.headers["Content-Type"].startswith("multipart/form-data")
    body = request.content.decode()
    assert 'name="prompt"\r\n\r\na fox\r\n' in body
    assert 'name="aspect_ratio"\r\n\r\n16:9\r\n' in body
    assert 'name="seed"\r\n\r\n0\r\n' in body
    assert (f'name="model"\r\n\r\n{model}' in body) is named


@pytest.mark.parametrize(
    ("size", "ratio"),
    [
        (Size(1080, 1920), "9:16"),
        (Size(1080, 1080), "1:1"),
        (Size(1920, 1080), "16:9"),
        (Size(640, 1600), "9:21"),
    ],
)
def test_the_nearest_ratio_is_ordered(size: Size, ratio: str) -> None:
    assert nearest_ratio(size) == ratio
