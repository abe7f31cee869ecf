"""The makers: each asks its provider, checks what came back, stores it, and says where it is."""

import asyncio
import hashlib
import tempfile
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Final, TypeVar

import orjson
import structlog
from pydantic import TypeAdapter

from models.errors import AssetMissing, BadMedia, ErrorCode, ProviderFailure
from models.job import Job
from models.ports import (
    AssetStore,
    CallsBack,
    Reconciled,
    Reconciler,
    SpeechToTextProvider,
    Stopper,
    TaskReport,
    TextToImageProvider,
    TextToSpeechProvider,
    VideoProvider,
    Word,
)
from models.shapes import Size
from models.work import ClipRequest, ImageRequest, Output, RenderedScene, RenderRequest, SpeechRequest
from sceneloom.assets.checks import check_audio_async, check_image_async, check_video_async
from sceneloom.assets.download import download
from sceneloom.assets.errors import AssetStoreUnavailable
from sceneloom.rendering.errors import RenderFailed
from sceneloom.rendering.film import Film, SceneMedia
from sceneloom.rendering.renderer import Renderer
from sceneloom.workshop.alignment import are_plausible, timed
from sceneloom.workshop.supplier import Progress

PICTURE_BYTES: Final = 20_000_000
DOWNLOAD_SECONDS: Final = 60.0
SMALLEST_SIDE: Final = 256
"""Pixels that each side of a user's own picture must have."""

STORE_WAITS: Final = (1.0, 5.0, 15.0, 30.0)
"""Seconds between the tries to store something."""

SHAPE_SLACK: Final = 0.05
"""By how much a clip's shape may differ: models round to multiples of 8 or 16 pixels."""

CLIP_BYTES: Final = 500_000_000
CLIP_DOWNLOAD_SECONDS: Final = 600.0
WORDS: Final[TypeAdapter[tuple[Word, ...]]] = TypeAdapter(tuple[Word, ...])

_log = structlog.get_logger(__name__)

R = TypeVar("R")
F = TypeVar("F")

Fetch = Callable[[str], Awaitable[bytes]]
"""Returns the bytes behind a URL that a user gave: one of our own assets, or one on the web."""


def fetch_from(assets: AssetStore, *, allow_private: bool) -> Fetch:
    """Return a `Fetch` that reads our own assets from *assets*, and everything else by download."""

    async def fetch(url: str) -> bytes:
        if assets.owns(url):
            return await assets.get(url)
        return await download(
            url, limit_bytes=PICTURE_BYTES, timeout=DOWNLOAD_SECONDS, allow_private=allow_private
        )

    return fetch


async def keep(assets: AssetStore, content: bytes, *, media_type: str) -> str:
    """Store *content*, which may have cost money, and return its URL; a store that is away is asked again."""
    for wait in STORE_WAITS:
        try:
            return await assets.put(content, media_type=media_type)
        except AssetStoreUnavailable as error:
            _log.warning("makers.store_unavailable", error=str(error), again_in=wait)
            await asyncio.sleep(wait)
    return await assets.put(content, media_type=media_type)


class PictureMaker:
    """Makes the picture of a scene, or fetches the user's own."""

    def __init__(self, *, provider: TextToImageProvider, assets: AssetStore, fetch: Fetch) -> None:
        self._provider = provider
        self._assets = assets
        self._fetch = fetch

    async def make(self, job: Job, *, progress: Progress) -> Output:  # noqa: ARG002 -- a picture comes all at once
        """Return the stored picture of *job*: of the size asked for, unless it is the user's own."""
        request = _expect(job, ImageRequest)
        wanted = Size(request.width, request.height)
        if request.picture_url is not None:
            try:
                own = await self._fetch(request.picture_url)
            except AssetMissing as missing:
                raise ProviderFailure(ErrorCode.ASSET_FETCH_FAILED, str(missing)) from missing
            return await self._own(own)
        made = await self._provider.generate(request.prompt, wanted, seed=request.seed)
        return await self._stored(made, exactly=wanted)

    async def _own(self, content: bytes) -> Output:
        """Store the user's own picture; one that is none, or too small, is the request's fault."""
        try:
            facts = await check_image_async(content, smallest_side=SMALLEST_SIDE)
        except BadMedia as bad:
            raise ProviderFailure(ErrorCode.INVALID_REQUEST, str(bad)) from bad
        url = await keep(self._assets, content, media_type=facts.media_type)
        return Output(url=url, media_type=facts.media_type)

    async def _stored(self, content: bytes, *, exactly: Size) -> Output:
        facts = await _checked(check_image_async(content))
        if (facts.width, facts.height) != exactly:
            raise ProviderFailure(
                ErrorCode.OUTPUT_MISSING,
                f"asked for {exactly.width}x{exactly.height}, got {facts.width}x{facts.height}",
            )
        url = await keep(self._assets, content, media_type=facts.media_type)
        return Output(url=url, media_type=facts.media_type)


