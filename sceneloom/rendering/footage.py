"""Reads what a scene shows, and prepares still pictures to fill a frame."""

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import av.error
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from models.errors import BadMedia
from models.shapes import Size
from sceneloom.rendering.film import SceneMedia

_KEPT_BY_CROP = 0.5
"""The share of a picture that must stay visible, else it is shown whole over a blurred copy of itself."""
_PICTURE_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "AVIF", "BMP", "TIFF")
VIDEO_CONTAINERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,flv,gif,ogg"
"""Only containers that hold their own media: a playlist could name other files and addresses."""
AUDIO_CONTAINERS = f"wav,w64,mp3,flac,ogg,aac,aiff,caf,amr,{VIDEO_CONTAINERS}"


@dataclass(frozen=True, slots=True)
class Footage:
    """A picture or a clip (then with its *seconds*), its size as shown, and the hash of its file."""

    path: Path
    sha256: str
    size: Size
    seconds: float | None = None

    def is_cropped_to(self, size: Size) -> bool:
        """Tell whether the footage fills *size* by losing its edges, rather than over a blurred copy."""
        shown, asked = Fraction(*self.size), Fraction(*size)
        return min(shown, asked) >= _KEPT_BY_CROP * max(shown, asked)


def examine(scene: SceneMedia) -> Footage:
    """Return what *scene* shows. Raises `BadMedia`, which names the scene."""
    try:
        if scene.picture is not None:
            return _picture(scene.picture)
        assert scene.clip is not None  # noqa: S101  (SceneMedia has one of the two)
        return _clip(scene.clip)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError, av.error.FFmpegError) as error:
        raise BadMedia(f"{scene.scene_id}: what it shows cannot be read: {error}") from error


def prepare_still(footage: Footage, size: Size, target: Path) -> None:
    """Write the picture as a PPM of exactly *size*, upright, without transparency."""
    with Image.open(footage.path, formats=_PICTURE_FORMATS) as opened:
        picture = _flat(ImageOps.exif_transpose(opened))
    if footage.is_cropped_to(size):
        frame = ImageOps.fit(picture, size, Image.Resampling.LANCZOS, centering=(0.5, 0.45))
    else:
        frame = _over_blur(picture, size)
    frame.save(target, format="PPM")


def _picture(path: Path) -> Footage:
    with Image.open(path, formats=_PICTURE_FORMATS) as opened:
        opened.load()
        turned = opened.getexif().get(0x0112, 1) >= 5
        width, height = opened.size
    return Footage(path, _sha256(path), Size(height, width) if turned else Size(width, height))


def _clip(path: Path) -> Footage:
    options = {"protocol_whitelist": "file", "format_whitelist": VIDEO_CONTAINERS}
    with av.open(str(path.resolve()), options=options, metadata_errors="ignore") as container:
        if not container.streams.video:
            raise ValueError("it has no moving pictures")
        stream = container.streams.video[0]
        first = next(container.decode(stream))
        size = _as_shown(first, stream.sample_aspect_ratio)
        container.seek(0)
        step = 1 / (stream.average_rate or Fraction(30))
        ends = [
            (packet.pts * stream.time_base, (packet.pts + (packet.duration or 0)) * stream.time_base)
            for packet in container.demux(stream)
            if packet.pts is not None and stream.time_base is not None
        ]
    if not ends:
        raise ValueError("its frames have no times")
    begun, last = min(start for start, _ in ends), max(max(end, start + step) for start, end in ends)
    return Footage(path, _sha256(path), size, float(last - begun))


def _as_shown(frame: av.VideoFrame, aspect: Fraction | None) -> Size:
    width = round(frame.width * aspect) if aspect else frame.width
    return Size(frame.height, width) if frame.rotation % 180 else Size(width, frame.height)


def _flat(picture: Image.Image) -> Image.Image:
    if picture.mode.startswith(("I", "F")):
        # Sixteen bits a sample: Pillow would clip them instead of scaling.
        picture = picture.convert("F").point(lambda value: value / 257).convert("L")
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        ground = Image.new("RGBA", picture.size, "white")
        return Image.alpha_composite(ground, picture).convert("RGB")
    return picture.convert("RGB")


def _over_blur(picture: Image.Image, size: Size) -> Image.Image:
    small = ImageOps.fit(picture, (size.width // 8 or 1, size.height // 8 or 1), Image.Resampling.BOX)
    blurred = small.filter(ImageFilter.GaussianBlur(min(small.size) / 14))
    ground = ImageEnhance.Brightness(blurred.resize(size, Image.Resampling.BICUBIC)).enhance(0.6)
    whole = ImageOps.contain(picture, size, Image.Resampling.LANCZOS)
    ground.paste(whole, ((size.width - whole.width) // 2, round((size.height - whole.height) * 0.42)))
    return ground


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
