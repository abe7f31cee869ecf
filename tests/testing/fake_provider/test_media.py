import asyncio
import io

import pytest
from PIL import Image

from sceneloom.testing.fake_provider.media import Shape, Workshop, hue_of


def picture(width: int, height: int = 16) -> Shape:
    return Shape("image", "png", width, height)


async def test_a_mark_changes_the_bytes_and_not_the_picture() -> None:
    workshop = Workshop()
    files = [await workshop.make(picture(16), mark) for mark in ("one", "two")]
    assert files[0] != files[1]
    pixels = [Image.open(io.BytesIO(file)).convert("RGB").tobytes() for file in files]
    assert pixels[0] == pixels[1]
    await workshop.close()


async def test_old_shapes_make_room_for_new_ones_and_can_be_made_again() -> None:
    workshop = Workshop()
    for width in [*range(16, 60), 16]:
        assert Image.open(io.BytesIO(await workshop.make(picture(width), "x"))).width == width
    await workshop.close()


async def test_many_shapes_at_once_are_all_made() -> None:
    workshop = Workshop()
    files = await asyncio.gather(*(workshop.make(picture(width), "x") for width in range(16, 80)))
    assert [Image.open(io.BytesIO(file)).width for file in files] == list(range(16, 80))
    await workshop.close()


async def test_what_ffmpeg_cannot_make_is_an_error_each_time() -> None:
    workshop = Workshop()
    impossible = Shape("video", "mp4", 0, 0, 1.0)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="ffmpeg failed"):
            await workshop.make(impossible, "x")
    await workshop.close()


async def test_a_client_that_leaves_does_not_spoil_the_file_for_others() -> None:
    workshop = Workshop()
    first, second = (asyncio.create_task(workshop.make(picture(640, 640), "x")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert Image.open(io.BytesIO(await second)).width == 640
    await workshop.close()


def test_scenes_can_be_told_apart_by_colour() -> None:
    assert len({hue_of(f"scene {number}") for number in range(12)}) > 3
