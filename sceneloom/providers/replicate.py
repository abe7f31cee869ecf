"""Clips by any video model on Replicate: a task API with a list, and webhooks that follow the standard.

Wire shapes: replicate.com/docs/reference/http.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, ClassVar, Final

import httpx

from models.errors import ErrorCode
from models.job import Job
from models.ports import Reconciled, TaskReport
from models.work import ClipRequest
from sceneloom.providers import orders
from sceneloom.providers.tasks import Order, Stage, TaskApi, is_in_time, items_of, quoted
from sceneloom.providers.verdicts import Answer, Complaint, Sign, Verdicts, text_of

_PREDICTIONS: Final = "/predictions"
_HIDDEN: Final = "hidden"
"""What stands for the version of an official model."""


def _complaint(answer: Answer) -> Complaint:
    body = answer.json() or {}
    return Complaint(text_of(body.get("title")), text_of(body.get("detail")))


class Replicate(TaskApi):
    """A VideoProvider. The model is OWNER/NAME where it is official, else OWNER/NAME:VERSION, or VERSION."""

    verdicts: ClassVar[Verdicts] = Verdicts(
        read=_complaint,
        signs=(
            # A failed prediction has only words; these are unconfirmed.
            Sign(
                "", ErrorCode.MODERATION_REJECTED, message=r"(?i)flagged|sensitive|nsfw|\bE005\b|moderation"
            ),
            Sign("", ErrorCode.PROVIDER_QUOTA_EXHAUSTED, message="(?i)insufficient credit|spend limit"),
            Sign("(?i)not found", ErrorCode.PROVIDER_MODEL_RETIRED),
        ),
    )
    stages: ClassVar[Mapping[str, Stage | ErrorCode]] = {
        "starting": Stage.UNDER_WAY,
        "processing": Stage.UNDER_WAY,
        "succeeded": Stage.SUCCEEDED,
        "failed": Stage.FAILED,
        "canceled": ErrorCode.PROVIDER_CANCELLED,
        "aborted": ErrorCode.PROVIDER_TIMEOUT,
    }
    waiting = frozenset({"starting"})

    def order(self, job: Job, clip: ClipRequest, picture: str | None, callback: str | None) -> Order:
        """Order a prediction."""
        del clip
        first_frame = {} if picture is None else {"image": picture}
        return prediction(job.offer.model, self.wishes(job) | first_frame, callback)

    def wishes(self, job: Job) -> dict[str, Any]:
        """Return the input of the model, apart from a first frame. Raises `ProviderFailure`."""
        clip = orders.clip_of(job)
        return {
            "prompt": clip.prompt,
            "aspect_ratio": str(clip.aspect_ratio),
            "duration": orders.ordered_seconds(clip),
            "seed": clip.seed,
        }

    async def cancel(self, task_id: str) -> bool:
        """Take the prediction back if it has not begun, and tell whether that is certain."""
        return await self._taken_back(task_id, "POST", f"{self.path(task_id)}/cancel")

    async def candidates(self, job: Job, *, taken: Collection[str] = ()) -> Reconciled:
        """Find the prediction of a submit without clear outcome; those that are *taken* are of other jobs.

        Our own webhook address in it is certain. Raises `ProviderFailure` where the list cannot be read.
        """
        callback = self._to.callback(job) if self._to.callback else None
        wishes = self.wishes(job)
        start, end = orders.window(job)
        params = {"created_after": start.isoformat(), "created_before": end.isoformat()}
        certain: list[str] = []
        alike: list[str] = []
        async for page in self._pages(_PREDICTIONS, params):
            for item in items_of(page, "results"):
                task_id = text_of(item.get("id"))
                if task_id in {"", *taken}:
                    continue
                if callback is not None and item.get("webhook") == callback:
                    certain.append(task_id)
                elif _is_like(item, job, wishes):
                    alike.append(task_id)
            if not page.get("next"):
                break
            params["cursor"] = httpx.URL(text_of(page["next"])).params.get("cursor", "")
        return orders.reconciled(certain, alike)

    def task_named(self, job: Job, name: str) -> str:  # noqa: ARG002 -- a CallsBack; the name says it all
        """Return the id of the prediction: its callbacks call it by that."""
        return name

    def task_id(self, body: Mapping[str, Any]) -> object:
        """Return the prediction's id."""
        return body.get("id")

    def path(self, task_id: str) -> str:
        """Return where the prediction is."""
        return f"{_PREDICTIONS}/{quoted(task_id)}"

    def word(self, task: Mapping[str, Any]) -> object:
        """Return the status."""
        return task.get("status")

    async def finished(self, task: Mapping[str, Any]) -> TaskReport:
        """Report the output, unless Replicate has removed it already: it keeps one for an hour."""
        if task.get("data_removed"):
            return TaskReport(done=True, error_code=ErrorCode.OUTPUT_MISSING, detail="the output is removed")
        return await super().finished(task)

    def output(self, task: Mapping[str, Any]) -> object:
        """Return the output, or the first of a list."""
        output = task.get("output")
        return (output[0] if output else None) if isinstance(output, list) else output

    def complaint(self, task: Mapping[str, Any]) -> Complaint:
        """Return the words; a failed prediction has no code."""
        return Complaint(message=text_of(task.get("error")))


def prediction(model: str, wishes: Mapping[str, Any], callback: str | None) -> Order:
    """Order a prediction of *model*, by the route of official models or by that of versions."""
    body: dict[str, Any] = {"input": wishes}
    if callback is not None:
        body |= {"webhook": callback, "webhook_events_filter": ["completed"]}
    if "/" in model and ":" not in model:
        owner, _, name = model.partition("/")
        return Order(f"/models/{quoted(owner)}/{quoted(name)}{_PREDICTIONS}", body)
    return Order(_PREDICTIONS, {**body, "version": model.rpartition(":")[2]})


def _ran(model: str) -> dict[str, Any]:
    """Return what a prediction of *model* shows of it, as far as its name tells."""
    if "/" not in model:
        return {"version": model}
    name, _, version = model.partition(":")
    return {"model": name} | ({"version": version} if version else {})


def _is_like(item: Mapping[str, Any], job: Job, wishes: Mapping[str, Any]) -> bool:
    """Tell whether *item* asked for the same; one whose input is not kept any more may have."""
    try:
        created = datetime.fromisoformat(text_of(item.get("created_at")))
    except ValueError:
        created = None
    asked = item.get("input")
    shown = {name: item.get(name) for name in ("model", "version") if item.get(name) != _HIDDEN}
    same = not isinstance(asked, dict) or orders.agrees(asked, wishes)
    return same and orders.agrees(shown, _ran(job.offer.model)) and is_in_time(created, job)
