"""Decoding sound and video to their last frame, within limits, to find out what is really there."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from models.errors import BadMedia

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.stream import Stream
    from av.video.stream import VideoStream

# The demuxer is named, so that bytes made to look like a playlist or a script cannot choose one.
_DEMUXERS: Final = {
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/mp4": "mov",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/wav": "wav",
    "video/mp4": "mov",
    "video/quicktime": "mov",
    "video/webm": "matroska",
}
_SOUND_CODECS: Final = (
    "aac,aac_fixed,alac,flac,mp3,mp3float,opus,libopus,vorbis,libvorbis,"
    "pcm_s16le,pcm_s24le,pcm_s32le,pcm_f32le,pcm_f64le,pcm_u8,pcm_alaw,pcm_mulaw,pcm_s16be,pcm_s24be"
)
_PICTURE_CODECS: Final = "h264,hevc,av1,libdav1d,libaom-av1,vp8,libvpx,vp9,libvpx-vp9,mpeg4,prores,mjpeg"
"""What providers send. FFmpeg has hundreds of decoders, most of them for files that nobody makes any more."""
_CHANNELS: Final = 8
_RATES: Final = range(8_000, 192_001)
_FRAME_PIXELS: Final = 4096 * 2304
_LIMITS: Final = {
    "max_pixels": str(_FRAME_PIXELS),
    "codec_whitelist": f"{_PICTURE_CODECS},{_SOUND_CODECS}",
    "protocol_whitelist": "",
}
_FRAME_RATE: Final = 120
_ALL_PIXELS: Final = 60_000_000_000
"""What may be decoded of one video: 900 s of 1920x1080 at 30 frames a second take 56 thousand million."""


@dataclass
class Sound:
    """What came out of a sound file; *claim* is the length in seconds that FFmpeg expected, if any."""

    seconds: float
    sample_rate: int
    channels: int
    claim: float | None


@dataclass
class Video:
    """What came out of a video file.

    *seconds* lie between the first and the last picture; *reached* is the end of what *claim* speaks of.
    """

    seconds: float
    width: int
    height: int
    frames: int
    reached: float
    claim: float | None


def decode_sound(file: BinaryIO, media_type: str, longest: float) -> Sound:
    """Decode the first audio stream of *file*. Raises BadMedia if that fails or passes *longest* seconds."""
    with _container(file, media_type) as container:
        if not container.streams.audio:
            raise BadMedia("this file holds no sound")
        stream = container.streams.audio[0]
        _require_named(stream.codec_context.name, media_type)
        rate, channels = stream.codec_context.sample_rate, stream.codec_context.channels
        if rate not in _RATES or not 1 <= channels <= _CHANNELS:
            raise BadMedia(f"this sound has {rate} Hz and {channels} channels: no voice or music has that")
        claim = _claim(container, stream)
        samples = 0
        for packet in container.demux(stream):
            samples += sum(frame.samples for frame in stream.decode(packet))
            _require_short(samples / rate, longest)
    if samples == 0:
        raise BadMedia("this file holds no sound")
    return Sound(samples / rate, rate, channels, claim)


def decode_video(file: BinaryIO, media_type: str, longest: float) -> Video:
    """Decode the first video stream of *file*. Raises BadMedia if that fails or passes *longest* seconds."""
    with _container(file, media_type) as container:
        if not container.streams.video:
            raise BadMedia("this file holds no pictures")
        stream = container.streams.video[0]
        _limit(stream)
        claim = _claim(container, stream)
        seen = _Seen(longest)
        reached = 0.0
        for packet in container.demux():
            reached = max(reached, _end(packet))
            if packet.stream is stream:
                seen.take(stream, packet)
    if seen.frames == 0:
        raise BadMedia("this file holds no pictures")
    whole = seen.end if stream.duration is not None else reached
    return Video(seen.end - seen.start, seen.width, seen.height, seen.frames, whole, claim)


class _Seen:
    """The pictures of a video so far."""

    def __init__(self, longest: float) -> None:
        self.longest = longest
        self.frames = self.pixels = self.width = self.height = 0
        self.start = self.end = 0.0

    def take(self, stream: "VideoStream", packet: "Packet[Any]") -> None:
        usual = float(1 / (stream.average_rate or Fraction(30)))
        for frame in stream.decode(packet):
            if frame.is_corrupt:
                raise BadMedia("this video is damaged: a picture in it does not decode")
            at = self.end if frame.pts is None else frame.time
            if self.frames == 0:
                self.start, self.width, self.height = at, frame.width, frame.height
            length = float(frame.duration * (frame.time_base or 0)) or usual
            self.end = max(self.end, at + length)
            self.frames += 1
            self.pixels += frame.width * frame.height
            _require_short(self.end - self.start, self.longest)
            if self.frames > self.longest * _FRAME_RATE or self.pixels > _ALL_PIXELS:
                raise BadMedia(f"this video has too many or too large pictures: over {self.frames} of them")


@contextmanager
def _container(file: BinaryIO, media_type: str) -> Iterator["InputContainer"]:
    import av
    from av.error import FFmpegError

    try:
        # Opening decodes a first picture to learn its format, so the limit has to be there already.
        with av.open(
            file, "r", format=_DEMUXERS[media_type], options=_LIMITS, metadata_errors="ignore"
        ) as container:
            yield container
    except (FFmpegError, ValueError) as exc:
        if isinstance(exc, BadMedia):
            raise
        raise BadMedia(
            f"this {media_type} file is cut off or damaged, or too large to decode: {exc}"
        ) from exc


def _require_named(codec: str, media_type: str) -> None:
    """Refuse a decoder that is not on the list; a WAV, which is read beside our keys, needs none at all."""
    is_plain = codec.startswith("pcm_")
    if codec not in _SOUND_CODECS.split(",") or (media_type == "audio/wav" and not is_plain):
        raise BadMedia(f"this sound is {codec}, which no provider sends as {media_type}")


def _limit(stream: "VideoStream") -> None:
    codec = stream.codec_context
    if codec.width * codec.height > _FRAME_PIXELS:
        raise BadMedia(f"this video is too large to decode: {codec.width}x{codec.height}, at most 4096x2304")
    # A later frame may claim another size than the header did.
    codec.options = dict(_LIMITS)
    codec.thread_type = "AUTO"
    codec.thread_count = 2


def _claim(container: "InputContainer", stream: "Stream") -> float | None:
    if stream.duration is not None and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    return container.duration / 1e6 if container.duration is not None else None


def _end(packet: "Packet[Any]") -> float:
    if packet.pts is None or packet.time_base is None:
        return 0.0
    return float((packet.pts + (packet.duration or 0)) * packet.time_base)


def _require_short(seconds: float, longest: float) -> None:
    if seconds > longest:
        raise BadMedia(f"this file is too long: more than the {longest:g} s that are allowed")
