"""Turns the scenes of a film into one finished MP4."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from sceneloom.rendering.cache import SegmentCache, publish
from sceneloom.rendering.ffmpeg import run_ffmpeg
from sceneloom.rendering.film import FPS, Film
from sceneloom.rendering.inspection import inspect
from sceneloom.rendering.planning import Plan, plan
from sceneloom.rendering.report import DeliveryReport
from sceneloom.rendering.segments import Made, Segment, SegmentMaker
from sceneloom.rendering.soundtrack import make_soundtrack

Progress = Callable[[float], None]

_SEGMENTS_DONE = 0.9
_JOINED = 0.94


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
        await asyncio.to_thread(workspace.mkdir, parents=True, exist_ok=True)
        planned = await asyncio.to_thread(plan, film, workspace)
        sound, made = await self._make(planned, workspace, progress)
        await _join(film.title, made, sound, workspace)
        progress(_JOINED)
        joined = workspace / "film.mp4"
        report = await asyncio.to_thread(inspect, joined, film, planned.timeline, planned.shown)
        await asyncio.to_thread(publish, joined, output)
        progress(1.0)
        reused = sum(segment.reused for segment in made)
        return report.model_copy(update={"segments_encoded": len(made) - reused, "segments_reused": reused})

    async def _make(self, planned: Plan, workspace: Path, progress: Progress) -> tuple[Path, list[Made]]:
        slots = asyncio.Semaphore(self._parallel)
        maker = SegmentMaker(cache=self._cache, slots=slots)
        frames = sum(segment.frames for segment in planned.segments)
        done = 0

        async def make(number: int, segment: Segment) -> Made:
            nonlocal done
            made = await maker.make(segment, workspace / "segments" / f"{number:04d}")
            done += segment.frames
            progress(_SEGMENTS_DONE * done / frames)
            return made

        async def mix() -> Path:
            async with slots:
                return await make_soundtrack(planned.timeline, planned.narrations, workspace)

        try:
            async with asyncio.TaskGroup() as group:
                sound = group.create_task(mix())
                tasks = [group.create_task(make(*numbered)) for numbered in enumerate(planned.segments)]
        except ExceptionGroup as failures:
            # One failure ends the others: the first says why.
            raise failures.exceptions[0] from failures
        return sound.result(), [task.result() for task in tasks]


async def _join(title: str, made: Sequence[Made], sound: Path, workspace: Path) -> None:
    """Join the segments and the sound without encoding them again."""
    # Without its duration a segment ends with its last time stamp, a fraction of a millisecond early.
    listed = "".join(
        f"file 'segments/{number:04d}/{segment.path.name}'\nduration {segment.frames / FPS:.6f}\n"
        for number, segment in enumerate(made)
    )
    await asyncio.to_thread(_write, workspace / "list.txt", f"ffconcat version 1.0\n{listed}")
    await asyncio.to_thread(_write, workspace / "about.txt", f";FFMETADATA1\ntitle={_metadata(title)}\n")
    arguments = ["-f", "concat", "-i", "list.txt", "-i", sound.name, "-f", "ffmetadata", "-i", "about.txt"]
    arguments += ["-map", "0:v", "-map", "1:a", "-map_metadata", "2", "-c", "copy", "-fflags", "+bitexact"]
    await run_ffmpeg(
        [*arguments, "-movflags", "+faststart", "film.mp4"], folder=workspace, about="the joined film"
    )


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _metadata(text: str) -> str:
    """Return *text* on one line, with the signs escaped that ffmpeg's metadata files give a meaning."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return "".join(f"\\{c}" if c in "=;#\\" else c for c in line)
