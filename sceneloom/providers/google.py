"""Clips by Google's Gemini Omni, over the Interactions API: a task API without a list.

Wire shapes: ai.google.dev/gemini-api/docs/interactions.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import httpx

from models.errors import ErrorCode, ProviderFailure
from models.job import Job
from models.ports import TaskReport
from models.work import ClipRequest
from sceneloom.providers import orders
from sceneloom.providers.tasks import Order, Stage, TaskApi, error_object, quoted
from sceneloom.providers.verdicts import Complaint, Sign, Verdicts, text_of


class Google(TaskApi):
    """A VideoProvider. A file of Google's needs our key, so the bytes are fetched here, from Google only."""

    verdicts: ClassVar[Verdicts] = Verdicts(
        read=error_object,
        signs=(
            Sign("(?i)safety|blocked|prohibited|content_polic", ErrorCode.MODERATION_REJECTED),
            Sign(
                "RESOURCE_EXHAUSTED", ErrorCode.PROVIDER_QUOTA_EXHAUSTED, message="(?i)quota|billing|credit"
            ),
            Sign("RESOURCE_EXHAUSTED", ErrorCode.PROVIDER_RATE_LIMITED),
            Sign("PERMISSION_DENIED|UNAUTHENTICATED", ErrorCode.PROVIDER_AUTH),
            Sign("", ErrorCode.PROVIDER_AUTH, message="(?i)api key not valid"),
            Sign("NOT_FOUND", ErrorCode.PROVIDER_MODEL_RETIRED),
            Sign("DEADLINE_EXCEEDED", ErrorCode.PROVIDER_TIMEOUT),
            Sign("INVALID_ARGUMENT|FAILED_PRECONDITION|invalid_request", ErrorCode.PROVIDER_BAD_REQUEST),
            Sign(
                "", ErrorCode.MODERATION_REJECTED, message="(?i)safety|responsible ai|prohibited|usage polic"
            ),
        ),
    )
    stages: ClassVar[Mapping[str, Stage | ErrorCode]] = {
        "queued": Stage.UNDER_WAY,
        "in_progress": Stage.UNDER_WAY,
        "idle": Stage.UNDER_WAY,
        "completed": Stage.SUCCEEDED,
        "failed": Stage.FAILED,
        "cancelled": ErrorCode.PROVIDER_CANCELLED,
        "incomplete": ErrorCode.OUTPUT_MISSING,
        "budget_exceeded": ErrorCode.PROVIDER_QUOTA_EXHAUSTED,
    }
    waiting = frozenset({"queued"})

    def order(self, job: Job, clip: ClipRequest, picture: str | None, callback: str | None) -> Order:
        """Order an interaction in the background, whose video comes as a file."""
        parts: list[dict[str, str]] = [{"type": "text", "text": clip.prompt}]
        if picture is not None:
            media_type, content = orders.data_in(picture)
            where = {"data": content} if content else {"uri": picture}
            parts.append({"type": "image", "mime_type": media_type or "image/png", **where})
        video = {
            "type": "video",
            "aspect_ratio": str(clip.aspect_ratio),
            "resolution": self._to.resolution,
            "duration": f"{orders.ordered_seconds(clip)}s",
            "delivery": "uri",
        }
        body = {
            "model": job.offer.model,
            "input": parts,
            "background": True,
            "store": True,
            "response_format": [video],
        }
        if callback is not None:
            body["webhook_config"] = {"uris": [callback]}
        return Order("/interactions", body)

    async def cancel(self, task_id: str) -> bool:
        """Take the interaction back if it still waits, and tell whether that is certain."""
        return await self._taken_back(task_id, "POST", f"{self.path(task_id)}/cancel")

    def task_id(self, body: Mapping[str, Any]) -> object:
        """Return the interaction's id."""
        return body.get("id")

    def path(self, task_id: str) -> str:
        """Return where the interaction is."""
        return f"/interactions/{quoted(task_id)}"

    def word(self, task: Mapping[str, Any]) -> object:
        """Return the status."""
        return task.get("status")

    async def finished(self, task: Mapping[str, Any]) -> TaskReport:
        """Report the video: the bytes themselves, or where Google sends us for them."""
        video = next(_videos(task), {})
        if video.get("data"):
            return _inline(text_of(video["data"]))
        uri = text_of(video.get("uri"))
        if not uri:
            return TaskReport(
                done=True, error_code=ErrorCode.OUTPUT_MISSING, detail="success without a video"
            )
        return await self._fetched(uri)

    def output(self, task: Mapping[str, Any]) -> object:
        """Return the address of the file."""
        return next(_videos(task), {}).get("uri")

    def complaint(self, task: Mapping[str, Any]) -> Complaint:
        """Return the interaction's error."""
        error = task.get("error")
        said = error if isinstance(error, dict) else {}
        names = f"{text_of(said.get('status'))} {text_of(said.get('code'))}".strip()
        return Complaint(names, text_of(said.get("message") or (error if isinstance(error, str) else "")))

    async def _fetched(self, uri: str) -> TaskReport:
        """Fetch the file at *uri* with our key. Raises `ProviderFailure`; then it is asked for again."""
        base = httpx.URL(self._to.url)
        url = httpx.URL(uri)
        if (url.scheme, url.host, url.port) != (base.scheme, base.host, base.port):
            return TaskReport(done=True, progress=1.0, output_url=uri)  # not Google's: no key for it
        path = uri.removeprefix(f"{base.scheme}://{base.netloc.decode()}")
        answer = await self._wire.ask("GET", path.removeprefix(base.path.rstrip("/")))
        location = orders.output_url(answer.headers.get("location"))
        if answer.is_success and answer.content:
            return TaskReport(done=True, progress=1.0, output=answer.content)
        if 300 <= answer.status < 400 and location:
            return TaskReport(done=True, progress=1.0, output_url=location)
        raise self._wire.unreadable(answer)


def _videos(task: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the videos of an interaction: in the steps of the model, or among its outputs."""
    steps = task.get("steps")
    parts = [
        part
        for step in (steps if isinstance(steps, list) else [])
        if isinstance(step, dict) and step.get("type") == "model_output"
        for part in (step.get("content") or [])
    ]
    outputs = task.get("outputs")
    for part in [*parts, *(outputs if isinstance(outputs, list) else [])]:
        if isinstance(part, dict) and part.get("type") == "video":
            yield part


def _inline(data: str) -> TaskReport:
    try:
        return TaskReport(done=True, progress=1.0, output=base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError) as error:
        raise ProviderFailure(ErrorCode.OUTPUT_MISSING, f"no video in base64: {error}") from error
