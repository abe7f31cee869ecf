import asyncio
import io
from pathlib import Path
from typing import Any

import av
import httpx
import pytest
from av.error import FFmpegError
from PIL import Image

from sceneloom.testing.fake_provider.outputs import frame_of
from tests.testing.fake_provider.stage import Clients, always, playing, rules

SMALL = {"size": "64x36", "seconds": 0.5}


async def link_of(ark: Clients, task_id: str) -> str:
    return str((await ark.get(task_id)).json()["content"]["video_url"])


async def fetched(ark: Clients, **asked: Any) -> httpx.Response:
    return await ark.http.get(await link_of(ark, await ark.created(**asked)))


def measure(content: bytes) -> tuple[int, int, float, int]:
    with av.open(io.BytesIO(content), mode="r") as film:
        stream = film.streams.video[0]
        frames = len(list(film.decode(stream)))
        return stream.width, stream.height, frames / 24, len(film.streams.audio)


@pytest.mark.parametrize(
    ("resolution", "ratio", "pixels"),
    [
        ("720p", "16:9", (1280, 720)),
        ("720p", "9:16", (720, 1280)),
        ("720p", "1:1", (960, 960)),
        ("1080p", "16:9", (1920, 1080)),
        ("480p", "9:16", (480, 854)),
        ("4k", "16:9", (3840, 2160)),
    ],
)
def test_a_resolution_is_an_area_and_a_ratio_shapes_it(
    resolution: str, ratio: str, pixels: tuple[int, int]
) -> None:
    assert frame_of(resolution, ratio) == pixels


@pytest.mark.media
async def test_a_clip_is_real_and_as_ordered() -> None:
    async with playing(patience=60) as ark:
        answer = await fetched(ark, resolution="480p", ratio="9:16", duration=3, generate_audio=True)
        assert answer.headers["content-type"] == "video/mp4"
        assert measure(answer.content) == (480, 854, 3.0, 1)


@pytest.mark.media
async def test_a_clip_can_be_smaller_than_ordered() -> None:
    async with playing(always(output={"resolution": "480p"}), patience=60) as ark:
        answer = await fetched(ark, resolution="1080p", ratio="16:9", duration=2)
        assert measure(answer.content)[:2] == (854, 480)


@pytest.mark.media
async def test_a_clip_can_be_shorter_than_ordered_and_no_two_are_the_same() -> None:
    async with playing(always(output=SMALL), patience=60) as ark:
        first, second = await fetched(ark), await fetched(ark)
        assert measure(first.content) == measure(second.content) == (64, 36, 0.5, 0)
        assert first.content != second.content


@pytest.mark.media
async def test_many_who_ask_at_once_get_the_same_file() -> None:
    async with playing(always(output=SMALL), patience=60) as ark:
        link = await link_of(ark, await ark.created())
        contents = await asyncio.gather(*(ark.http.get(link) for _ in range(5)))
        assert len({answer.content for answer in contents}) == 1


@pytest.mark.media
async def test_a_file_can_be_cut_off() -> None:
    async with playing(always(output={**SMALL, "content": "truncated"}), patience=60) as ark:
        answer = await fetched(ark)
        assert answer.status_code == 200
        with pytest.raises(FFmpegError):
            measure(answer.content[: len(answer.content) // 2])


async def test_a_page_can_come_instead_of_a_file() -> None:
    async with playing(always(output={"content": "html"})) as ark:
        answer = await fetched(ark)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html")
        assert answer.content.startswith(b"<!doctype html>")


async def test_nothing_can_come_instead_of_a_file() -> None:
    async with playing(always(output={"content": "empty"})) as ark:
        answer = await fetched(ark)
        assert (answer.status_code, answer.content) == (200, b"")


async def test_a_file_of_one_s_own_is_served_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "own.mp4"
    file.write_bytes(b"my own clip")
    async with playing(always(output={"file": str(file)})) as ark:
        assert (await fetched(ark)).content == b"my own clip"


async def test_a_picture_of_the_queue_is_real() -> None:
    async with playing() as fal:
        made = (await fal.submit(model="fal-ai/flux", image_size={"width": 64, "height": 48})).json()
        result = (await fal.key("GET", made["response_url"])).json()["images"][0]
        picture = Image.open(io.BytesIO((await fal.http.get(result["url"])).content))
        assert picture.size == (result["width"], result["height"]) == (64, 48)


@pytest.mark.parametrize("status", [403, 404, 410])
async def test_a_link_dies_after_its_time(status: int) -> None:
    link = {"expires_after": 30, "status": status}
    async with playing(always(running=10, output={"content": "html"}, link=link)) as ark:
        task_id = await ark.created()
        await ark.provider.advance(10)
        url = await link_of(ark, task_id)
        await ark.provider.advance(29)
        assert (await ark.http.get(url)).status_code == 200
        await ark.provider.advance(1)
        assert (await ark.http.get(url)).status_code == status
        assert await link_of(ark, task_id) == url


async def test_a_link_of_a_task_lives_a_day() -> None:
    async with playing(always(output={"content": "html"})) as ark:
        url = await link_of(ark, await ark.created())
        await ark.provider.advance(86_399)
        assert (await ark.http.get(url)).status_code == 200
        await ark.provider.advance(1)
        assert (await ark.http.get(url)).status_code == 403


async def test_a_link_dies_after_some_downloads() -> None:
    async with playing(always(output={"content": "html"}, link={"max_downloads": 2, "status": 410})) as ark:
        url = await link_of(ark, await ark.created())
        assert [(await ark.http.get(url)).status_code for _ in range(3)] == [200, 200, 410]


async def test_a_fresh_status_call_can_give_a_fresh_link() -> None:
    link = {"expires_after": 30, "renewed": True}
    async with playing(always(output={"content": "html"}, link=link)) as ark:
        task_id = await ark.created()
        old = await link_of(ark, task_id)
        await ark.provider.advance(30)
        new = await link_of(ark, task_id)
        assert [(await ark.http.get(url)).status_code for url in (old, new)] == [403, 200]


async def test_a_download_can_fail_for_a_while_or_break_off() -> None:
    once = ({"operation": "download", "to_call": 1}, {"status": 503})
    half = ({"operation": "download", "from_call": 2, "to_call": 2}, {"fault": "half_body"})
    async with playing(rules(once, half, defaults={"output": {"content": "html"}})) as ark:
        url = await link_of(ark, await ark.created())
        assert (await ark.http.get(url)).status_code == 503
        with pytest.raises(httpx.RemoteProtocolError):
            await ark.http.get(url)
        assert (await ark.http.get(url)).status_code == 200


async def test_a_link_that_nobody_gave_leads_nowhere() -> None:
    async with playing(always(output={"content": "html"})) as ark:
        task_id = await ark.created()
        assert (await ark.http.get(f"/_files/{task_id}/0/output.mp4")).status_code == 404
        assert (await ark.http.get("/_files/unknown/0/output.mp4")).status_code == 404