class SpeechMaker:
    """Speaks the narration of a scene, and keeps the times of its words for the captions."""

    def __init__(
        self,
        *,
        provider: TextToSpeechProvider,
        assets: AssetStore,
        transcriber: SpeechToTextProvider | None = None,
    ) -> None:
        """Have *transcriber* time the words of speech that comes without."""
        self._provider = provider
        self._assets = assets
        self._transcriber = transcriber

    async def make(self, job: Job, *, progress: Progress) -> Output:  # noqa: ARG002 -- speech comes all at once
        """Return the stored narration of *job*, with its length and the times of its words."""
        request = _expect(job, SpeechRequest)
        speech = await self._provider.speak(request.text, language=request.language, voice=request.voice)
        facts = await _checked(check_audio_async(speech.audio))
        url = await keep(self._assets, speech.audio, media_type=facts.media_type)
        captions_url = None
        words = speech.words or await self._heard(job, request, speech.audio)
        if words and not are_plausible(words, facts.seconds):
            _log.warning(
                "makers.words_without_sense", job=job.job_id, words=len(words), seconds=facts.seconds
            )
            words = ()
        if words:
            file = orjson.dumps([word.model_dump() for word in words])
            captions_url = await keep(self._assets, file, media_type="application/json")
        return Output(url=url, media_type=facts.media_type, seconds=facts.seconds, captions_url=captions_url)

    async def _heard(self, job: Job, request: SpeechRequest, audio: bytes) -> tuple[Word, ...]:
        """Return the words of the request with the times of *audio*; none where that fails, once and for all.

        The speech is paid for and stored: to fail its job, or to buy either again, would cost more than
        captions are worth. So whatever goes wrong is told to the operator and to nobody else.
        """
        if self._transcriber is None:
            return ()
        try:
            heard = await self._transcriber.transcribe(audio, language=request.language)
            return timed(request.text, heard)
        except Exception as error:  # noqa: BLE001 -- also NotAllowed: a lost job must not forget its speech
            _log.warning("makers.not_transcribed", job=job.job_id, error=repr(error))
            return ()


class ClipMaker:
    """Has a clip made as a task of a video provider."""

    def __init__(
        self,
        *,
        provider: VideoProvider,
        assets: AssetStore,
        allow_private: bool = False,
        short_side: int | None = None,
    ) -> None:
        """Take clips from *provider*, whose shorter side shall have `short_side` pixels where known."""
        self._provider = provider
        self._assets = assets
        self._allow_private = allow_private
        self._short_side = short_side

    async def submit(self, job: Job) -> str:
        """Start the task and return the provider's id of it."""
        return await self._provider.submit(job)

    async def poll(self, job: Job) -> TaskReport:
        """Ask how the task of *job* stands."""
        return await self._provider.poll(job.provider_task_id or "")

    async def find(self, job: Job, *, taken: Collection[str]) -> Reconciled | None:
        """Look for the task of a submit without clear outcome in the provider's list, if it has one."""
        if not isinstance(self._provider, Reconciler) or job.intended_at is None:
            return None
        return await self._provider.candidates(job, taken=taken)

    async def confirm(self, job: Job, named: str) -> str | None:
        """Return the id of the task that a webhook calls *named*, after a poll that finds it."""
        if not isinstance(self._provider, CallsBack):
            return None
        task_id = self._provider.task_named(job, named)
        await self._provider.poll(task_id)
        return task_id

    async def take_back(self, job: Job) -> bool:
        """Have the provider stop the task of *job*, and tell whether it surely is not billed."""
        if not isinstance(self._provider, Stopper) or job.provider_task_id is None:
            return False
        return await self._provider.cancel(job.provider_task_id)

    async def collect(self, job: Job, report: TaskReport) -> Output:
        """Return the stored clip of *job*, fully decoded once and as long as asked for."""
        request = _expect(job, ClipRequest)
        content = report.output
        if content is None and report.output_url is not None:
            content = await download(
                report.output_url,
                limit_bytes=CLIP_BYTES,
                timeout=CLIP_DOWNLOAD_SECONDS,
                allow_private=self._allow_private,
            )
        if content is None:
            raise ProviderFailure(ErrorCode.OUTPUT_MISSING, "the task is done and names no output")
        facts = await _checked(check_video_async(content))
        if facts.seconds < 0.5 * request.duration_seconds:
            raise ProviderFailure(
                ErrorCode.OUTPUT_MISSING,
                f"asked for {request.duration_seconds:g} s, got {facts.seconds:.1f} s",
            )
        self._compare(job, request, Size(facts.width, facts.height))
        url = await keep(self._assets, content, media_type=facts.media_type)
        return Output(url=url, media_type=facts.media_type, seconds=facts.seconds)

    def _compare(self, job: Job, request: ClipRequest, got: Size) -> None:
        """Tell the operator of a clip that is smaller, or of another shape, than what was paid for."""
        wanted = request.aspect_ratio.size
        is_reshaped = abs(got.width * wanted.height / (got.height * wanted.width) - 1) > SHAPE_SLACK
        is_smaller = self._short_side is not None and min(got) < self._short_side
        if is_reshaped or is_smaller:
            asked = f"{request.aspect_ratio} {self._short_side or ''}".strip()
            _log.warning(
                "makers.not_as_ordered", job=job.job_id, asked=asked, got=f"{got.width}x{got.height}"
            )


