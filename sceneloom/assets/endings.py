"""How long a recording promises to be, where the container's own bytes tell it better than FFmpeg does."""

import io
import struct
from typing import BinaryIO, Final

from models.errors import BadMedia

_STREAMED: Final = 0x7FFF_0000
"""A WAV that is written to a pipe has 0, or a size from here on, because its length was not known."""
_XING: Final = (b"Xing", b"Info", b"VBRI")
_OGG_PAGE: Final = 65_307


def promised_seconds(file: BinaryIO, media_type: str, claim: float | None) -> float | None:
    """Return *claim*, FFmpeg's length in seconds, where the file states it and FFmpeg did not guess it."""
    if media_type == "audio/aac":
        return None
    if media_type == "audio/mpeg" and not _has_length_header(file):
        return None
    return claim


def require_whole(file: BinaryIO, media_type: str) -> None:
    """Raise BadMedia for a WAV or Ogg whose last part is missing: FFmpeg takes what is there for all."""
    if media_type == "audio/wav":
        _require_whole_wav(file)
    elif media_type == "audio/ogg":
        _require_whole_ogg(file)
    file.seek(0)


def _has_length_header(file: BinaryIO) -> bool:
    """Tell whether the first MPEG frame, after an ID3 tag, counts the frames that follow."""
    file.seek(0)
    head = file.read(10)
    start = 0
    if head[:3] == b"ID3" and len(head) == 10:
        sizes = head[6:10]
        start = 10 + sum((byte & 0x7F) << shift for byte, shift in zip(sizes, (21, 14, 7, 0), strict=True))
    file.seek(start)
    frame = file.read(512)
    return any(mark in frame for mark in _XING)


def _require_whole_wav(file: BinaryIO) -> None:
    end = file.seek(0, io.SEEK_END)
    position = 12
    while position + 8 <= end:
        file.seek(position)
        name, size = struct.unpack("<4sI", file.read(8))
        position += 8
        if name == b"data":
            if 0 < size < _STREAMED and position + size > end:
                raise BadMedia(
                    f"this file is cut off: it claims {size} bytes of sound and holds {end - position}"
                )
            return
        position += size + size % 2
    raise BadMedia("this WAV file is cut off: it has no sound in it")


def _require_whole_ogg(file: BinaryIO) -> None:
    end = file.seek(0, io.SEEK_END)
    file.seek(max(0, end - _OGG_PAGE))
    tail = file.read()
    page = tail[tail.rfind(b"OggS") :]
    if len(page) < 27 or len(page) < 27 + page[26] + sum(page[27 : 27 + page[26]]):
        raise BadMedia("this file is cut off: its last Ogg page is not whole")
