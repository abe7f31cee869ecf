"""Clips that need no network: a picture, drawn or given, under a moving camera."""

import asyncio
import io
import tempfile
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import imageio_ffmpeg

from models.errors import AssetMissing, ErrorCode, ProviderFailure
from models.job import Job
from models.ports import TaskReport, TextToImageProvider
from models.shapes import Size
from models.work import ClipRequest
from sceneloom.providers import camera
from sceneloom.providers.processes import leashed, run

_FRAMES_A_SECOND: Final = 30
_KEPT: Final = 8
"""Finished tasks that can still be polled: each holds its clip in memory."""


async def move(picture: bytes, size: Size, seconds: float, *, seed: int) -> bytes:
    """Return an H.264 MP4 of *size* and *seconds*, in which a camera moves over *picture* (PNG or JPEG).

    Raises `ProviderFailure`: `ASSET_FETCH_FAILED` where *picture* is none, `PROVIDER_UNAVAILABLE` where
    ffmpeg broke off.
    """
    await asyncio.to_thread(_check, picture)
    frames = max(1, round(seconds * _FRAMES_A_SECOND))
    with tempfile.TemporaryDirectory(prefix="sceneloom-clip-") as folder:
        clip = Path(folder, "clip.mp4")
        finished = await run(leashed(_command(size, frames, seed, clip)), picture)
        if finished.status:
            detail = f"ffmpeg ended with status {finished.status}: {finished.complaint[-300:]}"
            raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, detail)
        return await asyncio.to_thread(clip.read_bytes)


class _Task:
    """One clip in the making."""

    def __init__(self) -> None:
        self.progress = 0.0
        self.work: asyncio.Task[bytes] | None = None


class Motion:
    """A VideoProvider whose tasks live in this process: after a restart they are unknown.

    It makes *parallel* clips at a time. *fetch* returns the bytes of a first frame, by its URL.
    """

    def __init__(
        self, *, pictures: TextToImageProvider, fetch: Callable[[str], Awaitable[bytes]], parallel: int = 1
    ) -> None:
        self._pictures = pictures
        self._fetch = fetch
        self._gate = asyncio.Semaphore(parallel)
        self._tasks: dict[str, _Task] = {}

    async def clip(
        self, prompt: str, size: Size, seconds: float, *, seed: int, first_frame: bytes | None = None
    ) -> bytes:
        """Return an MP4 of *prompt*, or of *first_frame* where there is one. Raises `ProviderFailure`."""
        picture = first_frame or await self._pictures.generate(prompt, size, seed=seed)
        return await move(picture, size, seconds, seed=seed)

    async def submit(self, job: Job) -> str:
        """Begin the clip that *job* asks for. Raises `ProviderFailure` where it asks for something else."""
        if not isinstance(job.request, ClipRequest):
            raise ProviderFailure(ErrorCode.INVALID_REQUEST, f"not a clip: {job.request.kind}")
        task_id, task = f"clip-{uuid.uuid4().hex}", _Task()
        task.work = asyncio.create_task(self._make(job.request, task), name=task_id)
        self._tasks[task_id] = task
        self._forget_oldest()
        return task_id

    async def poll(self, task_id: str) -> TaskReport:
        """Tell how the task stands; one this process does not know is reported as `PROVIDER_UNAVAILABLE`."""
        task = self._tasks.get(task_id)
        if task is None or task.work is None:
            detail = f"{task_id} ended with the process that made it"
            return TaskReport(done=True, error_code=ErrorCode.PROVIDER_UNAVAILABLE, detail=detail)
        if not task.work.done():
            return TaskReport(progress=task.progress)
        if task.work.cancelled():
            return TaskReport(done=True, error_code=ErrorCode.PROVIDER_CANCELLED)
        if error := task.work.exception():
            code = (
                self.normalize_error(error)
                if isinstance(error, Exception)
                else ErrorCode.PROVIDER_UNAVAILABLE
            )
            return TaskReport(done=True, error_code=code, detail=str(error))
        return TaskReport(done=True, progress=1.0, output=task.work.result())

    async def cancel(self, task_id: str) -> None:
        """Stop the task, if it still runs."""
        if (task := self._tasks.get(task_id)) and task.work:
            task.work.cancel()

    def normalize_error(self, error: Exception) -> ErrorCode:
        """Name *error* in our words."""
        return error.code if isinstance(error, ProviderFailure) else ErrorCode.PROVIDER_UNAVAILABLE

    def cost_per_call(self) -> float:
        """Return 0.0 US dollars: this machine does the work."""
        return 0.0

    async def aclose(self) -> None:
        """Stop every task."""
        works = [task.work for task in self._tasks.values() if task.work]
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)
        self._tasks.clear()

    async def _make(self, request: ClipRequest, task: _Task) -> bytes:
        async with self._gate:
            picture = await self._picture(request, request.aspect_ratio.size)
            task.progress = 0.3
            return await move(picture, request.aspect_ratio.size, request.duration_seconds, seed=request.seed)

    async def _picture(self, request: ClipRequest, size: Size) -> bytes:
        if request.first_frame_url is None:
            return await self._pictures.generate(request.prompt, size, seed=request.seed)
        try:
            return await self._fetch(request.first_frame_url)
        except AssetMissing as error:
            raise ProviderFailure(ErrorCode.ASSET_FETCH_FAILED, str(error)) from error

    def _forget_oldest(self) -> None:
        finished = [task_id for task_id, task in self._tasks.items() if task.work and task.work.done()]
        for task_id in finished[: max(0, len(finished) - _KEPT)]:
            del self._tasks[task_id]


def _check(picture: bytes) -> None:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(picture), formats=("PNG", "JPEG", "WEBP")) as opened:
            opened.load()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ProviderFailure(
            ErrorCode.ASSET_FETCH_FAILED, f"the first frame is no picture: {error}"
        ) from error


def _command(size: Size, frames: int, seed: int, clip: Path) -> list[str]:
    """Decode and fit the picture once, then repeat it under the moving camera."""
    filters = (
        f"scale={size.width}:{size.height}:force_original_aspect_ratio=increase:flags=lanczos",
        f"crop={size.width}:{size.height}",
        "setsar=1",
        "format=yuv420p",
        "loop=loop=-1:size=1",
        f"setpts=N/({_FRAMES_A_SECOND}*TB)",
        camera.perspective(camera.choose(seed), frames),
    )
    return [
        imageio_ffmpeg.get_ffmpeg_exe(),
        *("-hide_banner", "-loglevel", "error", "-nostdin", "-threads", "1", "-filter_threads", "2"),
        *("-f", "image2pipe", "-framerate", str(_FRAMES_A_SECOND), "-i", "pipe:0"),
        *("-vf", ",".join(filters), "-frames:v", str(frames), "-r", str(_FRAMES_A_SECOND), "-an"),
        *("-c:v", "libx264", "-preset", "ultrafast", "-crf", "22", "-profile:v", "high", "-level", "4.1"),
        *("-threads", "1", "-g", "60", "-pix_fmt", "yuv420p", "-video_track_timescale", "15360"),
        *("-color_primaries", "bt709", "-color_trc", "bt709", "-colorspace", "bt709"),
        *("-movflags", "+faststart", "-map_metadata", "-1", "-fflags", "+bitexact", str(clip)),
    ]
