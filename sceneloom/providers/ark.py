"""Clips by Seedance on Volcengine Ark or BytePlus ModelArk: a task API with a list and a callback.

Wire shapes: docs.byteplus.com/en/docs/ModelArk/1520757.
"""

import re
from collections.abc import AsyncIterator, Collection, Mapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

import httpx
import structlog
from pydantic import SecretStr

from models.errors import ErrorCode, ProviderFailure
from models.job import Job
from models.ports import AssetStore, Clock, Reconciled, TaskReport
from models.work import ClipRequest
from sceneloom.providers import orders
from sceneloom.providers.ark_words import FAILED, STOPPED, SUCCEEDED, UNDER_WAY, VERDICTS, complaint_in
from sceneloom.providers.wire import Patience, Wire

BASE_URL: Final = "https://ark.ap-southeast.bytepluses.com/api/v3"
PLAIN: Final[Mapping[str, Any]] = MappingProxyType({"watermark": False, "generate_audio": False})
"""Our films have their own sound; Seedance 1.0, which knows no `generate_audio`, needs options without it."""
TIERS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {"default": {}, "flex": {"service_tier": "flex", "execution_expires_after": 172_800}}
)
"""What is sent for each service tier; a task that is not done after so many seconds is over at Ark too."""

_TASKS: Final = "/contents/generations/tasks"
_PAGE: Final = 500
_MOST_PAGES: Final = 20
_CLOCKS_APART: Final = 7200.0
"""So many seconds may our clock be off when a task repeats our reference: else it would be ordered again."""
_FLAGS: Final = re.compile(
    r"(?i)(?:^|\s)--(?:rs|resolution|rt|ratio|dur|duration|fps|framespersecond|seed|cf|camerafixed|wm|watermark)\b"
    r"(?:[\s=]+(?:-?\d[\d:.]*[pk]?|true|false|adaptive)\b)?"
)
"""Parameters as older models read them out of the prompt."""

_log = structlog.get_logger(__name__)


