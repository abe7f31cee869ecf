"""The task API in the shapes of Volcengine Ark (Seedance): create, get, list, delete, callback."""

from collections.abc import Callable
from typing import Any, ClassVar, Final

from aiohttp import web

from sceneloom.testing.fake_provider.answers import Answer
from sceneloom.testing.fake_provider.clocks import Time
from sceneloom.testing.fake_provider.desk import Desk
from sceneloom.testing.fake_provider.dialect import text_in
from sceneloom.testing.fake_provider.media import FRAMES_PER_SECOND
from sceneloom.testing.fake_provider.outputs import SHORT_SIDES, Outputs, frame_of
from sceneloom.testing.fake_provider.scenario import Custom
from sceneloom.testing.fake_provider.tasks import BadOrder, Order, Phase, Standing, Task
from sceneloom.testing.fake_provider.words import Family, Operation, Problem

TASKS_PATH: Final = "/api/v3/contents/generations/tasks"
_RATIOS: Final = ("16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive")
_ROLES: Final = ("text", "image_url", "video_url", "audio_url", "draft_task")
_LARGEST_PAGE: Final = 500

_PROBLEMS: Final[dict[Problem, tuple[int, str, str]]] = {
    Problem.INVALID_REQUEST: (400, "InvalidParameter", "A parameter specified in the request is not valid."),
    Problem.UNAUTHORIZED: (401, "AuthenticationError", "The API key in the request is missing or invalid."),
    Problem.QUOTA_EXHAUSTED: (403, "AccountOverdueError", "The account has an overdue balance."),
    Problem.FORBIDDEN: (403, "AccessDenied", "The request was denied."),
    Problem.MODERATION: (
        400,
        "InputTextSensitiveContentDetected",
        "The request failed because the input text may contain sensitive information.",
    ),
    Problem.NOT_FOUND: (404, "ResourceNotFound", "The specified task is not found."),
    Problem.MODEL_NOT_FOUND: (
        404,
        "InvalidEndpointOrModel.NotFound",
        "The model or endpoint does not exist or you do not have access to it.",
    ),
    Problem.CONFLICT: (409, "InvalidAction", "The task does not allow this action now."),
    Problem.ASSET_FETCH: (400, "InvalidParameter", "image_url: the resource could not be downloaded."),
    Problem.RATE_LIMITED: (429, "RateLimitExceeded.EndpointRPMExceeded", "The RPM limit is exceeded."),
    Problem.OVERLOADED: (429, "ServerOverloaded", "The service is temporarily overloaded."),
    Problem.UNAVAILABLE: (500, "InternalServiceError", "The service encountered an unexpected error."),
    Problem.TIMEOUT: (504, "InternalServiceError", "The request timed out."),
    Problem.OUTPUT_MISSING: (500, "InternalServiceError", "No output was produced."),
}
_ASYNC_MODERATION: Final = (
    "OutputVideoSensitiveContentDetected",
    "The request failed because the output video may contain sensitive information.",
)


