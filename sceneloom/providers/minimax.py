"""Clips by MiniMax (Hailuo), API v2: a task API with a list.

Wire shapes: platform.minimax.io/docs/api-reference, "Video V2".
"""

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from models.errors import ErrorCode
from models.job import Job
from models.ports import Reconciled
from models.work import ClipRequest
from sceneloom.providers import orders
from sceneloom.providers.tasks import Order, Stage, TaskApi, is_in_time, items_of, quoted
from sceneloom.providers.verdicts import Answer, Complaint, Sign, Verdicts, text_of

_QUERY: Final = "/v2/query/video_generation"
_PAGE: Final = 100
_CODE: Final = re.compile(r"\((\d{4})\)")


def _complaint(answer: Answer) -> Complaint:
    return _said((answer.json() or {}).get("error"))


def _said(error: object) -> Complaint:
    """Read an error object, whose number stands in its message: `… (1026)`."""
    if not isinstance(error, dict):
        return Complaint()
    message = text_of(error.get("message"))
    numbers = " ".join(_CODE.findall(message))
    return Complaint(f"{text_of(error.get('code'))} {numbers}".strip(), message)


class MiniMax(TaskApi):
    """A VideoProvider."""

    verdicts: ClassVar[Verdicts] = Verdicts(
        read=_complaint,
        signs=(
            Sign(r"\b102[67]\b", ErrorCode.MODERATION_REJECTED),
            Sign(r"\b1008\b", ErrorCode.PROVIDER_QUOTA_EXHAUSTED),
            Sign(r"\b1004\b", ErrorCode.PROVIDER_AUTH),
            Sign(r"\b(1002|1039|1041)\b", ErrorCode.PROVIDER_RATE_LIMITED),
            Sign(r"\b2013\b", ErrorCode.PROVIDER_BAD_REQUEST),
            Sign(r"\b1001\b", ErrorCode.PROVIDER_TIMEOUT),
            Sign(r"\b(1000|1024|1033)\b", ErrorCode.PROVIDER_UNAVAILABLE),
        ),
    )
    stages: ClassVar[Mapping[str, Stage | ErrorCode]] = {
        "queued": Stage.UNDER_WAY,
        "running": Stage.UNDER_WAY,
        "succeeded": Stage.SUCCEEDED,
        "failed": Stage.FAILED,
        "cancelled": ErrorCode.PROVIDER_CANCELLED,
        "expired": ErrorCode.PROVIDER_TIMEOUT,
    }
    waiting = frozenset({"queued"})

    def order(self, job: Job, clip: ClipRequest, picture: str | None, callback: str | None) -> Order:
        """Order a clip; a callback would need an answer to a challenge first, and is left out."""
        del callback
        content: list[dict[str, Any]] = [{"type": "text", "text": clip.prompt}]
        if picture is not None:
            content.append({"type": "image_url", "image_url": {"url": picture}, "role": "first_frame"})
        terms = {"aigc_watermark": False, **self._terms(job, clip)}
        return Order("/v2/video_generation", {"content": content, **terms})

    async def cancel(self, task_id: str) -> bool:
        """Take the task back if it still waits, and tell whether that is certain."""
        return await self._taken_back(task_id, "DELETE", f"/v2/video_generation/{quoted(task_id)}")

    async def candidates(self, job: Job, *, taken: Collection[str] = ()) -> Reconciled:
        """Find the task of a submit without clear outcome; tasks that are *taken* belong to other jobs.

        Raises `ProviderFailure` where the list cannot be read to its end: then nothing is known.
        """
        terms = self._terms(job, orders.clip_of(job))
        params = {"page_num": "1", "page_size": str(_PAGE), "filter.model": job.offer.model}
        alike: list[str] = []
        async for page in self._pages(_QUERY, params):
            tasks = items_of(page, "items")
            for task in tasks:
                task_id = task.get("task_id") or task.get("id")
                if isinstance(task_id, str) and task_id not in taken and _is_like(task, terms, job):
                    alike.append(task_id)
            if len(tasks) < _PAGE:
                break
            params["page_num"] = str(int(params["page_num"]) + 1)
        return orders.reconciled([], alike)

    def task_id(self, body: Mapping[str, Any]) -> object:
        """Return the task's id."""
        return body.get("task_id")

    def path(self, task_id: str) -> str:
        """Return where the task is."""
        return f"{_QUERY}/{quoted(task_id)}"

    def task_in(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the task, which may stand in an envelope."""
        task = body.get("task")
        return task if isinstance(task, dict) else body

    def word(self, task: Mapping[str, Any]) -> object:
        """Return the status."""
        return task.get("status")

    def output(self, task: Mapping[str, Any]) -> object:
        """Return the URL of the video."""
        content = task.get("content")
        return content.get("url") if isinstance(content, dict) else None

    def complaint(self, task: Mapping[str, Any]) -> Complaint:
        """Return the task's error."""
        return _said(task.get("error"))

    def _terms(self, job: Job, clip: ClipRequest) -> dict[str, Any]:
        """Return what is ordered, as far as a task repeats it."""
        return {
            "model": job.offer.model,
            "resolution": self._to.resolution,
            "duration": orders.ordered_seconds(clip),
            "ratio": str(clip.aspect_ratio) if clip.first_frame_url is None else "adaptive",
        }


def _is_like(task: Mapping[str, Any], terms: Mapping[str, Any], job: Job) -> bool:
    created = task.get("created_at")
    moment = datetime.fromtimestamp(created, UTC) if isinstance(created, int | float) else None
    asked = {name: value for name, value in terms.items() if value != "adaptive"}
    return is_in_time(moment, job) and orders.agrees(task, asked)
