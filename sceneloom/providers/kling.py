"""Clips by Kling: a task API that takes our own name for a task, and refuses the same name twice.

Wire shapes: app.klingai.com/global/dev/document-api. It answers in an envelope `{code, message, data}`.
"""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final

from models.errors import ErrorCode
from models.job import Job
from models.ports import Absent, Adopted, Reconciled
from models.work import ClipRequest
from sceneloom.providers import orders
from sceneloom.providers.tasks import Order, Stage, TaskApi, quoted
from sceneloom.providers.verdicts import Answer, Complaint, Sign, Verdicts, text_of

_WORDS: Final = "text2video"
_PICTURE: Final = "image2video"
_NO_SUCH_TASK: Final = frozenset({"1203"})


def _complaint(answer: Answer) -> Complaint:
    body = answer.json() or {}
    return Complaint(text_of(body.get("code")), text_of(body.get("message")))


class Kling(TaskApi):
    """A VideoProvider. Its task ids are `text2video/ID` and `image2video/ID`: each kind has its own route."""

    verdicts: ClassVar[Verdicts] = Verdicts(
        read=_complaint,
        signs=(
            Sign("^1301$", ErrorCode.MODERATION_REJECTED),
            Sign("^110[12]$", ErrorCode.PROVIDER_QUOTA_EXHAUSTED),
            Sign("^(100[0-4]|1100|1103|1304)$", ErrorCode.PROVIDER_AUTH),
            Sign("^130[23]$", ErrorCode.PROVIDER_RATE_LIMITED),
            Sign("^(120[0-3]|1300)$", ErrorCode.PROVIDER_BAD_REQUEST),
            Sign("^5002$", ErrorCode.PROVIDER_TIMEOUT),
            Sign("^500[01]$", ErrorCode.PROVIDER_UNAVAILABLE),
            Sign("", ErrorCode.MODERATION_REJECTED, message="(?i)risk control|sensitive|content security"),
        ),
    )
    stages: ClassVar[Mapping[str, Stage | ErrorCode]] = {
        "submitted": Stage.UNDER_WAY,
        "processing": Stage.UNDER_WAY,
        "succeed": Stage.SUCCEEDED,
        "failed": Stage.FAILED,
    }

    def order(self, job: Job, clip: ClipRequest, picture: str | None, callback: str | None) -> Order:
        """Order text2video, or image2video, whose ratio is that of the picture; it takes bare base64."""
        body: dict[str, Any] = {
            "model_name": job.offer.model,
            "prompt": clip.prompt,
            "mode": self._to.resolution,
            "duration": str(orders.ordered_seconds(clip)),
            "sound": "off",
            "external_task_id": orders.safety_identifier(job),
        }
        if callback is not None:
            body["callback_url"] = callback
        if picture is None:
            return Order(f"/v1/videos/{_WORDS}", {**body, "aspect_ratio": str(clip.aspect_ratio)})
        _, content = orders.data_in(picture)
        return Order(f"/v1/videos/{_PICTURE}", {**body, "image": content or picture})

    async def submit(self, job: Job) -> str:
        """Order the clip and return the task's id. Raises `ProviderFailure` or `OutcomeUnknown`."""
        return f"{_route(job)}/{await super().submit(job)}"

    async def candidates(self, job: Job, *, taken: Collection[str] = ()) -> Reconciled:
        """Ask for the task by the name that we gave it. Raises `ProviderFailure` where nobody answers."""
        del taken  # the name is that of one call of one job
        path = f"/v1/videos/{_route(job)}/{quoted(orders.safety_identifier(job))}"
        answer = await self._wire.ask("GET", path)
        body = answer.json() or {}
        if answer.is_success and body.get("code") == 0:
            task_id = self.task_id(body)
            if isinstance(task_id, str) and task_id:
                return Adopted(f"{_route(job)}/{task_id}", certain=True)
        if str(body.get("code")) in _NO_SUCH_TASK:
            return Absent()
        raise self._wire.unreadable(answer)

    def task_id(self, body: Mapping[str, Any]) -> object:
        """Return the task's id."""
        return self.task_in(body).get("task_id") if body.get("code") == 0 else None

    def refuses(self, body: Mapping[str, Any]) -> bool:
        """Tell whether the envelope holds a code of the client's fault."""
        code = body.get("code")
        return isinstance(code, int) and 1000 <= code < 2000

    def path(self, task_id: str) -> str:
        """Return where the task is."""
        route, _, own = task_id.partition("/")
        return f"/v1/videos/{quoted(route)}/{quoted(own)}"

    def task_in(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what the envelope holds."""
        data = body.get("data")
        return data if isinstance(data, dict) else {}

    def word(self, task: Mapping[str, Any]) -> object:
        """Return the status."""
        return task.get("task_status")

    def output(self, task: Mapping[str, Any]) -> object:
        """Return the URL of the first video."""
        result = task.get("task_result")
        videos = result.get("videos") if isinstance(result, dict) else None
        first = videos[0] if isinstance(videos, list) and videos else None
        return first.get("url") if isinstance(first, dict) else None

    def complaint(self, task: Mapping[str, Any]) -> Complaint:
        """Return the words; Kling has no code for a failed task."""
        return Complaint(message=text_of(task.get("task_status_msg")))


def _route(job: Job) -> str:
    return _WORDS if orders.clip_of(job).first_frame_url is None else _PICTURE
