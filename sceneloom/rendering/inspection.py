"""Decodes a finished film from end to end and says what is in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import av
import av.error
import numpy as np

from models.shapes import Size
from sceneloom.rendering.errors import RenderFailed
from sceneloom.rendering.film import FPS, SAMPLE_RATE, Film
from sceneloom.rendering.footage import Footage
from sceneloom.rendering.loudness import STEP, Powers, Samples, integrated, powers, true_peak
from sceneloom.rendering.report import DeliveryReport, FilmFacts, SceneFacts
from sceneloom.rendering.timeline import Span, Timeline

_BLACK = 16 + 219 * 0.04
"""Luma, in video range, up to which a pixel counts as black."""
_BLACK_SHARE = 0.98
_SPARSE = 8
"""Every how many pixels one is looked at: enough to know black from a picture."""
_INAUDIBLE = 10 ** (-60 / 20)
_LOUDEST_PEAK = -1.0
_LOUDNESS = (-15.0, -13.0)


@dataclass(frozen=True, slots=True)
class Shown:
    """What was planned for one scene."""

    scene_id: str
    span: Span
    heard: tuple[int, int]
    """The first sample that is heard of it, and the one after the last."""
    footage: Footage
    missing_glyphs: str
    narrated: bool


@dataclass(frozen=True, slots=True)
class Decoded:
    """Everything that decoding the file told."""

    black: tuple[bool, ...]
    sound: Samples
    powers: Powers
    facts: FilmFacts


def inspect(path: Path, film: Film, timeline: Timeline, planned: Sequence[Shown]) -> DeliveryReport:
    """Report on the film at *path*. Raises `RenderFailed` where it does not decode to its end."""
    try:
        decoded = decode(path)
    except av.error.FFmpegError as error:
        raise RenderFailed(f"the finished film does not decode: {error}") from error
    scenes = tuple(_scene(scene, film.size, decoded) for scene in planned)
    faults = [
        fault
        for plan, scene in zip(planned, scenes, strict=True)
        for fault in _faults(scene, plan, film.size)
    ]
    return DeliveryReport(
        title=film.title,
        video=decoded.facts,
        scenes=scenes,
        segments_encoded=0,
        segments_reused=0,
        problems=(*_film_problems(decoded.facts, film.size, timeline), *faults),
    )


def decode(path: Path) -> Decoded:
    """Decode picture and sound of the MP4 at *path* completely. Raises `av.error.FFmpegError`."""
    with av.open(str(path), metadata_errors="ignore") as container:
        video, audio = container.streams.video[0], container.streams.audio[0]
        video.thread_type = "AUTO"
        black: list[bool] = []
        parts: list[Samples] = []
        for frame in container.decode(video, audio):
            if isinstance(frame, av.VideoFrame):
                black.append(_is_black(frame))
            elif isinstance(frame, av.AudioFrame):
                parts.append(frame.to_ndarray().astype(np.float32))
        sound = np.concatenate(parts, axis=1) if parts else np.zeros((1, 0), dtype=np.float32)
        # The last AAC frame is longer than the film: what the container does not present is not heard.
        presented = round((audio.duration or 0) * (audio.time_base or 0) * audio.codec_context.sample_rate)
        sound = sound[:, :presented]
        steps = powers(sound)
        facts = FilmFacts(
            width=video.codec_context.width,
            height=video.codec_context.height,
            fps=float(video.average_rate or 0),
            frames=len(black),
            seconds=len(black) / FPS,
            video_codec=f"{video.codec_context.name} {video.codec_context.profile or ''}".strip(),
            audio_codec=f"{audio.codec_context.name} {audio.codec_context.profile or ''}".strip(),
            sample_rate=audio.codec_context.sample_rate,
            channels=audio.codec_context.channels,
            samples=sound.shape[1],
            loudness_lufs=integrated(steps),
            true_peak_dbtp=true_peak(sound),
            faststart=is_index_first(path),
            size_bytes=path.stat().st_size,
        )
    return Decoded(tuple(black), sound, steps, facts)


def is_index_first(path: Path) -> bool:
    """Tell whether `moov` stands before `mdat` in the MP4 at *path*."""
    with path.open("rb") as file:
        for kind in iter(lambda: _skip_box(file), b""):
            if kind in {b"moov", b"mdat"}:
                return kind == b"moov"
    return False


def _skip_box(file: BinaryIO) -> bytes:
    head = file.read(8)
    length = int.from_bytes(head[:4], "big")
    if length == 1:
        file.seek(int.from_bytes(file.read(8), "big") - 16, 1)
    elif length >= 8:
        file.seek(length - 8, 1)
    else:
        file.seek(0, 2)
    return head[4:]


def _is_black(frame: av.VideoFrame) -> bool:
    plane = frame.planes[0]
    luma = np.frombuffer(memoryview(plane), dtype=np.uint8).reshape(-1, plane.line_size)
    seen = luma[: frame.height : _SPARSE, : frame.width : _SPARSE]
    return bool((seen <= _BLACK).mean() >= _BLACK_SHARE)


def _scene(scene: Shown, size: Size, decoded: Decoded) -> SceneFacts:
    span, footage = scene.span, scene.footage
    first, last = scene.heard
    silent = float(np.max(np.abs(decoded.sound[:, first:last]), initial=0.0)) < _INAUDIBLE
    sides = (size.width / footage.size.width, size.height / footage.size.height)
    enlarged = max(sides) if footage.is_cropped_to(size) else min(sides)
    return SceneFacts(
        scene_id=scene.scene_id,
        start_seconds=round(span.start / FPS, 3),
        duration_seconds=round(span.frames / FPS, 3),
        loudness_lufs=None if silent else integrated(decoded.powers[first // STEP : -(-last // STEP)]),
        silent=silent,
        black_frames=sum(decoded.black[span.start : span.start + span.frames]),
        source_width=footage.size.width,
        source_height=footage.size.height,
        upscaled=enlarged > 1.01,
        missing_glyphs=scene.missing_glyphs,
    )


def _film_problems(facts: FilmFacts, size: Size, timeline: Timeline) -> list[str]:
    problems = []
    if (facts.width, facts.height) != size:
        asked = f"{size.width}x{size.height}"
        problems.append(f"the film is {facts.width}x{facts.height}, {asked} was asked for")
    if facts.frames != timeline.frames:
        problems.append(f"the film has {facts.frames} frames, {timeline.frames} were planned")
    if facts.fps != FPS:
        problems.append(f"the film runs at {facts.fps:g} frames a second, not at {FPS}")
    if (facts.samples, facts.sample_rate) != (timeline.samples, SAMPLE_RATE):
        problems.append(f"the sound has {facts.samples} samples, {timeline.samples} were planned")
    if not facts.faststart:
        problems.append("the index is behind the media: players must load all of it before they start")
    quietest, loudest = _LOUDNESS
    if facts.loudness_lufs is not None and not quietest <= facts.loudness_lufs <= loudest:
        problems.append(f"the film is at {facts.loudness_lufs:.1f} LUFS, platforms expect -14")
    if facts.true_peak_dbtp is not None and facts.true_peak_dbtp > _LOUDEST_PEAK:
        problems.append(f"the sound peaks at {facts.true_peak_dbtp:.1f} dBTP and may distort")
    return problems


def _faults(scene: SceneFacts, plan: Shown, size: Size) -> list[str]:
    faults = []
    kind = "picture" if plan.footage.seconds is None else "clip"
    if scene.upscaled:
        source = f"{scene.source_width}x{scene.source_height}"
        faults.append(f"the {kind} is {source}, the film is {size.width}x{size.height}")
    if scene.silent and plan.narrated:
        faults.append("its narration is silent")
    if scene.black_frames:
        faults.append(f"{scene.black_frames} frames are black")
    if scene.missing_glyphs:
        faults.append(f"the caption fonts cannot show {' '.join(scene.missing_glyphs)}")
    return [f"{scene.scene_id}: {fault}" for fault in faults]
