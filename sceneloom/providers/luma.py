"""Clips by Luma's Agents API: a task API without a list. Wire shapes: agents.lumalabs.ai, SDK luma-agents."""

from collections.abc import Mapping
from typing import Any, ClassVar

from models.errors import ErrorCode
from models.job import Job
from models.work import ClipRequest
from sceneloom.providers import orders
from sceneloom.providers.tasks import Order, Stage, TaskApi, quoted
from sceneloom.providers.verdicts import Answer, Complaint, Sign, Verdicts, text_of


def _complaint(answer: Answer) -> Complaint:
    body = answer.json() or {}
    inner = body.get("error")
    error = inner if isinstance(inner, dict) else body
    names = " ".join(text_of(error.get(name)) for name in ("failure_code", "code", "type")).strip()
    return Complaint(names, text_of(error.get("message") or error.get("detail")))


class Luma(TaskApi):
    """A VideoProvider. The user goes along as a hash, as Luma asks."""

    verdicts: ClassVar[Verdicts] = Verdicts(
        read=_complaint,
        signs=(
            Sign("content_moderated", ErrorCode.MODERATION_REJECTED),
            Sign("budget_exhausted|insufficient_credits", ErrorCode.PROVIDER_QUOTA_EXHAUSTED),
            Sign("rate_limited", ErrorCode.PROVIDER_RATE_LIMITED),
            Sign("output_not_found", ErrorCode.OUTPUT_MISSING),
            Sign("corrupt_input", ErrorCode.ASSET_FETCH_FAILED),
            Sign("invalid_request|image_too_large|unsupported_format", ErrorCode.PROVIDER_BAD_REQUEST),
            Sign("generation_failed", ErrorCode.PROVIDER_UNAVAILABLE),
        ),
    )
    stages: ClassVar[Mapping[str, Stage | ErrorCode]] = {
        "queued": Stage.UNDER_WAY,
        "processing": Stage.UNDER_WAY,
        "completed": Stage.SUCCEEDED,
        "failed": Stage.FAILED,
    }

    def order(self, job: Job, clip: ClipRequest, picture: str | None, callback: str | None) -> Order:
        """Order a generation of type video; Luma calls nobody back."""
        del callback
        video: dict[str, Any] = {
            "duration": f"{orders.ordered_seconds(clip)}s",
            "resolution": self._to.resolution,
        }
        if picture is not None:
            video["start_frame"] = _frame(picture)
        body = {
            "type": "video",
            "model": job.offer.model,
            "prompt": clip.prompt,
            "aspect_ratio": str(clip.aspect_ratio),
            "user_id": orders.safety_identifier(job),
            "video": video,
        }
        return Order("/generations", body)

    def task_id(self, body: Mapping[str, Any]) -> object:
        """Return the generation's id."""
        return body.get("id")

    def path(self, task_id: str) -> str:
        """Return where the generation is."""
        return f"/generations/{quoted(task_id)}"

    def word(self, task: Mapping[str, Any]) -> object:
        """Return the state."""
        return task.get("state")

    def output(self, task: Mapping[str, Any]) -> object:
        """Return the URL of the first output."""
        outputs = task.get("output")
        first = outputs[0] if isinstance(outputs, list) and outputs else None
        return first.get("url") if isinstance(first, dict) else None

    def complaint(self, task: Mapping[str, Any]) -> Complaint:
        """Return the failure's code and words."""
        return Complaint(text_of(task.get("failure_code")), text_of(task.get("failure_reason")))


def _frame(picture: str) -> dict[str, str]:
    """Name a picture on the web, or send one of ours along."""
    media_type, content = orders.data_in(picture)
    return {"data": content, "media_type": media_type} if content else {"url": picture}
