"""What comes back from a blocking call, as we need it: pictures of one size, speech as whole WAV files."""

import base64
import binascii
import io
import math
import wave
from collections.abc import Sequence
from typing import Final

from models.errors import ErrorCode, ProviderFailure
from models.ports import Speech, Word
from models.shapes import Size
from sceneloom.providers.verdicts import text_of

_STEP: Final = 64
_MOST_PIXELS: Final = 64_000_000


def within(text: str, longest: int, *, by: str) -> None:
    """Raise `ProviderFailure` (INVALID_REQUEST) unless *text* has 1 to *longest* characters."""
    if not 0 < len(text) <= longest:
        raise ProviderFailure(ErrorCode.INVALID_REQUEST, f"{by} takes 1 to {longest} characters")


def of_area(size: Size, side: int) -> Size:
    """Return the shape of *size* with as many pixels as a square of *side*, in steps of 64.

    Diffusion models draw well only near the number of pixels that they learned from.
    """
    scale = side / math.sqrt(size.width * size.height)
    width, height = (max(_STEP, round(each * scale / _STEP) * _STEP) for each in size)
    return Size(width, height)


def fitted(content: bytes, size: Size) -> bytes:
    """Return the picture *content* as a PNG of exactly *size*, cut and scaled around its middle.

    Raises `ProviderFailure` (OUTPUT_MISSING) where it is no picture.
    """
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG", "WEBP")) as picture:
            if picture.width * picture.height > _MOST_PIXELS:
                raise ValueError(f"{picture.width}x{picture.height} is too large")  # noqa: TRY301 -- told below
            made = ImageOps.fit(picture.convert("RGB"), size, Image.Resampling.LANCZOS)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ProviderFailure(ErrorCode.OUTPUT_MISSING, f"not a picture: {error}") from error
    file = io.BytesIO()
    made.save(file, "PNG", compress_level=1)
    return file.getvalue()


def decoded(value: object, *, of: str) -> bytes:
    """Return what *value* holds in base64. Raises `ProviderFailure` (OUTPUT_MISSING) where it does not."""
    try:
        return base64.b64decode(text_of(value), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ProviderFailure(ErrorCode.OUTPUT_MISSING, f"no {of} in base64: {error}") from error


def speech_in(content: bytes) -> Speech:
    """Read the samples of a WAV file, however many its header claims: a streamed one cannot know.

    Raises `ProviderFailure` (OUTPUT_MISSING) where there are none.
    """
    try:
        with wave.open(io.BytesIO(content)) as reader:
            channels, width, rate = reader.getnchannels(), reader.getsampwidth(), reader.getframerate()
            samples = reader.readframes(reader.getnframes())
    except (wave.Error, EOFError) as error:
        raise ProviderFailure(ErrorCode.OUTPUT_MISSING, f"not a WAV file: {error}") from error
    return speech_of(samples, rate, channels=channels, width=width)


def speech_of(
    samples: bytes, rate: int, *, channels: int = 1, width: int = 2, words: Sequence[Word] = ()
) -> Speech:
    """Pack *samples*, each *width* bytes long, as a WAV file.

    Raises `ProviderFailure` (OUTPUT_MISSING) where there are none.
    """
    whole = len(samples) - len(samples) % (channels * width)
    if not whole:
        raise ProviderFailure(ErrorCode.OUTPUT_MISSING, "the recording is empty")
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(width)
        writer.setframerate(rate)
        writer.writeframes(samples[:whole])
    return Speech(audio=file.getvalue(), seconds=whole / (channels * width * rate), words=tuple(words))