class FilmMaker:
    """Renders the film of all scenes, and writes the delivery report that goes with it."""

    def __init__(self, *, renderer: Renderer, assets: AssetStore, workspace: Path) -> None:
        self._renderer = renderer
        self._assets = assets
        self._workspace = workspace

    async def make(self, job: Job, *, progress: Progress) -> Output:
        """Return the stored film of *job* and its report."""
        request = _expect(job, RenderRequest)
        self._workspace.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._workspace, prefix="render-") as folder:
            workspace = Path(folder)
            film = await self._film(request, workspace)
            target = workspace / "delivered.mp4"
            try:
                report = await self._renderer.render(
                    film, target, workspace=workspace / "parts", progress=progress
                )
            except RenderFailed as failed:
                raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, str(failed)) from failed
            except BadMedia as bad:
                raise ProviderFailure(ErrorCode.OUTPUT_MISSING, str(bad)) from bad
            url = await self._assets.put_file(target, media_type="video/mp4")
        report_url = await keep(
            self._assets, report.model_dump_json(indent=2).encode(), media_type="application/json"
        )
        return Output(url=url, media_type="video/mp4", seconds=report.video.seconds, report_url=report_url)

    async def _film(self, request: RenderRequest, workspace: Path) -> Film:
        scenes = [await self._scene(scene, workspace) for scene in request.scenes]
        return Film(scenes=tuple(scenes), size=request.aspect_ratio.size, title=request.title)

    async def _scene(self, scene: RenderedScene, workspace: Path) -> SceneMedia:
        words: tuple[Word, ...] = ()
        if scene.captions_url is not None:
            words = WORDS.validate_json(await self._assets.get(scene.captions_url))
        return SceneMedia(
            scene_id=scene.scene_id,
            picture=await self._local(scene.image_url, workspace) if scene.clip_url is None else None,
            clip=await self._local(scene.clip_url, workspace),
            narration=await self._local(scene.audio_url, workspace),
            words=words,
            minimum_seconds=scene.minimum_seconds,
        )

    async def _local(self, url: str | None, workspace: Path) -> Path | None:
        """Copy the asset at *url* into the workspace, once, under a name that holds no user text."""
        if url is None:
            return None
        path = workspace / (hashlib.sha256(url.encode()).hexdigest()[:32] + Path(url).suffix)
        if not path.exists():
            await self._assets.get_file(url, path)
        return path


def _expect(job: Job, kind: type[R]) -> R:
    if not isinstance(job.request, kind):
        raise TypeError(f"{job.job_id} asks for {job.kind}, not for {kind.__name__}")
    return job.request


async def _checked(check: Awaitable[F]) -> F:
    try:
        return await check
    except BadMedia as bad:
        raise ProviderFailure(ErrorCode.OUTPUT_MISSING, str(bad)) from bad