class Ark:
    """Speaks as Ark does."""

    family: ClassVar[Family] = Family.TASKS
    scheme: ClassVar[str] = "Bearer"

    def __init__(self, desk: Desk, outputs: Outputs, clock: Time) -> None:
        self._desk = desk
        self._outputs = outputs
        self._clock = clock

    def routes(self) -> list[web.RouteDef]:
        """Return the paths that this family answers."""
        return [
            web.post(TASKS_PATH, self._create),
            web.get(TASKS_PATH, self._list, allow_head=False),
            web.get(TASKS_PATH + "/{id}", self._get, allow_head=False),
            web.delete(TASKS_PATH + "/{id}", self._delete),
        ]

    async def _create(self, request: web.Request) -> web.StreamResponse:
        return await self._desk.take_order(request, self)

    async def _get(self, request: web.Request) -> web.StreamResponse:
        return await self._with_task(request, Operation.POLL, lambda task: Answer.of(self._record(task)))

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        return await self._with_task(request, Operation.CANCEL, self._cancel_or_remove)

    async def _with_task(
        self, request: web.Request, operation: Operation, say: Callable[[Task], Answer]
    ) -> web.StreamResponse:
        async def answer() -> Answer:
            task = self._desk.task(request.match_info["id"], self.family)
            return self.problem(Problem.NOT_FOUND) if task is None else say(task)

        return await self._desk.take_question(request, self, operation, answer)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        async def answer() -> Answer:
            return self._page(request)

        return await self._desk.take_question(request, self, Operation.LIST, answer)

    def _page(self, request: web.Request) -> Answer:
        query = request.query
        try:
            page, size = int(query.get("page_num", 1)), int(query.get("page_size", 10))
        except ValueError:
            return self.problem(Problem.INVALID_REQUEST, "page_num and page_size are whole numbers.")
        if page < 1 or not 1 <= size <= _LARGEST_PAGE:
            return self.problem(Problem.INVALID_REQUEST, f"page_size lies in [1, {_LARGEST_PAGE}].")
        found = [self._record(task) for task in self._desk.listed(self.family)]
        for name in ("status", "model", "service_tier"):
            wanted = query.get(f"filter.{name}")
            found = [record for record in found if wanted is None or record[name] == wanted]
        ids = {part for value in query.getall("filter.task_ids", []) for part in value.split(",")}
        found = [record for record in found if not ids or record["id"] in ids]
        return Answer.of({"items": found[(page - 1) * size : page * size], "total": len(found)})

    def _cancel_or_remove(self, task: Task) -> Answer:
        match task.standing(self._clock.elapsed()).phase:
            case Phase.QUEUED:
                self._desk.cancel(task)
            case Phase.RUNNING:
                return self.problem(Problem.CONFLICT, "A running task cannot be cancelled.")
            case _:
                task.removed = True
        return Answer.of({})

    def order(self, request: web.Request, body: dict[str, Any]) -> Order:
        """Return what *body* orders. Raises `BadOrder`."""
        if not text_in(body, "model"):
            raise BadOrder("The required parameter model is missing.", parameter="model")
        prompt = _prompt_of(body.get("content"))
        resolution, ratio = body.get("resolution", "720p"), body.get("ratio", "16:9")
        if resolution not in SHORT_SIDES:
            raise BadOrder(f"resolution {resolution!r} is not supported.", parameter="resolution")
        if ratio not in _RATIOS:
            raise BadOrder(f"ratio {ratio!r} is not supported.", parameter="ratio")
        width, height = frame_of(resolution, "16:9" if ratio == "adaptive" else ratio)
        return Order(
            model=body["model"],
            prompt=prompt,
            kind="video",
            body=body,
            reference=text_in(body, "safety_identifier") or request.headers.get("X-Client-Request-Id"),
            callback_url=text_in(body, "callback_url") or None,
            width=width,
            height=height,
            seconds=_seconds_of(body),
            media_format="mp4",
            sound=body.get("generate_audio") is True,
        )

    def problem(self, problem: Problem, message: str | None = None) -> Answer:
        """Return the error answer for *problem*."""
        status, code, usual = _PROBLEMS[problem]
        error = {"code": code, "message": message or usual, "param": "", "type": _type_of(status)}
        return Answer.of({"error": error}, status)

    async def accepted(self, task: Task) -> Answer:
        """Return the id of *task*, and nothing else."""
        return Answer.of({"id": task.id})

    def callback(self, task: Task, standing: Standing, *, url: str | None = None) -> dict[str, Any] | None:
        """Return the same body as a GET."""
        return self._record(task, standing, url=url)

    def signature(self, body: bytes, task: Task, stamp: int, *, forged: bool) -> dict[str, str]:
        """Return nothing: Ark does not sign its callbacks."""
        del body, task, stamp, forged
        return {}

    def _record(
        self, task: Task, standing: Standing | None = None, *, url: str | None = None
    ) -> dict[str, Any]:
        standing = standing or task.standing(self._clock.elapsed())
        order, created = task.order, int(task.created.timestamp())
        record: dict[str, Any] = {
            "id": task.id,
            "model": order.model,
            "status": standing.status,
            "created_at": created,
            "updated_at": created + int(standing.since - task.accepted_at),
            "service_tier": order.body.get("service_tier", "default"),
            "execution_expires_after": order.body.get("execution_expires_after", 172_800),
            "seed": order.body.get("seed", 0),
            "resolution": order.body.get("resolution", "720p"),
            "ratio": order.body.get("ratio", "16:9"),
            "duration": round(order.seconds),
            "framespersecond": FRAMES_PER_SECOND,
        }
        if task.behaviour.echoes_reference and "safety_identifier" in order.body:
            record["safety_identifier"] = order.body["safety_identifier"]
        if standing.phase is Phase.FAILED:
            code, message = _failure_of(task)
            record["error"] = {"code": code, "message": message}
        if standing.phase is Phase.SUCCEEDED:
            record |= self._success(task, url)
        return record

    def _success(self, task: Task, url: str | None) -> dict[str, Any]:
        where = url or self._outputs.url(task)
        order = task.order
        tokens = round(order.width * order.height * FRAMES_PER_SECOND * order.seconds / 1024)
        return {
            "content": {} if where is None else {"video_url": where},
            "usage": {"completion_tokens": tokens, "total_tokens": tokens},
        }


def _prompt_of(content: object) -> str:
    if not isinstance(content, list) or not content:
        raise BadOrder("The required parameter content is missing.", parameter="content")
    for item in content:
        if not isinstance(item, dict) or item.get("type") not in _ROLES:
            raise BadOrder("content holds an item of an unknown type.", parameter="content")
    texts = [text_in(item, "text") for item in content if item["type"] == "text"]
    images = [item for item in content if item["type"] == "image_url"]
    if len(images) > 1 and not all(item.get("role") for item in images):
        raise BadOrder("role is required with more than one image.", parameter="content")
    return "\n".join(texts)


def _seconds_of(body: dict[str, Any]) -> float:
    duration, frames = body.get("duration"), body.get("frames")
    if duration is not None and frames is not None:
        raise BadOrder("duration and frames exclude each other.", parameter="frames")
    if frames is not None:
        if not isinstance(frames, int) or not 29 <= frames <= 289 or (frames - 25) % 4:
            raise BadOrder("frames is 25 + 4n, from 29 to 289.", parameter="frames")
        return frames / FRAMES_PER_SECOND
    if duration in {None, -1}:
        return 5.0
    if not isinstance(duration, int) or not 2 <= duration <= 30:
        raise BadOrder("duration is a whole number from 2 to 30, or -1.", parameter="duration")
    return float(duration)


def _failure_of(task: Task) -> tuple[str, str]:
    failure = task.failure
    if isinstance(failure, Custom):
        return failure.code, failure.message
    if failure is Problem.MODERATION:
        return _ASYNC_MODERATION
    _, code, message = _PROBLEMS[failure]
    return code, message


def _type_of(status: int) -> str:
    kinds = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 429: "TooManyRequests"}
    return kinds.get(status, "InternalServerError" if status >= 500 else "BadRequest")
