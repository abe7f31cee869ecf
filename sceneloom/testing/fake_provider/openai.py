"""Blocking calls in the shapes of OpenAI: pictures as base64, speech as bytes."""

import base64
import re
from typing import Any, ClassVar, Final
from uuid import uuid4

from aiohttp import web

from sceneloom.testing.fake_provider.answers import Answer
from sceneloom.testing.fake_provider.clocks import Time
from sceneloom.testing.fake_provider.desk import Desk
from sceneloom.testing.fake_provider.dialect import text_in
from sceneloom.testing.fake_provider.outputs import Outputs
from sceneloom.testing.fake_provider.scenario import Custom
from sceneloom.testing.fake_provider.tasks import BadOrder, Order, Phase, Standing, Task
from sceneloom.testing.fake_provider.words import Family, Operation, Problem

IMAGES_PATH: Final = "/v1/images/generations"
SPEECH_PATH: Final = "/v1/audio/speech"
MODELS_PATH: Final = "/v1/models"
_MODELS: Final = ("gpt-image-2", "gpt-4o-mini-tts", "tts-1", "tts-1-hd")
"""What the list tells; any other name is taken, too."""
_SIZE: Final = re.compile(r"(\d{2,4})x(\d{2,4})")
_SOUNDS: Final = ("mp3", "opus", "aac", "flac", "wav", "pcm")
_PICTURES: Final = ("png", "jpeg", "webp")
_LONGEST_SIDE: Final = 3840

