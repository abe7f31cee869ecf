"""Files that were made to exhaust, to mislead or to crash whoever decodes them."""

import asyncio
import io
import os
import resource
import signal
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import pytest
from PIL import Image

from models.errors import BadMedia, ProviderFailure
from models.shapes import Size
from sceneloom.assets import confined as confinement
from sceneloom.assets.checks import check_audio, check_image, check_video, check_video_async
from sceneloom.assets.confined import confined
from sceneloom.providers.media import fitted
from tests.assets.test_checks import png_header, wav

pytestmark = pytest.mark.media

MOST_MEMORY = 60_000
"""Kilobytes by which refusing a file may grow this process."""


def animation(kind: str, frames: int, side: int) -> bytes:
    pictures = [Image.new("RGB", (side, side), (number, 0, 0)) for number in (50, 200)]
    out = io.BytesIO()
    pictures[0].save(
        out, kind, save_all=True, append_images=[pictures[n % 2] for n in range(1, frames)], duration=20
    )
    return out.getvalue()


def zip_bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("clip.mp4", b"\0" * 20_000_000)
    return out.getvalue()


def text_bomb() -> bytes:
    """Make a small PNG whose comment unpacks to 200 MB."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 0, 0, 0, 0))
    comment = chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"\0" * 200_000_000, 9))
    pixels = chunk(b"IDAT", zlib.compress(b"\0" * 65 * 64))
    return b"\x89PNG\r\n\x1a\n" + header + comment + pixels + chunk(b"IEND", b"")


SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>'
PICTURES: dict[str, tuple[Callable[[], bytes], str]] = {
    "50 000 x 50 000": (lambda: png_header(50_000, 50_000), "too large"),
    "1 x 2 000 000 000": (lambda: png_header(1, 2_000_000_000), "too (large|small)"),
    "SVG": (lambda: SVG, "not a picture"),
    "SVG with a declaration": (lambda: b'<?xml version="1.0"?>' + SVG, "not a picture"),
    "zip bomb": (zip_bomb, "not a picture"),
    "PNG whose comment is a bomb": (text_bomb, "damaged"),
    "GIF of a size that it does not fill": (
        lambda: b"GIF89a" + struct.pack("<HHBBB", 65_535, 65_535, 0, 0, 0) + b";",
        "too large|damaged",
    ),
    "PostScript": (lambda: b"%!PS-Adobe-3.0\n(/etc/passwd) (r) file", "not a picture"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_that_would_exhaust_or_mislead_is_refused_at_once(name: str) -> None:
    make, words = PICTURES[name]
    content = make()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BadMedia, match=words):
        check_image(content)
    with pytest.raises(ProviderFailure):
        fitted(content, Size(320, 256))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_of_an_animation_only_the_first_picture_is_decoded(kind: str) -> None:
    content = animation(kind, 150, 400)
    before = resource.getrusage(resource.RUSAGE_SELF)
    assert check_image(content).width == 400
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_maxrss - before.ru_maxrss < MOST_MEMORY
    assert after.ru_utime - before.ru_utime < 5.0


def test_a_provider_s_picture_is_not_scaled_down_from_any_size() -> None:
    huge = io.BytesIO()
    Image.new("L", (9_000, 9_000)).save(huge, "PNG")
    with pytest.raises(ProviderFailure, match="9000x9000 is too large"):
        fitted(huge.getvalue(), Size(320, 256))


# -- playlists and scripts that a demuxer would follow

SECRET = "canary-file-content"
PLAYLISTS = {
    "m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile://{file}\n#EXT-X-ENDLIST\n",
    "m3u8 to the network": "#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:{port}/x.ts\n#EXT-X-ENDLIST\n",
    "concat": "ffconcat version 1.0\nfile 'file:{file}'\n",
    "concat protocol": "ffconcat version 1.0\nfile 'concat:{file}|{file}'\n",
    "DASH": '<?xml version="1.0"?><MPD><BaseURL>http://127.0.0.1:{port}/</BaseURL></MPD>',
    "SDP": "v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=video {port} RTP/AVP 96\n",
    "xspf": '<playlist version="1"><track><location>file://{file}</location></track></playlist>',
}
HEADS = {"mp4": b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom", "webm": b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01"}


@pytest.mark.parametrize("head", ["", *HEADS])
@pytest.mark.parametrize("name", PLAYLISTS)
async def test_a_playlist_that_passes_for_a_video_reads_no_file_and_calls_nobody(
    name: str, head: str, tmp_path: Path
) -> None:
    called: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.append(b"somebody")
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        file = tmp_path / "secret.ts"
        file.write_text(SECRET * 100)
        text = PLAYLISTS[name].format(file=file, port=port).encode()
        content = HEADS.get(head, b"") + text
        with pytest.raises(BadMedia) as refused:
            await asyncio.to_thread(check_video, content)
        with pytest.raises(BadMedia):
            await asyncio.to_thread(check_audio, content)
        assert SECRET not in str(refused.value)
        assert called == []
    finally:
        server.close()
        await server.wait_closed()


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A sound MP4 of two seconds, and of the largest pictures that are allowed."""
    return encoded(tmp_path_factory.mktemp("clips") / "clip.mp4", seconds=2)


