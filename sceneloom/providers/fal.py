"""Clips by any text-to-video or image-to-video model on fal: a queue API with signed webhooks.

Wire shapes: fal.ai/docs/api-reference/inference-api, and .../platform-apis for the list.
"""

import re
from collections.abc import AsyncIterator, Collection, Mapping
from types import MappingProxyType
from typing import Any, Final, Self

import httpx
import structlog
from pydantic import SecretStr

from models.errors import ErrorCode, ProviderFailure
from models.job import Job
from models.ports import AssetStore, Clock, Reconciled, TaskReport
from models.work import ClipRequest
from sceneloom.providers import orders
from sceneloom.providers.connection import Connection
from sceneloom.providers.fal_words import VERDICTS, app_of, complaint, media_url
from sceneloom.providers.verdicts import Answer, Complaint, text_of
from sceneloom.providers.wire import Patience, Wire

BASE_URL: Final = "https://queue.fal.run"
PLATFORM_URL: Final = "https://api.fal.ai/v1"

_TASK_ID: Final = re.compile(r"(?:workflows/|comfy/)?[\w.-]+/[\w.-]+/requests/[\w-]+")
_UNDER_WAY: Final = frozenset({"IN_QUEUE", "IN_PROGRESS"})
_COMPLETED: Final = "COMPLETED"
_GONE: Final = frozenset({404, 410})
_PAGE: Final = 100
_MOST_PAGES: Final = 20

_log = structlog.get_logger(__name__)


