"""Makes real pictures, sound and video of any size, once for each shape."""

import asyncio
import io
import math
import struct
import tempfile
import wave
from array import array
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

import imageio_ffmpeg
from PIL import Image, PngImagePlugin

from sceneloom.testing.fake_provider.tasks import Kind

FRAMES_PER_SECOND: Final = 24
MEDIA_TYPES: Final = {
    "mp4": "video/mp4",
    "png": "image/png",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "pcm": "audio/pcm",
}
_HUES: Final = ("C0392B", "D68910", "229954", "2471A3", "7D3C98", "34495E")
_SAMPLES_PER_SECOND: Final = 24_000
_KEPT_SHAPES: Final = 32
_FFMPEG_SECONDS: Final = 120


@dataclass(frozen=True, slots=True)
class Shape:
    """All that decides how a file looks or sounds."""

    kind: Kind
    media_format: str
    width: int = 0
    height: int = 0
    seconds: float = 0
    sound: bool = False
    hue: int = 0


def hue_of(prompt: str) -> int:
    """Return a colour for *prompt*, so that scenes can be told apart."""
    return sha256(prompt.encode()).digest()[0] % len(_HUES)


class Workshop:
    """Makes files and keeps the latest, since an encoder is slow."""

    def __init__(self) -> None:
        self._made: OrderedDict[Shape, asyncio.Future[bytes]] = OrderedDict()

    async def make(self, shape: Shape, mark: str) -> bytes:
        """Return a playable file of *shape*; where the format has room for it, *mark* makes it unique."""
        # Shielded: a client that leaves must not spoil the file for the one who waits beside it.
        plain = await asyncio.shield(self._made_once(shape))
        return _MARKING.get(shape.media_format, _unmarked)(plain, mark)

    def _made_once(self, shape: Shape) -> asyncio.Future[bytes]:
        known = self._made.get(shape)
        if known is None or (known.done() and (known.cancelled() or known.exception())):
            known = asyncio.ensure_future(_MAKERS[shape.kind](shape))
            self._made[shape] = known
        self._made.move_to_end(shape)
        finished = [old for old, work in self._made.items() if work.done() and old != shape]
        for old in finished[: max(0, len(self._made) - _KEPT_SHAPES)]:
            del self._made[old]
        return known

    async def close(self) -> None:
        """End what is being made."""
        for work in self._made.values():
            work.cancel()
        await asyncio.gather(*self._made.values(), return_exceptions=True)
        self._made.clear()


async def _video(shape: Shape) -> bytes:
    size, length = f"{shape.width}x{shape.height}", f"{shape.seconds:g}"
    box = max(2, shape.height // 8)
    picture = (
        f"color=c=0x{_HUES[shape.hue]}:s={size}:r={FRAMES_PER_SECOND}:d={length},"
        f"drawbox=x='mod(t*{shape.width / 4:g},{shape.width})':y=ih/3:w={box}:h={box}:c=white:t=fill"
    )
    sound = ["-f", "lavfi", "-i", f"sine=f=330:d={length}", "-c:a", "aac", "-shortest"] if shape.sound else []
    encoding = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-threads", "1"]
    return await _ffmpeg(["-f", "lavfi", "-i", picture, *sound, *encoding, "-movflags", "+faststart"], "mp4")


async def _image(shape: Shape) -> bytes:
    return await asyncio.to_thread(_picture, shape)


def _picture(shape: Shape) -> bytes:
    light = Image.linear_gradient("L").resize((shape.width, shape.height))
    colour = Image.new("RGB", light.size, f"#{_HUES[shape.hue]}")
    picture = Image.composite(colour, Image.new("RGB", light.size, "#101820"), light)
    file = io.BytesIO()
    picture.save(file, shape.media_format.upper())
    return file.getvalue()


async def _audio(shape: Shape) -> bytes:
    samples = await asyncio.to_thread(_tone, shape)
    if shape.media_format == "pcm":
        return samples
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(_SAMPLES_PER_SECOND)
        sound.writeframes(samples)
    if shape.media_format == "wav":
        return file.getvalue()
    container = {"opus": "ogg", "aac": "adts"}.get(shape.media_format, shape.media_format)
    codec = ["-c:a", "libopus"] if shape.media_format == "opus" else []
    return await _ffmpeg(["-f", "wav", "-i", "pipe:0", *codec], container, sound=file.getvalue())


def _tone(shape: Shape) -> bytes:
    pitch = 220 + 30 * shape.hue
    step = 2 * math.pi * pitch / _SAMPLES_PER_SECOND
    count = round(shape.seconds * _SAMPLES_PER_SECOND)
    return array("h", (round(9000 * math.sin(step * n)) for n in range(count))).tobytes()


_MAKERS: Final[dict[Kind, Callable[[Shape], Awaitable[bytes]]]] = {
    "video": _video,
    "image": _image,
    "audio": _audio,
}


async def _ffmpeg(arguments: list[str], container: str, *, sound: bytes = b"") -> bytes:
    with tempfile.TemporaryDirectory(prefix="fake-provider-") as folder:
        result = Path(folder, "out")  # a file, since the start of an MP4 is written last
        process = await asyncio.create_subprocess_exec(
            *(imageio_ffmpeg.get_ffmpeg_exe(), "-loglevel", "error"),
            *(*arguments, "-bitexact", "-f", container, str(result)),
            stdin=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(_FFMPEG_SECONDS):
                _, said = await process.communicate(sound)
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()
        if process.returncode:
            raise RuntimeError(f"ffmpeg failed: {said.decode(errors='replace').strip()}")
        return await asyncio.to_thread(result.read_bytes)


def _marked_mp4(plain: bytes, mark: str) -> bytes:
    """Append a box that players skip."""
    return plain + struct.pack(">I4s", 8 + len(mark), b"free") + mark.encode()


def _marked_png(plain: bytes, mark: str) -> bytes:
    """Insert a comment before the last chunk, IEND, which is always 12 bytes long."""
    note = io.BytesIO()
    PngImagePlugin.putchunk(note, b"tEXt", b"Comment\0" + mark.encode())
    return plain[:-12] + note.getvalue() + plain[-12:]


def _marked_wav(plain: bytes, mark: str) -> bytes:
    """Append a chunk that players skip, and count it in the length of the file."""
    text = mark.encode() + b" " * (len(mark) % 2)
    whole = plain + struct.pack("<4sI", b"note", len(text)) + text
    return whole[:4] + struct.pack("<I", len(whole) - 8) + whole[8:]


def _unmarked(plain: bytes, _mark: str) -> bytes:
    return plain


_MARKING: Final = {"mp4": _marked_mp4, "png": _marked_png, "wav": _marked_wav}