@pytest.fixture(scope="module")
def long_clip(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The same, and long enough to be caught at it."""
    return encoded(tmp_path_factory.mktemp("clips") / "long.mp4", seconds=8)


def encoded(path: Path, *, seconds: int) -> bytes:
    source = ["-f", "lavfi", "-i", f"testsrc2=size=4096x2304:rate=5:duration={seconds}"]
    encoder = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"]
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-loglevel", "error", "-y", *source, *encoder, str(path)]
    subprocess.run(command, check=True)
    return path.read_bytes()


def patched(content: bytes, box: bytes, at: int, value: int) -> bytes:
    """Write the 32-bit *value* at byte *at* of the first *box*."""
    place = content.index(box) + 4 + at
    return content[:place] + struct.pack(">I", value) + content[place + 4 :]


@pytest.mark.parametrize(
    ("box", "at", "value"),
    [
        (b"mdhd", 16, 100_000 * 10_240),  # its length in units of its time scale
        (b"stts", 4, 0xFFFF_FFFF),  # how many entries follow
        (b"stts", 8, 0x7FFF_FFFF),  # how many pictures have the length that follows
        (b"stsz", 8, 0xFFFF_FFFF),  # how many pictures there are
        (b"stco", 4, 0xFFFF_FFFF),
        (b"avc1", 24, 20_000 << 16 | 20_000),  # width and height
    ],
)
async def test_a_video_whose_header_lies_is_refused_or_read_within_its_limits(
    clip: bytes, box: bytes, at: int, value: int
) -> None:
    try:
        found = await check_video_async(patched(clip, box, at, value))
    except BadMedia:
        return
    assert found.seconds < 900
    assert (found.width, found.height) == (4096, 2304)


async def test_a_decoder_that_needs_too_much_memory_fails_alone(clip: bytes) -> None:
    assert (await check_video_async(clip)).frames == 10
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BadMedia):  # in whose words depends on where the memory ran out
        await confined("check_video", clip, {"longest_seconds": 900.0}, memory=200_000_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY


async def test_a_decoder_that_never_ends_is_ended(long_clip: bytes) -> None:
    with pytest.raises(BadMedia, match="takes more than 1 s to decode"):
        await confined("check_video", long_clip, {"longest_seconds": 900.0}, seconds=1)


@pytest.mark.parametrize(("code", "children"), [(-signal.SIGKILL, 3), (1, 3), (-signal.SIGSEGV, 1)])
async def test_only_a_decoder_that_the_file_has_broken_is_not_tried_again(
    clip: bytes, monkeypatch: pytest.MonkeyPatch, code: int, children: int
) -> None:
    ends = [(code, b"")] * 2
    started = 0
    decode = confinement._child

    async def child(*args: Any, **options: Any) -> tuple[int, bytes]:
        nonlocal started
        started += 1
        return ends.pop() if ends else await decode(*args, **options)

    monkeypatch.setattr(confinement, "_child", child)

    if children == 1:
        with pytest.raises(BadMedia, match="broke its decoder"):
            await check_video_async(clip)
    else:
        assert (await check_video_async(clip)).frames == 10
    assert started == children


def children_of(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_cancelling_ends_the_decoder(clip: bytes) -> None:
    before = set(children_of(os.getpid()))
    checking = asyncio.ensure_future(check_video_async(clip))
    while not set(children_of(os.getpid())) - before:  # noqa: ASYNC110 -- a process makes no event
        await asyncio.sleep(0.01)
    checking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await checking
    assert set(children_of(os.getpid())) <= before


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its starter's death")
def test_a_decoder_dies_with_a_worker_that_is_killed(long_clip: bytes, tmp_path: Path) -> None:
    file = tmp_path / "clip.mp4"
    file.write_bytes(long_clip)
    code = (
        "import asyncio, pathlib, sys; from sceneloom.assets.checks import check_video_async\n"
        "asyncio.run(check_video_async(pathlib.Path(sys.argv[1])))"
    )
    worker = subprocess.Popen([sys.executable, "-c", code, str(file)])
    deadline = time.monotonic() + 60
    while not (decoders := [each for each in children_of(worker.pid) if has_loaded_decoders(each)]):
        assert worker.poll() is None
        assert time.monotonic() < deadline
    decoder = decoders[0]
    os.kill(decoder, signal.SIGSTOP)  # so that it does not end by itself
    worker.kill()
    worker.wait()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{decoder}").exists() and state_of(decoder) != "Z":
        assert time.monotonic() < deadline


def has_loaded_decoders(pid: int) -> bool:
    try:
        is_child = b"confined" in Path(f"/proc/{pid}/cmdline").read_bytes()  # and not the worker's fork yet
        return is_child and "libavcodec" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_a_sound_of_an_exotic_codec_is_refused_without_a_decoder() -> None:
    content = bytearray(wav())
    content[20:22] = struct.pack("<H", 0x0161)  # WMA
    with pytest.raises(BadMedia):
        check_audio(bytes(content))


def test_a_video_without_an_end_is_not_waited_for(clip: bytes) -> None:
    with pytest.raises(BadMedia):
        check_video(clip[: len(clip) // 2])