_PROBLEMS: Final[dict[Problem, tuple[int, str, str | None, str]]] = {
    Problem.INVALID_REQUEST: (400, "invalid_request_error", None, "The request is not valid."),
    Problem.UNAUTHORIZED: (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    Problem.QUOTA_EXHAUSTED: (
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    Problem.FORBIDDEN: (403, "invalid_request_error", None, "Your organization must be verified."),
    Problem.MODERATION: (
        400,
        "image_generation_user_error",
        "moderation_blocked",
        "Your request was rejected by the safety system. safety_violations=[violence].",
    ),
    Problem.NOT_FOUND: (404, "invalid_request_error", None, "Not found."),
    Problem.MODEL_NOT_FOUND: (
        404,
        "invalid_request_error",
        "model_not_found",
        "The model does not exist or you do not have access to it.",
    ),
    Problem.CONFLICT: (409, "invalid_request_error", "conflict", "The request conflicts with another one."),
    Problem.ASSET_FETCH: (
        400,
        "invalid_request_error",
        "failed_to_download_image",
        "The image could not be downloaded.",
    ),
    Problem.RATE_LIMITED: (429, "requests", "rate_limit_exceeded", "Rate limit reached."),
    Problem.OVERLOADED: (503, "server_error", "overloaded", "The engine is currently overloaded."),
    Problem.UNAVAILABLE: (500, "server_error", "server_error", "The server had an error."),
    Problem.TIMEOUT: (504, "server_error", "timeout", "The request timed out."),
    Problem.OUTPUT_MISSING: (500, "server_error", "server_error", "No image was generated."),
}


class OpenAI:
    """Speaks as OpenAI does."""

    family: ClassVar[Family] = Family.BLOCKING
    scheme: ClassVar[str] = "Bearer"

    def __init__(self, desk: Desk, outputs: Outputs, clock: Time) -> None:
        self._desk = desk
        self._outputs = outputs
        self._clock = clock

    def routes(self) -> list[web.RouteDef]:
        """Return the paths that this family answers."""
        return [
            web.post(IMAGES_PATH, self._call),
            web.post(SPEECH_PATH, self._call),
            web.get(MODELS_PATH, self._models, allow_head=False),
        ]

    async def _models(self, request: web.Request) -> web.StreamResponse:
        async def say() -> Answer:
            listed = [{"id": name, "object": "model", "owned_by": "openai"} for name in _MODELS]
            return Answer.of({"object": "list", "data": listed})

        return await self._desk.take_question(request, self, Operation.LIST, say)

    async def _call(self, request: web.Request) -> web.StreamResponse:
        return await self._desk.take_order(request, self)

    def order(self, request: web.Request, body: dict[str, Any]) -> Order:
        """Return what *body* orders. Raises `BadOrder`."""
        if not text_in(body, "model"):
            raise BadOrder("you must provide a model parameter", parameter="model")
        reference = (
            request.headers.get("X-Client-Request-Id")
            or text_in(body, "safety_identifier")
            or text_in(body, "user")
        )
        order = _picture_of if request.path == IMAGES_PATH else _speech_of
        return order(body, reference or None)

    def problem(self, problem: Problem, message: str | None = None) -> Answer:
        """Return the error answer for *problem*."""
        status, kind, code, usual = _PROBLEMS[problem]
        error = {"message": message or usual, "type": kind, "param": None, "code": code}
        return Answer.of({"error": error}, status, x_request_id=f"req_{uuid4().hex}")

    async def accepted(self, task: Task) -> Answer:
        """Do the work while the client waits, and return it."""
        if task.ends_at is not None:
            await self._clock.sleep(task.ends_at - self._clock.elapsed())
        match task.standing(self._clock.elapsed()).phase:
            case Phase.SUCCEEDED:
                return await self._work(task)
            case Phase.FAILED if isinstance(task.failure, Custom):
                error = {"message": task.failure.message, "type": "server_error", "code": task.failure.code}
                return Answer.of({"error": error | {"param": None}}, 500)
            case Phase.FAILED:
                assert isinstance(task.failure, Problem)  # noqa: S101 -- the case above took the other kind
                return self.problem(task.failure)
            case _:
                return self.problem(Problem.TIMEOUT)

    async def _work(self, task: Task) -> Answer:
        headers = {"x-request-id": f"req_{task.id}"}
        if task.order.kind == "audio":
            content, media_type = await self._outputs.make(task)
            return Answer(200, content, media_type, headers)
        content, _ = await self._outputs.make(task)
        picture = {} if task.behaviour.without_url else {"b64_json": base64.b64encode(content).decode()}
        tokens = task.order.width * task.order.height // 256
        words = len(task.order.prompt.split())
        result = {
            "created": int(task.created.timestamp()),
            "data": [picture] * int(task.order.body.get("n", 1)),
            "output_format": task.order.media_format,
            "size": f"{task.order.width}x{task.order.height}",
            "usage": {"input_tokens": words, "output_tokens": tokens, "total_tokens": words + tokens},
        }
        return Answer.of(result, x_request_id=headers["x-request-id"])

    def callback(self, task: Task, standing: Standing, *, url: str | None = None) -> dict[str, Any] | None:
        """Return nothing: the client waits."""
        del task, standing, url
        return None

    def signature(self, body: bytes, task: Task, stamp: int, *, forged: bool) -> dict[str, str]:
        """Return nothing: there is nothing to sign."""
        del body, task, stamp, forged
        return {}


def _picture_of(body: dict[str, Any], reference: str | None) -> Order:
    prompt = text_in(body, "prompt")
    if not prompt or len(prompt) > 32_000:
        raise BadOrder("prompt has 1 to 32000 characters", parameter="prompt")
    if not isinstance(body.get("n", 1), int) or not 1 <= body.get("n", 1) <= 10:
        raise BadOrder("n lies between 1 and 10", parameter="n")
    size = body.get("size", "auto")
    sides = _SIZE.fullmatch("1024x1024" if size == "auto" else str(size))
    width, height = (int(side) for side in sides.groups()) if sides else (0, 0)
    if not _is_allowed(width, height):
        raise BadOrder(f"Invalid size {size!r}: sides are multiples of 16, at most 3 to 1", parameter="size")
    media_format = body.get("output_format", "png")
    if media_format not in _PICTURES:
        raise BadOrder("output_format is png, jpeg or webp", parameter="output_format")
    return Order(
        model=body["model"],
        prompt=prompt,
        kind="image",
        body=body,
        reference=reference,
        width=width,
        height=height,
        media_format=media_format,
    )


def _is_allowed(width: int, height: int) -> bool:
    sides = (width, height)
    return (
        min(sides) > 0
        and max(sides) <= _LONGEST_SIDE
        and max(sides) <= 3 * min(sides)
        and not any(side % 16 for side in sides)
    )


def _speech_of(body: dict[str, Any], reference: str | None) -> Order:
    text, speed = text_in(body, "input"), body.get("speed", 1.0)
    if not text or len(text) > 4096:
        raise BadOrder("input has 1 to 4096 characters", parameter="input")
    if not body.get("voice"):
        raise BadOrder("voice is missing", parameter="voice")
    if not isinstance(speed, int | float) or not 0.25 <= speed <= 4:
        raise BadOrder("speed lies between 0.25 and 4", parameter="speed")
    media_format = body.get("response_format", "mp3")
    if media_format not in _SOUNDS:
        raise BadOrder(f"response_format is one of {', '.join(_SOUNDS)}", parameter="response_format")
    return Order(
        model=body["model"],
        prompt=text,
        kind="audio",
        body=body,
        reference=reference,
        seconds=round(max(0.5, 0.4 * len(text.split()), 0.06 * len(text)) / speed, 2),
        media_format=media_format,
    )
