"""The queue API in the shapes of fal: submit, status, result, cancel, list, signed webhook."""

import math
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from aiohttp import web

from sceneloom.testing.fake_provider.answers import Answer
from sceneloom.testing.fake_provider.clocks import Time
from sceneloom.testing.fake_provider.desk import Desk
from sceneloom.testing.fake_provider.dialect import text_in
from sceneloom.testing.fake_provider.fal_orders import order_of
from sceneloom.testing.fake_provider.fal_problems import Trouble, trouble_named, trouble_of
from sceneloom.testing.fake_provider.media import MEDIA_TYPES
from sceneloom.testing.fake_provider.outputs import Outputs
from sceneloom.testing.fake_provider.signing import Signer
from sceneloom.testing.fake_provider.tasks import BadOrder, Order, Phase, Standing, Task
from sceneloom.testing.fake_provider.words import Family, Operation, Problem

LIST_PATH: Final = "/v1/models/requests/by-endpoint"
KEYS_PATH: Final = "/.well-known/jwks.json"
_REQUEST: Final = "/{owner}/{app}/requests/{id}"
_SUBMIT: Final = r"/{model:(?!_|v1/|api/)[^/]+/.+}"
_LARGEST_PAGE: Final = 100
_WORDS: Final = {Phase.QUEUED: "IN_QUEUE", Phase.RUNNING: "IN_PROGRESS"}


