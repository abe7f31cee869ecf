"""Clips are compared with what was ordered."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from models.ports import TaskReport
from sceneloom.assets.store import open_assets
from sceneloom.testing.fake_provider.media import Shape, Workshop
from sceneloom.workshop.makers import ClipMaker
from tests.providers.paid import a_clip_job

pytestmark = pytest.mark.media


async def collected(width: int, height: int, *, seconds: float = 1.0, **ordered: Any) -> list[str]:
    """Collect a clip of this size for an order of 9:16; return what the operator is told."""
    shape = Shape(kind="video", media_format="mp4", width=width, height=height, seconds=1.0)
    media = Workshop()
    try:
        clip = await media.make(shape, "one")
    finally:
        await media.close()
    maker = ClipMaker(provider=None, assets=open_assets("memory://"), **ordered)  # type: ignore[arg-type]
    with capture_logs() as logs:
        output = await maker.collect(
            a_clip_job("m", duration_seconds=seconds), TaskReport(done=True, output=clip)
        )
    assert output.media_type == "video/mp4"
    return [f"{log['asked']} got {log['got']}" for log in logs if log["event"] == "makers.not_as_ordered"]


@pytest.mark.parametrize(
    ("width", "height", "short_side", "told"),
    [
        (720, 1280, 720, []),
        (720, 1280, None, []),
        (720, 1280, 1080, ["9:16 1080 got 720x1280"]),
        (736, 1280, 720, []),
        (1280, 720, 720, ["9:16 720 got 1280x720"]),
    ],
)
async def test_a_clip_that_is_not_as_ordered_is_kept_and_told(
    width: int, height: int, short_side: int | None, told: list[str]
) -> None:
    assert await collected(width, height, short_side=short_side) == told


@pytest.mark.parametrize(("seconds", "told"), [(1.0, []), (1.2, []), (1.6, ["1.6 s got 1.00 s"])])
async def test_a_clip_that_is_shorter_than_ordered_is_kept_and_told(seconds: float, told: list[str]) -> None:
    assert await collected(720, 1280, seconds=seconds) == told