class Fal:
    """A VideoProvider. The model is the path in the job's offer; *options* are further inputs of the model.

    Its task ids are the paths of the requests below the queue's address: `OWNER/APP/requests/ID`.
    """

    def __init__(
        self,
        *,
        client: httpx.AsyncClient,
        key: SecretStr,
        clock: Clock,
        assets: AssetStore,
        cost_usd: float,
        base_url: str = BASE_URL,
        platform_url: str = PLATFORM_URL,
        resolution: str = "1080p",
        callback: orders.Callback | None = None,
        options: Mapping[str, Any] = MappingProxyType({}),
        patience: Patience | None = None,
    ) -> None:
        self._queue, self._platform = (
            Wire(
                client,
                base_url=url,
                key=key,
                scheme="Key",
                verdicts=VERDICTS,
                clock=clock,
                patience=patience,
            )
            for url in (base_url, platform_url)
        )
        self._assets = assets
        self._cost_usd = cost_usd
        self._resolution = resolution
        self._callback = callback
        self._options = dict(options)

    @classmethod
    def reached_by(cls, to: Connection) -> Self:
        """Make the one that *to* reaches."""
        return cls(
            client=to.client,
            key=to.key,
            clock=to.clock,
            assets=to.assets,
            cost_usd=to.cost_usd,
            base_url=to.url,
            platform_url=to.list_url,
            resolution=to.resolution,
            callback=to.callback,
            patience=to.patience,
        )

    async def submit(self, job: Job) -> str:
        """Order what *job* asks for; return the task's id. Raises `ProviderFailure` or `OutcomeUnknown`."""
        body, model = self.wishes(job), _model_of(job)
        if (first_frame := _first_frame_of(job)) is not None:
            body["image_url"] = await orders.picture_url(first_frame, self._assets)
        callback = self._callback(job) if self._callback else None
        hidden = orders.secrets_in(callback)
        answer = await self._queue.buy(
            model,
            body,
            params={"fal_webhook": callback} if callback else None,
            reference=orders.reference(job),
            hidden=hidden,
        )
        request_id = orders.task_name((answer.json() or {}).get("request_id"))
        task_id = self.task_named(job, str(request_id))
        if request_id is None or not _TASK_ID.fullmatch(task_id):
            raise self._queue.unclear(answer, "a request id", hidden)
        return task_id

    async def poll(self, task_id: str) -> TaskReport:
        """Ask how the task stands. Raises `ProviderFailure`, which says nothing about the task."""
        path = _path(task_id)
        answer = await self._queue.ask("GET", f"{path}/status")
        status = answer.json() if answer.is_success else None
        if status is None:
            raise self._queue.unreadable(answer)
        word = text_of(status.get("status"))
        if word == _COMPLETED:
            if status.get("error") or status.get("error_type"):
                return self._failed(answer)
            return await self._result(path)
        if word not in _UNDER_WAY:
            _log.error("fal.unknown_status", task=task_id, status=self._queue.redacted(word))
        return TaskReport()

    async def cancel(self, task_id: str) -> bool:
        """Ask for the task's end, and tell whether that is certain: it still waited, and is not billed."""
        path = _path(task_id)
        waits = (await self._queue.read(f"{path}/status")).get("status") == "IN_QUEUE"
        answer = await self._queue.ask("PUT", f"{path}/cancel")
        return waits and answer.is_success

    async def candidates(self, job: Job, *, taken: Collection[str] = ()) -> Reconciled:
        """Find the task of a submit without clear outcome; tasks that are *taken* belong to other jobs.

        Raises `ProviderFailure` where the list cannot be read to its end: then nothing is known.
        """
        wishes, app = self.wishes(job), app_of(_model_of(job))
        alike = []
        async for item in self._listed(job):
            task_id = f"{app}/requests/{item.get('request_id')}"
            if task_id not in taken and _TASK_ID.fullmatch(task_id) and _is_like(item, wishes):
                alike.append(task_id)
        return orders.reconciled([], alike)

    def task_named(self, job: Job, name: str) -> str:
        """Return the id of the request that fal calls *name*."""
        return f"{app_of(_model_of(job))}/requests/{name}"

    def normalize_error(self, error: Exception) -> ErrorCode:
        """Name *error* in our words."""
        return orders.error_code(error)

    def cost_per_call(self) -> float:
        """Return the configured price of one call, in US dollars."""
        return self._cost_usd

    def _failed(self, answer: Answer) -> TaskReport:
        """Report what *answer*, a completed status with an error, or an error instead of a result, says."""
        said = complaint(answer)
        otherwise = VERDICTS.code(answer) if not answer.is_success else ErrorCode.PROVIDER_UNAVAILABLE
        code = VERDICTS.named(said, otherwise=otherwise)
        return TaskReport(done=True, error_code=code, detail=self._words(said))

    def _words(self, said: Complaint) -> str:
        return self._queue.redacted(f"{said.names}: {said.message}")

    async def _result(self, path: str) -> TaskReport:
        """Report the output. Only an error that names a reason is the task's; others concern our question."""
        answer = await self._queue.ask("GET", path)
        if answer.is_success and (body := answer.json()) is not None:
            url = media_url(body)
            if url is not None:
                return TaskReport(done=True, progress=1.0, output_url=url)
            return TaskReport(
                done=True, error_code=ErrorCode.OUTPUT_MISSING, detail="success without an output"
            )
        if answer.status in _GONE:
            detail = "the result is not kept any more"
            return TaskReport(done=True, error_code=ErrorCode.OUTPUT_MISSING, detail=detail)
        if not answer.is_success and (complaint(answer).names or answer.status == 422):
            return self._failed(answer)
        raise self._queue.unreadable(answer)

    def wishes(self, job: Job) -> dict[str, Any]:
        """Return the input of the model, apart from a first frame. Raises `ProviderFailure`."""
        clip = orders.clip_of(job)
        return {
            "prompt": clip.prompt,
            "aspect_ratio": str(clip.aspect_ratio),
            "duration": str(orders.whole_seconds(clip, job.offer.model)),
            "resolution": self._resolution,
            "seed": clip.seed,
            **self._options,
        }

    async def _listed(self, job: Job) -> AsyncIterator[dict[str, Any]]:
        start, end = orders.window(job)
        params = {
            "endpoint_id": _model_of(job),
            "start": start.isoformat(),
            "end": end.isoformat(),
            "limit": str(_PAGE),
        }
        for _ in range(_MOST_PAGES):
            page = await self._platform.read("models/requests/by-endpoint", params=params)
            items = page.get("items")
            if not isinstance(items, list):
                raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, "a list without items")
            for item in items:
                if isinstance(item, dict):
                    yield item
            if not page.get("has_more") or not page.get("next_cursor"):
                return
            params["cursor"] = str(page["next_cursor"])
        raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, "the list of requests is too long to search")


def _model_of(job: Job) -> str:
    """Return the path of the model; a first frame needs the sibling that takes one."""
    model = job.offer.model.strip("/")
    if _first_frame_of(job) is None:
        return model
    return re.sub(r"/text-to-video$", "/image-to-video", model)


def _first_frame_of(job: Job) -> str | None:
    return job.request.first_frame_url if isinstance(job.request, ClipRequest) else None


def _path(task_id: str) -> str:
    if not _TASK_ID.fullmatch(task_id) or ".." in task_id:
        raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, "this is no task id of fal")
    return task_id


def _is_like(item: Mapping[str, Any], wishes: Mapping[str, Any]) -> bool:
    """Tell whether *item* asked for *wishes*; one whose input is not kept may have."""
    asked = item.get("json_input")
    return not isinstance(asked, dict) or orders.agrees(asked, wishes)