class Ark:
    """A VideoProvider. The model is the one in the job's offer; *options* are more top-level parameters."""

    def __init__(
        self,
        *,
        client: httpx.AsyncClient,
        key: SecretStr,
        clock: Clock,
        assets: AssetStore,
        cost_usd: float,
        base_url: str = BASE_URL,
        resolution: str = "1080p",
        callback: orders.Callback | None = None,
        options: Mapping[str, Any] = PLAIN,
        patience: Patience | None = None,
    ) -> None:
        self._wire = Wire(
            client, base_url=base_url, key=key, verdicts=VERDICTS, clock=clock, patience=patience
        )
        self._assets = assets
        self._cost_usd = cost_usd
        self._resolution = resolution
        self._callback = callback
        self._options = dict(options)

    async def submit(self, job: Job) -> str:
        """Order the clip and return the task's id. Raises `ProviderFailure` or `OutcomeUnknown`."""
        clip = orders.clip_of(job)
        body = {
            "model": job.offer.model,
            "content": await self._content(clip),
            **self._terms(job),
            **self._options,
        }
        callback = self._callback(job) if self._callback else None
        if callback is not None:
            body["callback_url"] = callback
        hidden = orders.secrets_in(callback)
        answer = await self._wire.buy(_TASKS, body, reference=orders.reference(job), hidden=hidden)
        task_id = orders.task_name((answer.json() or {}).get("id"))
        if task_id is None:
            raise self._wire.unclear(answer, "a task id", hidden)
        return task_id

    async def poll(self, task_id: str) -> TaskReport:
        """Ask how the task stands. Raises `ProviderFailure`, which says nothing about the task."""
        task = await self._wire.read(_path(task_id))
        word = str(task.get("status", "")).lower()
        if word == SUCCEEDED:
            return self._finished(task)
        if word == FAILED:
            complaint = complaint_in(task.get("error"))
            code = VERDICTS.named(complaint, otherwise=ErrorCode.PROVIDER_UNAVAILABLE)
            detail = self._wire.redacted(f"{complaint.names}: {complaint.message}")
            return TaskReport(done=True, error_code=code, detail=detail)
        if word in STOPPED:
            return TaskReport(done=True, error_code=STOPPED[word], detail=f"the task is {word}")
        if word not in UNDER_WAY:
            _log.error("ark.unknown_status", task=task_id, status=self._wire.redacted(word))
        return TaskReport()

    async def cancel(self, task_id: str) -> bool:
        """Take the task back if it still waits, and tell whether that is certain: then it is not billed.

        A task that has begun cannot be stopped, and deleting a finished one would delete its output.
        """
        path = _path(task_id)
        status = (await self._wire.read(path)).get("status")
        if status == "queued":  # it may begin just now, so what counts is how it stands afterwards
            await self._wire.ask("DELETE", path)
            status = (await self._wire.read(path)).get("status")
        return status == "cancelled"

    async def candidates(self, job: Job, *, taken: Collection[str] = ()) -> Reconciled:
        """Find the task of a submit without clear outcome; tasks that are *taken* belong to other jobs.

        Raises `ProviderFailure` where the list cannot be read to its end: then nothing is known.
        """
        certain: list[str] = []
        alike: list[str] = []
        reference = orders.safety_identifier(job)
        terms = {name: term for name, term in self._terms(job).items() if term != "adaptive"}
        async for task in self._listed(job.offer.model):
            if task["id"] in taken:
                continue
            if task.get("safety_identifier") == reference:
                if _is_in_time(task, job, slack=_CLOCKS_APART):
                    certain.append(task["id"])
            elif _is_in_time(task, job) and orders.agrees(task, terms):
                alike.append(task["id"])
        return orders.reconciled(certain, alike)

    def task_named(self, job: Job, name: str) -> str:  # noqa: ARG002 -- a CallsBack; the name says it all
        """Return the id of the task: its callbacks call it by that."""
        return name

    def normalize_error(self, error: Exception) -> ErrorCode:
        """Name *error* in our words."""
        return orders.error_code(error)

    def cost_per_call(self) -> float:
        """Return the configured price of one clip, in US dollars."""
        return self._cost_usd

    def _finished(self, task: dict[str, Any]) -> TaskReport:
        content = task.get("content")
        url = orders.output_url(content.get("video_url")) if isinstance(content, dict) else None
        if url is None:
            return TaskReport(done=True, error_code=ErrorCode.OUTPUT_MISSING, detail="success without a URL")
        return TaskReport(done=True, progress=1.0, output_url=url)

    async def _content(self, clip: ClipRequest) -> list[dict[str, Any]]:
        content: list[dict[str, Any]] = [{"type": "text", "text": _FLAGS.sub("", clip.prompt).strip()}]
        if clip.first_frame_url is not None:
            url = await orders.picture_url(clip.first_frame_url, self._assets)
            content.append({"type": "image_url", "image_url": {"url": url}, "role": "first_frame"})
        return content

    def _terms(self, job: Job) -> dict[str, Any]:
        """Return what is ordered, as far as a task repeats it."""
        clip = orders.clip_of(job)
        follows_picture = clip.first_frame_url is not None and "seedance-2-5" in job.offer.model
        return {
            "resolution": self._resolution,
            "ratio": "adaptive" if follows_picture else str(clip.aspect_ratio),
            "duration": orders.whole_seconds(clip, job.offer.model),
            "seed": clip.seed,
            "safety_identifier": orders.safety_identifier(job),
        }

    async def _listed(self, model: str) -> AsyncIterator[dict[str, Any]]:
        for page in range(1, _MOST_PAGES + 1):
            params = {"page_num": str(page), "page_size": str(_PAGE), "filter.model": model}
            tasks = (await self._wire.read(_TASKS, params=params)).get("items")
            if not isinstance(tasks, list):
                raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, "a list without items")
            for task in tasks:
                if isinstance(task, dict) and isinstance(task.get("id"), str):
                    yield task
            if len(tasks) < _PAGE:
                return
        raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, "the list of tasks is too long to search")


def _path(task_id: str) -> str:
    return f"{_TASKS}/{quote(task_id, safe='')}"


def _is_in_time(task: Mapping[str, Any], job: Job, *, slack: float = 0.0) -> bool:
    """Tell whether *task* may be of the call of *job*, or was made at most *slack* seconds beside it."""
    created = task.get("created_at")
    first, last = (moment.timestamp() for moment in orders.window(job))
    return not isinstance(created, int | float) or first - slack <= created <= last + slack
