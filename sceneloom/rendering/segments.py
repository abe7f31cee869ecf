"""Encodes the pieces of a film, or takes them from the cache."""

import asyncio
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import av
import av.error

from models.shapes import Size
from sceneloom.rendering.cache import SegmentCache, is_sealed, seal
from sceneloom.rendering.errors import RenderFailed
from sceneloom.rendering.ffmpeg import ffmpeg_version, run_ffmpeg
from sceneloom.rendering.film import FPS
from sceneloom.rendering.filters import View, graph
from sceneloom.rendering.footage import VIDEO_CONTAINERS, Footage, prepare_still
from sceneloom.rendering.timeline import Timeline

_VERSION = 1
"""Grows when a change of the renderer makes other frames from the same inputs."""
_FONTS = "../../fonts"
_SEGMENT = "segment.mp4"
# The output of x264 depends on the number of its threads: it is pinned, for segments are hashed and joined.
_ENCODER = (
    *("-c:v", "libx264", "-preset", "veryfast", "-crf", "21", "-maxrate", "8M", "-bufsize", "16M"),
    *("-profile:v", "high", "-level", "4.1", "-pix_fmt", "yuv420p", "-g", "60", "-bf", "2", "-threads", "1"),
    *("-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-color_range", "tv"),
    *("-video_track_timescale", "15360", "-an", "-map_metadata", "-1"),
    *("-fflags", "+bitexact", "-flags:v", "+bitexact"),
)


@dataclass(frozen=True, slots=True)
class Segment:
    """All that one encoded piece is made from; file names are fixed, so equal content has an equal key."""

    about: str
    """Which part of the film it is, for operators."""
    frames: int
    size: Size
    footage: Mapping[str, Footage]
    captions: Mapping[str, str]
    filters: str
    fonts: tuple[str, ...]
    """The hashes of the fonts that each caption document is set in."""

    @property
    def key(self) -> str:
        """The hash of everything that decides what the segment looks like."""
        recipe = {
            "version": _VERSION,
            "ffmpeg": ffmpeg_version(),
            "encoder": _ENCODER,
            "frames": self.frames,
            "size": self.size,
            "footage": {name: footage.sha256 for name, footage in self.footage.items()},
            "captions": dict(self.captions),
            "filters": self.filters,
            "fonts": self.fonts,
        }
        return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Made:
    """A finished segment."""

    path: Path
    frames: int
    reused: bool


@dataclass(frozen=True, slots=True)
class Look:
    """What one scene shows: its footage, its caption document ("" for none) and the hash of their fonts."""

    scene_id: str
    footage: Footage
    captions: str
    fonts: str


def segments(timeline: Timeline, looks: Sequence[Look], size: Size) -> Iterator[Segment]:
    """Yield the segments of a film in their order."""
    for piece in timeline.pieces():
        seen = {name: looks[shot.scene] for name, shot in zip("ab", piece.shots, strict=False)}
        views = tuple(
            View(
                shot=shot,
                frames=timeline.spans[shot.scene].frames,
                footage=look.footage,
                captions=f"{name}.ass" if look.captions else None,
            )
            for shot, (name, look) in zip(piece.shots, seen.items(), strict=True)
        )
        yield Segment(
            about=" to ".join(look.scene_id for look in seen.values()),
            frames=piece.frames,
            size=size,
            footage={name: look.footage for name, look in seen.items()},
            captions={f"{name}.ass": look.captions for name, look in seen.items() if look.captions},
            filters=graph(views, piece.frames, size, _FONTS),
            fonts=tuple(look.fonts for look in seen.values() if look.captions),
        )


class SegmentMaker:
    """Makes segments, at most *parallel* at once."""

    def __init__(self, *, cache: SegmentCache, slots: asyncio.Semaphore) -> None:
        self._cache = cache
        self._slots = slots

    async def make(self, segment: Segment, folder: Path) -> Made:
        """Put *segment* into *folder*, from the cache where it is whole there. Raises `RenderFailed`."""
        path = folder / _SEGMENT
        async with self._slots:
            await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
            key = await asyncio.to_thread(lambda: segment.key)
            if await self._cache.fetch(key, path) and await asyncio.to_thread(
                _is_whole, path, segment.frames
            ):
                return Made(path, segment.frames, reused=True)
            await asyncio.to_thread(_lay_ready, segment, folder)
            await run_ffmpeg(_arguments(segment), folder=folder, about=segment.about)
            await asyncio.to_thread(_finish, segment, path)
            await self._cache.keep(key, path)
            return Made(path, segment.frames, reused=False)


def _lay_ready(segment: Segment, folder: Path) -> None:
    for name, text in segment.captions.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name, footage in segment.footage.items():
        if footage.seconds is None:
            prepare_still(footage, segment.size, folder / f"{name}.ppm")
        else:
            _place(footage.path, folder / f"{name}.clip")


def _place(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    try:
        target.symlink_to(source.resolve())
    except OSError:
        shutil.copyfile(source, target)


def _arguments(segment: Segment) -> list[str]:
    arguments: list[str] = []
    for name, footage in segment.footage.items():
        if footage.seconds is None:
            arguments += ["-f", "image2", "-pattern_type", "none", "-i", f"{name}.ppm"]
        else:
            arguments += ["-protocol_whitelist", "file", "-format_whitelist", VIDEO_CONTAINERS]
            arguments += ["-threads", "1", "-i", f"{name}.clip"]
    arguments += ["-filter_complex", segment.filters, "-map", "[out]", "-r", str(FPS)]
    return [*arguments, "-frames:v", str(segment.frames), *_ENCODER, _SEGMENT]


def _finish(segment: Segment, path: Path) -> None:
    encoded = _frames(path)
    if encoded != segment.frames:
        raise RenderFailed(f"ffmpeg encoded {encoded} of {segment.frames} frames of {segment.about}")
    seal(path)


def _is_whole(path: Path, frames: int) -> bool:
    return is_sealed(path) and _frames(path) == frames


def _frames(path: Path) -> int:
    try:
        with av.open(str(path)) as container:
            return sum(packet.size > 0 for packet in container.demux(video=0))
    except av.error.FFmpegError:
        return 0
