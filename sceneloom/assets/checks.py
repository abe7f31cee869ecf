"""Whether bytes are a whole picture, sound or video: providers also send error pages and half files."""

import asyncio
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from models.errors import BadMedia
from sceneloom.assets.confined import confined
from sceneloom.assets.decoding import decode_sound, decode_video
from sceneloom.assets.endings import promised_seconds, require_whole
from sceneloom.assets.signatures import HEAD, describe, media_type_of

_MEGABYTE: Final = 1_000_000
IMAGE_BYTES: Final = 20 * _MEGABYTE
AUDIO_BYTES: Final = 50 * _MEGABYTE
VIDEO_BYTES: Final = 500 * _MEGABYTE
IMAGE_PIXELS: Final = 64_000_000
_SLACK: Final = 0.1
"""Seconds by which containers round their length, or count what a decoder skips."""
_FORMATS: Final = ("PNG", "JPEG", "WEBP", "AVIF", "GIF")


@dataclass(frozen=True)
class ImageFacts:
    """What a picture is; width and height in pixels as stored, before any EXIF rotation."""

    media_type: str
    width: int
    height: int


@dataclass(frozen=True)
class AudioFacts:
    """What a recording is; seconds are those that decode, whatever its header claims."""

    media_type: str
    seconds: float
    sample_rate: int
    channels: int


@dataclass(frozen=True)
class VideoFacts:
    """What a video is; seconds and frames are those that decode, width and height in pixels as stored."""

    media_type: str
    seconds: float
    width: int
    height: int
    frames: int


def check_image(content: bytes, *, smallest_side: int = 16) -> ImageFacts:
    """Prove that *content* is a whole PNG, JPEG, WebP, AVIF or GIF of at most 64 megapixels.

    Raises BadMedia otherwise, also where a side is under *smallest_side* pixels.
    """
    from PIL import Image

    media_type = _require(content[:HEAD], len(content), ("image/",), "a picture", IMAGE_BYTES)
    with _pillow_errors():
        with Image.open(io.BytesIO(content), formats=_FORMATS) as picture:
            width, height = picture.size
            _require_sides(width, height, smallest_side)
            picture.verify()
        # verify() reads no pixels: a JPEG cut in half passes it.
        with Image.open(io.BytesIO(content), formats=_FORMATS) as picture:
            picture.load()
    return ImageFacts(media_type, width, height)


def check_audio(source: bytes | Path | BinaryIO, *, longest_seconds: float = 900.0) -> AudioFacts:
    """Prove that *source* decodes to the end it claims and holds sound. Raises BadMedia otherwise."""
    with _opened(source) as file:
        media_type = _require_file(file, ("audio/", "video/webm"), "a sound", AUDIO_BYTES)
        require_whole(file, media_type)
        sound = decode_sound(file, media_type, longest_seconds)
        promised = promised_seconds(file, media_type, sound.claim)
    _require_length(sound.seconds, promised, slack=0.001 if media_type == "audio/flac" else _SLACK)
    return AudioFacts(media_type, round(sound.seconds, 6), sound.sample_rate, sound.channels)


def check_video(source: bytes | Path | BinaryIO, *, longest_seconds: float = 900.0) -> VideoFacts:
    """Prove that *source* decodes to the end it claims and holds pictures. Raises BadMedia otherwise."""
    with _opened(source) as file:
        media_type = _require_file(file, ("video/",), "a video", VIDEO_BYTES)
        video = decode_video(file, media_type, longest_seconds)
    _require_length(video.reached, video.claim, slack=_SLACK)
    return VideoFacts(media_type, round(video.seconds, 6), video.width, video.height, video.frames)


async def check_image_async(content: bytes, *, smallest_side: int = 16) -> ImageFacts:
    """Call `check_image` in a thread."""
    return await asyncio.to_thread(check_image, content, smallest_side=smallest_side)


async def check_audio_async(source: bytes | Path, *, longest_seconds: float = 900.0) -> AudioFacts:
    """Call `check_audio` in a process of its own; a WAV, which needs no decoder, in a thread."""
    if isinstance(source, bytes) and media_type_of(source[:HEAD]) == "audio/wav":
        return await asyncio.to_thread(check_audio, source, longest_seconds=longest_seconds)
    found = await confined(check_audio.__name__, source, {"longest_seconds": longest_seconds})
    return AudioFacts(**found)


async def check_video_async(source: bytes | Path, *, longest_seconds: float = 900.0) -> VideoFacts:
    """Call `check_video` in a process of its own."""
    found = await confined(check_video.__name__, source, {"longest_seconds": longest_seconds})
    return VideoFacts(**found)


@contextmanager
def _opened(source: bytes | Path | BinaryIO) -> Iterator[BinaryIO]:
    # FFmpeg is handed a file that is open, never a name: names may be URLs and protocols to it.
    match source:
        case Path():
            with source.open("rb") as file:
                yield file
        case bytes():
            yield io.BytesIO(source)
        case _:
            yield source


def _require_file(file: BinaryIO, families: tuple[str, ...], wanted: str, most: int) -> str:
    head = file.read(HEAD)
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    return _require(head, size, families, wanted, most)


def _require(head: bytes, size: int, families: tuple[str, ...], wanted: str, most: int) -> str:
    media_type = media_type_of(head)
    if media_type is None or not media_type.startswith(families):
        raise BadMedia(f"this is {describe(head)}, not {wanted}")
    if size > most:
        megabytes = f"{size / _MEGABYTE:.0f} MB"
        raise BadMedia(f"this {media_type} file is too large: {megabytes}, at most {most // _MEGABYTE} MB")
    return media_type


def _require_sides(width: int, height: int, smallest: int) -> None:
    if width * height > IMAGE_PIXELS:
        raise BadMedia(
            f"this picture is too large: {width}x{height}, at most {IMAGE_PIXELS // 10**6} megapixels"
        )
    if min(width, height) < smallest:
        raise BadMedia(
            f"this picture is too small: {width}x{height}, at least {smallest} pixels on each side"
        )


def _require_length(seconds: float, promised: float | None, *, slack: float) -> None:
    if promised is not None and seconds < promised - slack:
        raise BadMedia(f"this file is cut off: it claims {promised:.2f} s and holds {seconds:.2f} s")


@contextmanager
def _pillow_errors() -> Iterator[None]:
    """Turn whatever Pillow raises on hostile bytes into BadMedia: its decoders raise almost anything."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (BadMedia, MemoryError):
        raise
    except Image.DecompressionBombError as exc:
        most = f"at most {IMAGE_PIXELS // 10**6} megapixels"
        raise BadMedia(f"this picture is too large: {most}") from exc
    except Exception as exc:
        raise BadMedia(f"this picture is cut off or damaged: {exc}") from exc
