import asyncio
import io
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest
import pytest_asyncio
from PIL import Image

from models.errors import AssetMissing, ErrorCode, ProviderFailure
from models.job import Job
from models.ports import TaskReport, VideoProvider
from models.shapes import AspectRatio, Size
from models.work import ClipRequest, Offer, SpeechRequest
from sceneloom.providers.motion import Motion, move
from tests.providers.processes_seen import our_children, until

SIZE = Size(270, 480)


def _picture(width: int = 400, height: int = 300) -> bytes:
    y, x = np.mgrid[0:height, 0:width]
    rows = np.stack([x % 256, y % 256, (x * y) % 256], -1).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(rows).save(file, "PNG")
    return file.getvalue()


def _frames(clip: bytes) -> list[Any]:
    with av.open(io.BytesIO(clip), mode="r") as container:
        (stream,) = container.streams.video
        assert stream.codec_context.name == "h264"
        assert stream.average_rate == Fraction(30)
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]


@pytest.mark.media
async def test_a_clip_has_its_size_length_and_movement() -> None:
    frames = _frames(await move(_picture(), SIZE, 1.5, seed=2))
    assert len(frames) == 45
    assert frames[0].shape == (480, 270, 3)
    assert np.abs(frames[0].astype(int) - frames[-1]).mean() > 5


@pytest.mark.media
async def test_the_same_picture_and_seed_make_the_same_clip() -> None:
    first = await move(_picture(), SIZE, 0.5, seed=2)
    assert await move(_picture(), SIZE, 0.5, seed=2) == first
    assert await move(_picture(), SIZE, 0.5, seed=1) != first


async def test_a_first_frame_that_is_no_picture_is_refused() -> None:
    with pytest.raises(ProviderFailure) as refused:
        await move(b"<html>not found</html>", SIZE, 1.0, seed=1)
    assert refused.value.code is ErrorCode.ASSET_FETCH_FAILED


@pytest.mark.media
async def test_cancelling_ends_ffmpeg() -> None:
    before = our_children()
    work = asyncio.create_task(move(_picture(), Size(1080, 1920), 60, seed=1))
    assert await until(lambda: our_children() - before)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert our_children() == before


class _Pictures:
    """Counts what it is asked for, and answers when it is let go."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Size, int]] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def generate(self, prompt: str, size: Size, *, seed: int = 0) -> bytes:
        self.asked.append((prompt, size, seed))
        await self.may_answer.wait()
        return _picture(32, 32)

    def cost_per_call(self) -> float:
        return 0.0


async def _fetch(url: str) -> bytes:
    """Know the one asset that tests ask for."""
    if url != "asset://frame":
        raise AssetMissing(url)
    return _picture(64, 64)


def _job(first_frame_url: str | None = None) -> Job:
    request = ClipRequest(
        prompt="the sea",
        aspect_ratio=AspectRatio.SQUARE,
        duration_seconds=0.1,
        seed=4,
        first_frame_url=first_frame_url,
    )
    return Job(
        project_id="p",
        scene_id="scene-001",
        user_id="u",
        offer=Offer(provider="motion", model="camera"),
        request=request,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


@pytest.fixture
def pictures() -> _Pictures:
    return _Pictures()


@pytest_asyncio.fixture
async def motion(pictures: _Pictures) -> AsyncIterator[Motion]:
    made = Motion(pictures=pictures, fetch=_fetch)
    yield made
    await made.aclose()


async def _finished(motion: Motion, task_id: str) -> TaskReport:
    while not (report := await motion.poll(task_id)).done:  # noqa: ASYNC110 -- polling is what is tested
        await asyncio.sleep(0.01)
    return report


def test_it_is_a_free_video_provider(motion: Motion) -> None:
    assert isinstance(motion, VideoProvider)
    assert motion.cost_per_call() == 0.0


@pytest.mark.media
async def test_a_submitted_clip_is_polled_until_it_is_done_and_may_be_polled_again(
    motion: Motion, pictures: _Pictures
) -> None:
    task_id = await motion.submit(_job())
    report = await _finished(motion, task_id)
    assert report.output is not None
    assert _frames(report.output)[0].shape == (1080, 1080, 3)
    assert await motion.poll(task_id) == report
    assert pictures.asked == [("the sea", AspectRatio.SQUARE.size, 4)]


async def test_a_clip_in_the_making_is_reported_as_such(motion: Motion, pictures: _Pictures) -> None:
    pictures.may_answer.clear()
    report = await motion.poll(await motion.submit(_job()))
    assert (report.done, report.progress, report.error_code) == (False, 0.0, None)


@pytest.mark.media
async def test_a_given_first_frame_is_moved_instead_of_a_drawn_picture(
    motion: Motion, pictures: _Pictures
) -> None:
    report = await _finished(motion, await motion.submit(_job("asset://frame")))
    assert report.output
    assert pictures.asked == []


async def test_a_first_frame_that_is_not_stored_fails_the_clip(motion: Motion) -> None:
    report = await _finished(motion, await motion.submit(_job("asset://gone")))
    assert (report.output, report.error_code) == (None, ErrorCode.ASSET_FETCH_FAILED)


async def test_a_task_of_another_process_is_unavailable(motion: Motion) -> None:
    report = await motion.poll("clip-of-yesterday")
    assert (report.done, report.error_code) == (True, ErrorCode.PROVIDER_UNAVAILABLE)


async def test_a_cancelled_clip_is_reported_as_cancelled(motion: Motion, pictures: _Pictures) -> None:
    pictures.may_answer.clear()
    task_id = await motion.submit(_job())
    await motion.cancel(task_id)
    assert (await _finished(motion, task_id)).error_code is ErrorCode.PROVIDER_CANCELLED


async def test_only_clips_can_be_submitted(motion: Motion) -> None:
    speech = _job().model_copy(update={"request": SpeechRequest(text="hi", language="en")})
    with pytest.raises(ProviderFailure) as refused:
        await motion.submit(speech)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ProviderFailure(ErrorCode.PROVIDER_TIMEOUT), ErrorCode.PROVIDER_TIMEOUT),
        (OSError("disk full"), ErrorCode.PROVIDER_UNAVAILABLE),
    ],
)
def test_errors_are_named_in_our_words(motion: Motion, error: Exception, code: ErrorCode) -> None:
    assert motion.normalize_error(error) is code
