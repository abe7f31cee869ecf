"""Turns the scenes of a film into one finished MP4."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from sceneloom.rendering.cache import SegmentCache
from sceneloom.rendering.film import Film
from sceneloom.rendering.report import DeliveryReport

Progress = Callable[[float], None]


class Renderer:
    """Renders films with ffmpeg, at most *parallel* encoders at once, keeping segments in *cache*."""

    def __init__(self, *, cache: SegmentCache, parallel: int = 2) -> None:
        self._cache = cache
        self._parallel = parallel

    async def render(
        self, film: Film, output: Path, *, workspace: Path, progress: Progress = lambda _: None
    ) -> DeliveryReport:
        """Render *film* to *output*, which appears only when it is complete, and report what is in it.

        *workspace* is a folder for this render alone. *progress* hears shares from 0 to 1 that never fall.
        Cancelling leaves no ffmpeg running. Raises `BadMedia` for a picture, clip or narration that cannot
        be read, `RenderFailed` where ffmpeg fails.
        """
        produce = await asyncio.to_thread(_loaded)
        return await produce(
            film,
            output,
            workspace=workspace,
            cache=self._cache,
            parallel=self._parallel,
            progress=progress,
        )


def _loaded() -> Callable[..., Awaitable[DeliveryReport]]:
    from sceneloom.rendering.production import produce

    return produce
