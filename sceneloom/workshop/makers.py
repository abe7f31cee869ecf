"""The makers: each asks its provider, checks what came back, stores it, and says where it is."""

import asyncio
import hashlib
import math
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

import orjson
import structlog
from pydantic import TypeAdapter

from models.errors import BadMedia, ErrorCode, ProviderFailure
from models.job import Job
from models.ports import (
    AssetStore,
    SpeechToTextProvider,
    TaskReport,
    TextToSpeechProvider,
    VideoProvider,
    Word,
)
from models.shapes import Size
from models.work import ClipRequest, Output, RenderedScene, RenderRequest, SpeechRequest
from sceneloom.assets.checks import check_audio_async, check_video_async
from sceneloom.assets.download import download
from sceneloom.assets.errors import AssetStoreUnavailable
from sceneloom.rendering.errors import RenderFailed
from sceneloom.rendering.film import Film, SceneMedia
from sceneloom.rendering.renderer import Renderer
from sceneloom.workshop.alignment import are_plausible, timed
from sceneloom.workshop.supplier import Progress
from sceneloom.workshop.tasks import Tasks, made_by

PICTURE_BYTES: Final = 20_000_000
DOWNLOAD_SECONDS: Final = 60.0
STORE_WAITS: Final = (1.0, 5.0, 15.0, 30.0)
"""Seconds between the tries to store something."""

SHAPE_SLACK: Final = 0.05
"""By how much an output's shape may differ: models round to multiples of 8 or 16 pixels."""

LENGTH_SLACK: Final = 0.25
"""Seconds by which a clip may be shorter than asked: models count in frames, some of them in groups."""

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
        request = expected(job, SpeechRequest)
        speech = await self._provider.speak(request.text, language=request.language, voice=request.voice)
        facts = await checked(check_audio_async(speech.audio))
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


class ClipMaker(Tasks):
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
        super().__init__(provider)
        self._assets = assets
        self._allow_private = allow_private
        self._short_side = short_side

    async def collect(self, job: Job, report: TaskReport) -> Output:
        """Return the stored clip of *job*, fully decoded once and as long as asked for."""
        request = expected(job, ClipRequest)
        content = await made_by(
            report, limit_bytes=CLIP_BYTES, timeout=CLIP_DOWNLOAD_SECONDS, allow_private=self._allow_private
        )
        facts = await checked(check_video_async(content))
        if facts.seconds < 0.5 * request.duration_seconds:
            raise ProviderFailure(
                ErrorCode.OUTPUT_MISSING,
                f"asked for {request.duration_seconds:g} s, got {facts.seconds:.1f} s",
            )
        tell_of_mismatch(
            job, request.aspect_ratio.size, Size(facts.width, facts.height), short_side=self._short_side
        )
        if facts.seconds < request.duration_seconds - LENGTH_SLACK:
            told = {"asked": f"{request.duration_seconds:g} s", "got": f"{facts.seconds:.2f} s"}
            _log.warning("makers.not_as_ordered", job=job.job_id, **told)
        url = await keep(self._assets, content, media_type=facts.media_type)
        return Output(url=url, media_type=facts.media_type, seconds=facts.seconds)


class FilmMaker:
    """Renders the film of all scenes, and writes the delivery report that goes with it."""

    def __init__(self, *, renderer: Renderer, assets: AssetStore, workspace: Path) -> None:
        self._renderer = renderer
        self._assets = assets
        self._workspace = workspace

    async def make(self, job: Job, *, progress: Progress) -> Output:
        """Return the stored film of *job* and its report."""
        request = expected(job, RenderRequest)
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


def tell_of_mismatch(job: Job, wanted: Size, got: Size, *, short_side: int | None = None) -> None:
    """Tell the operator of an output of another shape, or smaller, than what was paid for."""
    is_reshaped = abs(got.width * wanted.height / (got.height * wanted.width) - 1) > SHAPE_SLACK
    is_smaller = short_side is not None and min(got) < short_side
    if is_reshaped or is_smaller:
        unit = math.gcd(*wanted)
        asked = f"{wanted.width // unit}:{wanted.height // unit} {short_side or ''}".strip()
        _log.warning("makers.not_as_ordered", job=job.job_id, asked=asked, got=f"{got.width}x{got.height}")


def expected(job: Job, kind: type[R]) -> R:
    """Return the request of *job*, which is of *kind*. Raises `TypeError` where it is not."""
    if not isinstance(job.request, kind):
        raise TypeError(f"{job.job_id} asks for {job.kind}, not for {kind.__name__}")
    return job.request


async def checked(check: Awaitable[F]) -> F:
    """Return the facts of an output. Raises `ProviderFailure` (OUTPUT_MISSING) where it is not sound."""
    try:
        return await check
    except BadMedia as bad:
        raise ProviderFailure(ErrorCode.OUTPUT_MISSING, str(bad)) from bad
