"""The work of a `Renderer`, and all that has to be loaded for it."""

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

_SEGMENTS_DONE = 0.9
_JOINED = 0.94


async def produce(
    film: Film,
    output: Path,
    *,
    workspace: Path,
    cache: SegmentCache,
    parallel: int,
    progress: Callable[[float], None],
) -> DeliveryReport:
    """Render *film* to *output*, as `Renderer.render` says."""
    await asyncio.to_thread(workspace.mkdir, parents=True, exist_ok=True)
    planned = await asyncio.to_thread(plan, film, workspace)
    slots = asyncio.Semaphore(parallel)
    sound, made = await _make(planned, workspace, SegmentMaker(cache=cache, slots=slots), slots, progress)
    await _join(film.title, made, sound, workspace)
    progress(_JOINED)
    joined = workspace / "film.mp4"
    report = await asyncio.to_thread(inspect, joined, film, planned.timeline, planned.shown)
    await asyncio.to_thread(publish, joined, output)
    progress(1.0)
    reused = sum(segment.reused for segment in made)
    return report.model_copy(update={"segments_encoded": len(made) - reused, "segments_reused": reused})


async def _make(
    planned: Plan,
    workspace: Path,
    maker: SegmentMaker,
    slots: asyncio.Semaphore,
    progress: Callable[[float], None],
) -> tuple[Path, list[Made]]:
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
