"""Clips by Runway: a task API without a list. Wire shapes: docs.dev.runwayml.com/api, codes: /errors."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final

from models.errors import ErrorCode
from models.job import Job
from models.shapes import AspectRatio
from models.work import ClipRequest
from sceneloom.providers import orders
from sceneloom.providers.tasks import Order, Stage, TaskApi, quoted
from sceneloom.providers.verdicts import Answer, Complaint, Sign, Verdicts, text_of

_RATIOS: Final[Mapping[str, Mapping[AspectRatio, str]]] = MappingProxyType(
    {
        "720p": MappingProxyType(
            {
                AspectRatio.LANDSCAPE: "1280:720",
                AspectRatio.PORTRAIT: "720:1280",
                AspectRatio.SQUARE: "960:960",
            }
        ),
        "1080p": MappingProxyType({AspectRatio.LANDSCAPE: "1920:1080", AspectRatio.PORTRAIT: "1080:1920"}),
    }
)


def _complaint(answer: Answer) -> Complaint:
    body = answer.json() or {}
    return Complaint(text_of(body.get("failureCode")), text_of(body.get("error") or body.get("failure")))


class Runway(TaskApi):
    """A VideoProvider. A clip from words and one from a first frame are two routes of the same shape."""

    verdicts: ClassVar[Verdicts] = Verdicts(
        read=_complaint,
        signs=(
            Sign(r"^SAFETY\.|PREPROCESSING\.SAFETY", ErrorCode.MODERATION_REJECTED),
            Sign(r"^ASSET\.", ErrorCode.ASSET_FETCH_FAILED),
            Sign(r"^(INTERNAL|THIRD_PARTY|INPUT_PREPROCESSING\.INTERNAL)", ErrorCode.PROVIDER_UNAVAILABLE),
            Sign("", ErrorCode.ASSET_FETCH_FAILED, message="(?i)(failed to fetch|while fetching) asset"),
            Sign("", ErrorCode.PROVIDER_QUOTA_EXHAUSTED, message="(?i)enough credits"),
        ),
    )
    stages: ClassVar[Mapping[str, Stage | ErrorCode]] = {
        "PENDING": Stage.UNDER_WAY,
        "THROTTLED": Stage.UNDER_WAY,
        "RUNNING": Stage.UNDER_WAY,
        "SUCCEEDED": Stage.SUCCEEDED,
        "FAILED": Stage.FAILED,
        "CANCELLED": ErrorCode.PROVIDER_CANCELLED,
    }
    waiting = frozenset({"PENDING", "THROTTLED"})

    def order(self, job: Job, clip: ClipRequest, picture: str | None, callback: str | None) -> Order:
        """Order text_to_video, or image_to_video; Runway calls nobody back."""
        del callback
        ratios = _RATIOS.get(self._to.resolution, _RATIOS["720p"])
        body = {
            "model": job.offer.model,
            "promptText": clip.prompt,
            "ratio": ratios.get(clip.aspect_ratio, str(clip.aspect_ratio)),
            "duration": orders.ordered_seconds(clip),
            "seed": clip.seed,
        }
        if picture is None:
            return Order("/v1/text_to_video", body)
        return Order("/v1/image_to_video", {**body, "promptImage": picture})

    def task_id(self, body: Mapping[str, Any]) -> object:
        """Return the task's id."""
        return body.get("id")

    def path(self, task_id: str) -> str:
        """Return where the task is."""
        return f"/v1/tasks/{quoted(task_id)}"

    def word(self, task: Mapping[str, Any]) -> object:
        """Return the status."""
        return task.get("status")

    def progress(self, task: Mapping[str, Any]) -> float | None:
        """Return the share, which only a running task tells."""
        share = task.get("progress")
        return float(share) if isinstance(share, int | float) and 0 <= share <= 1 else None

    def output(self, task: Mapping[str, Any]) -> object:
        """Return the first of the outputs."""
        outputs = task.get("output")
        return outputs[0] if isinstance(outputs, list) and outputs else None

    def complaint(self, task: Mapping[str, Any]) -> Complaint:
        """Return the failure's code and words."""
        return Complaint(text_of(task.get("failureCode")), text_of(task.get("failure")))

    async def cancel(self, task_id: str) -> bool:
        """Take the task back if it still waits, and tell whether that is certain."""
        path = self.path(task_id)
        return await self._taken_back(task_id, "DELETE", path)
