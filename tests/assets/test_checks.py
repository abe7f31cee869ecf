import io
import resource
import struct
import subprocess
import wave
import zlib
from collections.abc import Callable
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

from models.errors import BadMedia
from sceneloom.assets.checks import (
    AudioFacts,
    ImageFacts,
    check_audio,
    check_audio_async,
    check_image,
    check_image_async,
    check_video,
    check_video_async,
)

HTML = b"<!DOCTYPE html><html><body>rate limited</body></html>"
JSON = b'{"error": "quota exceeded"}'


def picture(kind: str, width: int = 320, height: int = 200) -> bytes:
    pixels = np.random.default_rng(7).integers(0, 255, (height, width, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


def png_header(width: int, height: int) -> bytes:
    """Make a PNG whose header claims a size that its few bytes of pixels do not fill."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(b"\0" * 10_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b"")


def wav(seconds: float = 1.5, rate: int = 24_000) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        tone = np.sin(np.arange(int(seconds * rate)) * 0.05) * 9000
        file.writeframes(tone.astype("<i2").tobytes())
    return out.getvalue()


Encode = Callable[..., bytes]


@pytest.fixture(scope="module")
def encoded(tmp_path_factory: pytest.TempPathFactory) -> Encode:
    folder = tmp_path_factory.mktemp("media")
    sources = {
        "tone": ("-f", "lavfi", "-i", "sine=440:duration=2"),
        "huge": ("-f", "lavfi", "-i", "color=s=6000x6000:d=0.1:r=10"),
        "both": (
            "-f",
            "lavfi",
            "-i",
            "testsrc2=s=192x108:d=2:r=30",
            "-f",
            "lavfi",
            "-i",
            "sine=440:duration=2",
        ),
    }

    def encode(source: str, name: str, *options: str) -> bytes:
        target = folder / name
        if not target.exists():
            command = [
                imageio_ffmpeg.get_ffmpeg_exe(),
                "-v",
                "error",
                *sources[source],
                *options,
                str(target),
            ]
            subprocess.run(command, check=True, timeout=60)
        return target.read_bytes()

    return encode


SOUNDS = {
    "a.mp3": ("-b:a", "64k"),
    "a.ogg": ("-c:a", "libopus"),
    "a.flac": (),
    "a.m4a": ("-c:a", "aac"),
    "a.aac": ("-c:a", "aac"),
}
H264 = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac")
VIDEOS = {
    "front.mp4": (*H264, "-movflags", "+faststart"),
    "back.mp4": H264,
    "pieces.mp4": (*H264, "-g", "15", "-movflags", "frag_keyframe+empty_moov"),
    "v.webm": ("-c:v", "libvpx", "-deadline", "realtime", "-b:v", "300k", "-c:a", "libopus"),
}


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "AVIF", "GIF"])
def test_a_whole_picture_passes(kind: str) -> None:
    assert check_image(picture(kind)) == ImageFacts(f"image/{kind.lower()}", 320, 200)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "AVIF", "GIF"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.95])
def test_a_picture_that_is_cut_off_is_found(kind: str, share: float) -> None:
    content = picture(kind)
    with pytest.raises(BadMedia, match="cut off or damaged"):
        check_image(content[: int(len(content) * share)])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (HTML, "this is an HTML page, not a picture"),
        (b"\n  <HTML>", "an HTML page"),
        (JSON, "a JSON text"),
        (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "an XML document"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "an SVG drawing"),
        (b"Too Many Requests\n", "a plain text"),
        (b"", "an empty file"),
        (b"\x00\x01\x02\x03" * 20, "an unknown kind"),
        (wav(), "an audio/wav file"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "a plain text"),
    ],
)
def test_what_is_no_picture_is_named_in_plain_words(content: bytes, words: str) -> None:
    with pytest.raises(BadMedia, match=words):
        check_image(content)


@pytest.mark.parametrize("size", [(30_000, 30_000), (9_500, 9_500), (65_000, 1_000)])
def test_a_decompression_bomb_is_refused_before_it_is_decoded(size: tuple[int, int]) -> None:
    with pytest.raises(BadMedia, match="too large"):
        check_image(png_header(*size))


def test_a_picture_of_one_pixel_is_too_small() -> None:
    with pytest.raises(BadMedia, match="1x1, at least 16 pixels"):
        check_image(picture("PNG", 1, 1))
    assert check_image(picture("PNG", 1, 1), smallest_side=1).width == 1


def test_a_file_over_its_size_limit_is_refused() -> None:
    with pytest.raises(BadMedia, match="25 MB, at most 20 MB"):
        check_image(picture("PNG") + b"\0" * 25_000_000)


def test_a_whole_wav_passes_and_one_cut_off_does_not() -> None:
    content = wav()
    assert check_audio(content) == AudioFacts("audio/wav", 1.5, 24_000, 1)
    with pytest.raises(BadMedia, match="cut off"):
        check_audio(content[:-5_000])
    with pytest.raises(BadMedia, match="cut off"):
        check_audio(content[:30])


@pytest.mark.parametrize("size", [0xFFFF_FFFF, 0x7FFF_FFFF, 0x7FFF_FFDB, 0])
def test_a_streamed_wav_tells_its_true_length(size: int) -> None:
    content = bytearray(wav())
    content[4:8] = content[40:44] = struct.pack("<I", size)
    assert check_audio(bytes(content)).seconds == 1.5


def test_a_wav_without_sound_is_refused() -> None:
    with pytest.raises(BadMedia, match=r"holds no sound|cut off, damaged"):
        check_audio(wav(seconds=0))


def test_a_sound_longer_than_allowed_is_refused() -> None:
    with pytest.raises(BadMedia, match=r"more than the 1 s"):
        check_audio(wav(), longest_seconds=1)


@pytest.mark.parametrize("rate", [1, 4_000_000])
def test_a_wav_with_a_mad_rate_is_refused(rate: int) -> None:
    content = bytearray(wav())
    content[24:28] = struct.pack("<I", rate)
    with pytest.raises(BadMedia):
        check_audio(bytes(content))


@pytest.mark.parametrize(
    "content", [HTML, JSON, b"", b"#EXTM3U\nfile:///etc/passwd\n", b"ffconcat version 1.0\n"]
)
def test_what_is_no_sound_or_video_is_refused_by_its_first_bytes(content: bytes) -> None:
    with pytest.raises(BadMedia, match="not a sound"):
        check_audio(content)
    with pytest.raises(BadMedia, match="not a video"):
        check_video(content)


@pytest.mark.media
@pytest.mark.parametrize("name", SOUNDS)
def test_a_whole_sound_passes(encoded: Encode, name: str) -> None:
    facts = check_audio(encoded("tone", name, *SOUNDS[name]))
    assert facts.seconds == pytest.approx(2, abs=0.06)
    assert facts.channels == 1


@pytest.mark.media
@pytest.mark.parametrize("name", SOUNDS)
def test_a_sound_that_is_cut_off_is_found(encoded: Encode, name: str) -> None:
    content = encoded("tone", name, *SOUNDS[name])
    with pytest.raises(BadMedia, match="cut off"):
        check_audio(content[: len(content) * 6 // 10 + 1])


@pytest.mark.media
def test_an_mp3_without_a_length_header_is_not_judged_by_a_guess(encoded: Encode) -> None:
    content = encoded("tone", "bare.mp3", "-q:a", "5", "-write_xing", "0", "-id3v2_version", "0")
    assert check_audio(content).seconds == pytest.approx(2, abs=0.1)


@pytest.mark.media
def test_json_behind_an_mp3_signature_is_refused() -> None:
    with pytest.raises(BadMedia):
        check_audio(b"ID3\x04\x00\x00\x00\x00\x00\x00" + JSON)


@pytest.mark.media
@pytest.mark.parametrize("name", VIDEOS)
def test_a_whole_video_passes(encoded: Encode, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(encoded("both", name, *VIDEOS[name]))
    facts = check_video(path)
    assert (facts.width, facts.height, facts.frames) == (192, 108, 60)
    assert facts.seconds == pytest.approx(2, abs=0.04)


@pytest.mark.media
@pytest.mark.parametrize("name", VIDEOS)
@pytest.mark.parametrize("share", [0.1, 0.6, 0.93])
def test_a_video_that_is_cut_off_is_found(encoded: Encode, name: str, share: float) -> None:
    content = encoded("both", name, *VIDEOS[name])
    with pytest.raises(BadMedia):
        check_video(content[: int(len(content) * share)])


@pytest.mark.media
def test_a_video_with_a_hole_in_the_middle_is_found(encoded: Encode) -> None:
    content = bytearray(encoded("both", "front.mp4", *VIDEOS["front.mp4"]))
    middle = len(content) // 2
    content[middle : middle + 5_000] = b"\x5a" * 5_000
    with pytest.raises(BadMedia):
        check_video(bytes(content))


@pytest.mark.media
def test_a_video_longer_than_allowed_is_refused(encoded: Encode) -> None:
    with pytest.raises(BadMedia, match=r"more than the 1 s"):
        check_video(encoded("both", "front.mp4", *VIDEOS["front.mp4"]), longest_seconds=1)


@pytest.mark.media
def test_sound_alone_is_no_video(encoded: Encode) -> None:
    content = encoded("tone", "sound.mp4", "-c:a", "aac")
    with pytest.raises(BadMedia, match="holds no pictures"):
        check_video(content)


@pytest.mark.media
async def test_the_checks_can_be_awaited(encoded: Encode) -> None:
    video = await check_video_async(encoded("both", "front.mp4", *VIDEOS["front.mp4"]))
    assert video.frames == 60
    assert (await check_audio_async(wav())).seconds == 1.5
    assert (await check_image_async(picture("PNG"))).width == 320


@pytest.mark.media
def test_a_video_of_huge_pictures_is_refused_without_filling_memory(encoded: Encode) -> None:
    content = encoded("huge", "huge.mp4", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BadMedia, match="too large to decode"):
        check_video(content)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000, "kilobytes"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ac3.wav", ("-c:a", "ac3")),
        ("adpcm.wav", ("-c:a", "adpcm_ms")),
        ("mp3.wav", ("-c:a", "libmp3lame")),
        ("ac3.mka", ("-c:a", "ac3", "-f", "matroska")),
        ("mp2.mka", ("-c:a", "mp2", "-f", "matroska")),
    ],
)
def test_a_sound_that_needs_a_decoder_which_is_not_named_is_refused(
    encoded: Encode, name: str, options: tuple[str, ...]
) -> None:
    with pytest.raises(BadMedia, match="which no provider sends as"):
        check_audio(encoded("tone", name, *options))