class Fal:
    """Speaks as fal does. COMPLETED includes failures: only the result, or `error`, tells."""

    family: ClassVar[Family] = Family.QUEUE
    scheme: ClassVar[str] = "Key"

    def __init__(self, desk: Desk, outputs: Outputs, clock: Time, signer: Signer) -> None:
        self._desk = desk
        self._outputs = outputs
        self._clock = clock
        self._signer = signer

    def routes(self) -> list[web.RouteDef]:
        """Return the paths that this family answers; the last one takes what nobody else took."""
        return [
            web.get(KEYS_PATH, self._keys),
            web.get(LIST_PATH, self._list, allow_head=False),
            web.get(_REQUEST + "/status", self._status, allow_head=False),
            web.get(_REQUEST, self._result, allow_head=False),
            web.put(_REQUEST + "/cancel", self._cancel),
            web.post(_SUBMIT, self._submit),
        ]

    async def _keys(self, _request: web.Request) -> web.Response:
        return web.json_response(self._signer.key_set())

    async def _submit(self, request: web.Request) -> web.StreamResponse:
        return await self._desk.take_order(request, self)

    async def _status(self, request: web.Request) -> web.StreamResponse:
        async def say(task: Task) -> Answer:
            status = self._progress(task, with_logs=request.query.get("logs") in {"1", "true"})
            return Answer.of(status, 200 if status["status"] == "COMPLETED" else 202)

        return await self._with_task(request, Operation.POLL, say)

    async def _result(self, request: web.Request) -> web.StreamResponse:
        return await self._with_task(request, Operation.RESULT, self._outcome)

    async def _cancel(self, request: web.Request) -> web.StreamResponse:
        async def say(task: Task) -> Answer:
            match task.standing(self._clock.elapsed()).phase:
                case Phase.QUEUED:
                    self._desk.cancel(task)
                case Phase.RUNNING:
                    pass  # fal asks the app to stop; this one goes on, and is paid for
                case _:
                    return Answer.of({"status": "ALREADY_COMPLETED"}, 400)
            return Answer.of({"status": "CANCELLATION_REQUESTED"}, 202)

        return await self._with_task(request, Operation.CANCEL, say)

    async def _with_task(
        self, request: web.Request, operation: Operation, say: Callable[[Task], Awaitable[Answer]]
    ) -> web.StreamResponse:
        async def answer() -> Answer:
            task = self._desk.task(request.match_info["id"], self.family)
            app = "{owner}/{app}".format(**request.match_info)
            if task is None or _app_of(task) != app:
                return self.problem(Problem.NOT_FOUND)
            return await say(task)

        return await self._desk.take_question(request, self, operation, answer)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        async def answer() -> Answer:
            return self._page(request)

        return await self._desk.take_question(request, self, Operation.LIST, answer)

    def _page(self, request: web.Request) -> Answer:
        query = request.query
        try:
            size, start = int(query.get("limit", 50)), int(query.get("cursor", 0))
            since, until = (_moment(query.get(name)) for name in ("start", "end"))
        except ValueError as error:
            return self.problem(Problem.INVALID_REQUEST, str(error))
        if "endpoint_id" not in query or not 1 <= size <= _LARGEST_PAGE:
            return self.problem(Problem.INVALID_REQUEST, "endpoint_id is needed; limit lies in [1, 100].")
        found = [
            self._listed(task)
            for task in self._desk.listed(self.family)
            if task.order.model in query.getall("endpoint_id")
            and (since is None or task.created >= since)
            and (until is None or task.created <= until)
        ]
        wanted = query.get("status")
        if wanted is not None:
            found = [item for item in found if (item["status_code"] == 200) == (wanted == "success")]
        rest = len(found) > start + size
        cursor = str(start + size) if rest else None
        return Answer.of({"items": found[start : start + size], "next_cursor": cursor, "has_more": rest})

    def _listed(self, task: Task) -> dict[str, Any]:
        standing = task.standing(self._clock.elapsed())
        item: dict[str, Any] = {
            "request_id": task.id,
            "endpoint_id": task.order.model,
            "sent_at": task.created.isoformat(),
            "json_input": task.order.body,
            "status_code": None,
        }
        if standing.phase.is_final:
            trouble = self._trouble(task, standing)
            ended = task.created + timedelta(seconds=standing.since - task.accepted_at)
            item |= {"ended_at": ended.isoformat(), "status_code": trouble.status if trouble else 200}
        return item

    def _progress(self, task: Task, *, with_logs: bool) -> dict[str, Any]:
        standing = task.standing(self._clock.elapsed())
        word = "COMPLETED" if standing.phase.is_final else _WORDS[standing.phase]
        if standing.status not in set(Phase):
            word = standing.status
        status: dict[str, Any] = {"status": word, **_urls(task)}
        if standing.phase is Phase.QUEUED:
            status["queue_position"] = self._desk.queued_before(task)
        elif with_logs:
            status["logs"] = self._logs(task, standing)
        trouble = self._trouble(task, standing)
        if trouble:
            status |= {"error": trouble.message, "error_type": trouble.kind}
        elif standing.phase.is_final:
            status["metrics"] = {"inference_time": standing.since - task.accepted_at}
        return status

    def _logs(self, task: Task, standing: Standing) -> list[dict[str, str]]:
        steps = task.behaviour.progress_steps
        done = math.floor(standing.progress * steps + 1e-9)
        began = task.created + timedelta(seconds=standing.since - task.accepted_at)
        return [
            {"timestamp": began.isoformat(), "level": "INFO", "message": f"{100 * step // steps}%"}
            for step in range(1, done + 1)
        ]

    async def _outcome(self, task: Task) -> Answer:
        standing = task.standing(self._clock.elapsed())
        if not standing.phase.is_final:
            return self.problem(Problem.INVALID_REQUEST, "Request is still in progress")
        trouble = self._trouble(task, standing)
        return trouble.answer() if trouble else Answer.of(self._payload(task))

    def _payload(self, task: Task, url: str | None = None) -> dict[str, Any]:
        order, where = task.order, url or self._outputs.url(task)
        media_type = MEDIA_TYPES[order.media_format]
        file: dict[str, Any] = {"content_type": media_type, "file_name": f"output.{order.media_format}"}
        if where is not None:
            file["url"] = where
        if order.kind == "image":
            return {"images": [file | {"width": order.width, "height": order.height}], "prompt": order.prompt}
        return {order.kind: file, "seed": order.body.get("seed", 0)}

    def _trouble(self, task: Task, standing: Standing) -> Trouble | None:
        match standing.phase:
            case Phase.FAILED:
                return trouble_of(task.failure)
            case Phase.EXPIRED:
                return trouble_named(Problem.TIMEOUT)
            case Phase.CANCELLED:
                return Trouble(499, "client_cancelled", "Request was cancelled")
            case _:
                return None

    def order(self, request: web.Request, body: dict[str, Any]) -> Order:
        """Return what *body* orders of the model in the path. Raises `BadOrder`."""
        webhook = request.query.get("fal_webhook")
        if webhook is not None and not webhook.startswith(("http://", "https://")):
            raise BadOrder("fal_webhook is not a URL", parameter="fal_webhook")
        reference = request.headers.get("X-Client-Request-Id") or text_in(body, "end_user_id") or None
        return order_of(request.match_info["model"], body, webhook=webhook, reference=reference)

    def problem(self, problem: Problem, message: str | None = None) -> Answer:
        """Return the error answer for *problem*."""
        return trouble_named(problem, message).answer()

    async def accepted(self, task: Task) -> Answer:
        """Return the id of *task* and its addresses, which drop the sub-path of the model."""
        status = {"status": "IN_QUEUE", "queue_position": self._desk.queued_before(task)}
        return Answer.of({**_urls(task), **status})

    def callback(self, task: Task, standing: Standing, *, url: str | None = None) -> dict[str, Any] | None:
        """Return the webhook's body; there is one only at the end."""
        if not standing.phase.is_final:
            return None
        trouble = self._trouble(task, standing)
        return {
            "request_id": task.id,
            "gateway_request_id": task.id,
            "status": "ERROR" if trouble else "OK",
            "error": trouble.message if trouble else None,
            "payload": trouble.content() if trouble else self._payload(task, url),
            "payload_error": None,
        }

    def signature(self, body: bytes, task: Task, stamp: int, *, forged: bool) -> dict[str, str]:
        """Return fal's four headers."""
        return self._signer.headers(body, request_id=task.id, stamp=stamp, forged=forged)


def _app_of(task: Task) -> str:
    return "/".join(task.order.model.split("/")[:2])


def _urls(task: Task) -> dict[str, str]:
    base = f"{task.home}/{_app_of(task)}/requests/{task.id}"
    return {
        "request_id": task.id,
        "response_url": base,
        "status_url": f"{base}/status",
        "cancel_url": f"{base}/cancel",
    }


def _moment(text: str | None) -> datetime | None:
    moment = None if text is None else datetime.fromisoformat(text)
    if moment is not None and moment.tzinfo is None:
        raise ValueError("start and end need a time zone")
    return moment
