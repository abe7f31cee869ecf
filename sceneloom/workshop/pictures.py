"""The makers of pictures: by one call, or as a task; either fetches a user's own picture, too."""

import asyncio
from typing import Final

from models.errors import AssetMissing, BadMedia, ErrorCode, ProviderFailure
from models.job import Job
from models.ports import AssetStore, TaskProvider, TaskReport, TextToImageProvider
from models.shapes import Size
from models.work import ImageRequest, Output
from sceneloom.assets.checks import check_image_async
from sceneloom.providers.media import fitted
from sceneloom.workshop.makers import (
    DOWNLOAD_SECONDS,
    PICTURE_BYTES,
    Fetch,
    checked,
    expected,
    keep,
    tell_of_mismatch,
)
from sceneloom.workshop.supplier import Progress
from sceneloom.workshop.tasks import Tasks, made_by

SMALLEST_SIDE: Final = 256
"""Pixels that each side of a user's own picture must have."""


class PictureMaker:
    """Makes the picture of a scene, or fetches the user's own."""

    def __init__(self, *, provider: TextToImageProvider, assets: AssetStore, fetch: Fetch) -> None:
        self._provider = provider
        self._assets = assets
        self._fetch = fetch

    async def make(self, job: Job, *, progress: Progress) -> Output:  # noqa: ARG002 -- a picture comes all at once
        """Return the stored picture of *job*: of the size asked for, unless it is the user's own."""
        request = expected(job, ImageRequest)
        if request.picture_url is not None:
            return await _own(request.picture_url, self._fetch, self._assets)
        wanted = Size(request.width, request.height)
        made = await self._provider.generate(request.prompt, wanted, seed=request.seed)
        return await _stored(made, self._assets, exactly=wanted)


class PictureTaskMaker(Tasks):
    """Has the picture of a scene made as a task; the user's own is fetched at once."""

    def __init__(
        self, *, provider: TaskProvider, assets: AssetStore, fetch: Fetch, allow_private: bool = False
    ) -> None:
        super().__init__(provider)
        self._assets = assets
        self._fetch = fetch
        self._allow_private = allow_private

    async def make(self, job: Job, *, progress: Progress) -> Output:  # noqa: ARG002 -- a picture comes all at once
        """Return the user's own picture, stored. Raises `TypeError` for one that is to be ordered."""
        request = expected(job, ImageRequest)
        if request.picture_url is None:
            raise TypeError(f"{job.job_id} is made as a task")
        return await _own(request.picture_url, self._fetch, self._assets)

    async def collect(self, job: Job, report: TaskReport) -> Output:
        """Return the stored picture of *job*, cut and scaled to the size that was asked for."""
        request = expected(job, ImageRequest)
        wanted = Size(request.width, request.height)
        content = await made_by(
            report, limit_bytes=PICTURE_BYTES, timeout=DOWNLOAD_SECONDS, allow_private=self._allow_private
        )
        facts = await checked(check_image_async(content))
        tell_of_mismatch(job, wanted, Size(facts.width, facts.height))
        return await _stored(await asyncio.to_thread(fitted, content, wanted), self._assets, exactly=wanted)


async def _own(url: str, fetch: Fetch, assets: AssetStore) -> Output:
    """Store the user's own picture; one that is none, or too small, is the request's fault."""
    try:
        content = await fetch(url)
    except AssetMissing as missing:
        raise ProviderFailure(ErrorCode.ASSET_FETCH_FAILED, str(missing)) from missing
    try:
        facts = await check_image_async(content, smallest_side=SMALLEST_SIDE)
    except BadMedia as bad:
        raise ProviderFailure(ErrorCode.INVALID_REQUEST, str(bad)) from bad
    url = await keep(assets, content, media_type=facts.media_type)
    return Output(url=url, media_type=facts.media_type)


async def _stored(content: bytes, assets: AssetStore, *, exactly: Size) -> Output:
    facts = await checked(check_image_async(content))
    if (facts.width, facts.height) != exactly:
        raise ProviderFailure(
            ErrorCode.OUTPUT_MISSING,
            f"asked for {exactly.width}x{exactly.height}, got {facts.width}x{facts.height}",
        )
    url = await keep(assets, content, media_type=facts.media_type)
    return Output(url=url, media_type=facts.media_type)
