"""Pictures by any model on fal or Replicate: each is a task there, which is ordered once and waited for.

Wire shapes: see fal.py and replicate.py, whose tasks these are.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final, Protocol

import structlog

from models.errors import AssetMissing, ErrorCode, OutcomeUnknown, ProviderFailure
from models.ports import TaskReport
from models.shapes import Size
from sceneloom.providers import orders
from sceneloom.providers.connection import Connection
from sceneloom.providers.fal import Fal
from sceneloom.providers.fal_words import VERDICTS, app_of
from sceneloom.providers.media import fitted, of_area
from sceneloom.providers.replicate import Replicate, prediction
from sceneloom.providers.stability import nearest_ratio
from sceneloom.providers.tasks import Order
from sceneloom.providers.verdicts import Verdicts

WAIT_SECONDS: Final = 120.0
"""How long a picture that is ordered is waited for; a worker that stops waits a little longer."""

LOOK_SECONDS: Final = 1.0
_SIDE: Final = 1024
_SEEDS: Final = 2**31
_FETCHES: Final = 3

_OWN_FAULT: Final = frozenset({ErrorCode.MODERATION_REJECTED, ErrorCode.PROVIDER_BAD_REQUEST})
"""Why a task fails that would fail again. After any other end it may be billed, and is not ordered anew."""

_log = structlog.get_logger(__name__)


class _Tasks(Protocol):
    async def poll(self, task_id: str) -> TaskReport: ...


class HostedPictures(ABC):
    """A TextToImageProvider over a task API. A subclass says how a picture is ordered."""

    def __init__(
        self,
        connection: Connection,
        tasks: _Tasks,
        verdicts: Verdicts,
        *,
        wait_seconds: float = WAIT_SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._to = connection
        self._tasks = tasks
        self._wire = connection.wire(verdicts)
        self._wait = wait_seconds
        self._look = look_seconds

    async def generate(self, prompt: str, size: Size, *, seed: int = 0) -> bytes:
        """Return a PNG of exactly *size*, scaled from about a megapixel.

        Raises `ProviderFailure`, or `OutcomeUnknown` where it was or may have been ordered and none came.
        """
        order = self.order(prompt, size, seed % _SEEDS)
        answer = await self._wire.buy(order.path, order.body)
        task_id = self.task_id(answer.json() or {})
        if task_id is None:
            raise self._wire.unclear(answer, "a task id")
        report = await self._ended(task_id)
        if report.error_code is not None:
            code = report.error_code if report.error_code in _OWN_FAULT else ErrorCode.OUTPUT_MISSING
            raise ProviderFailure(code, f"{task_id}: {report.error_code}: {report.detail}")
        return await asyncio.to_thread(fitted, await self._fetched(str(report.output_url)), size)

    @abstractmethod
    def order(self, prompt: str, size: Size, seed: int) -> Order:
        """Put the order into the provider's words."""

    @abstractmethod
    def task_id(self, body: Mapping[str, Any]) -> str | None:
        """Return the id in the answer to an order, None where there is none."""

    def normalize_error(self, error: Exception) -> ErrorCode:
        """Name *error* in our words."""
        return orders.error_code(error)

    def cost_per_call(self) -> float:
        """Return the configured price of one picture, in US dollars."""
        return self._to.cost_usd

    async def _ended(self, task_id: str) -> TaskReport:
        """Return how the task ended; a question without an answer says nothing about it."""
        try:
            async with asyncio.timeout(self._wait):
                while True:
                    try:
                        report = await self._tasks.poll(task_id)
                    except ProviderFailure as failure:
                        _log.warning("pictures.poll_failed", task=task_id, error=str(failure))
                    else:
                        if report.done:
                            return report
                    await asyncio.sleep(self._look)
        except TimeoutError as late:
            raise OutcomeUnknown(f"{task_id} was accepted, and has no end after {self._wait:g} s") from late

    async def _fetched(self, url: str) -> bytes:
        """Return the picture at *url*: it is paid for, so it is asked for more than once."""
        why = ""
        for _ in range(_FETCHES):
            try:
                return await self._to.fetch(url)
            except (AssetMissing, ProviderFailure) as error:
                why = str(error)
            await asyncio.sleep(self._look)
        raise ProviderFailure(ErrorCode.OUTPUT_MISSING, f"it was made, and cannot be fetched: {why}")


class FalPictures(HostedPictures):
    """By a model on fal. Its two ways to be told of a shape both go along, as no model knows both."""

    def __init__(self, connection: Connection, **waits: float) -> None:
        super().__init__(connection, Fal.reached_by(connection), VERDICTS, **waits)

    def order(self, prompt: str, size: Size, seed: int) -> Order:
        """Order one picture."""
        asked = of_area(size, _SIDE)
        shape = {"width": asked.width, "height": asked.height}
        more = {"aspect_ratio": nearest_ratio(size), "num_images": 1, "seed": seed}
        return Order(self._to.model.strip("/"), {"prompt": prompt, "image_size": shape, **more})

    def task_id(self, body: Mapping[str, Any]) -> str | None:
        """Return the path of the request."""
        request_id = body.get("request_id")
        is_one = isinstance(request_id, str) and request_id
        return f"{app_of(self._to.model.strip('/'))}/requests/{request_id}" if is_one else None


class ReplicatePictures(HostedPictures):
    """By a model on Replicate."""

    def __init__(self, connection: Connection, **waits: float) -> None:
        super().__init__(connection, Replicate(connection), Replicate.verdicts, **waits)

    def order(self, prompt: str, size: Size, seed: int) -> Order:
        """Order one picture."""
        wishes = {"prompt": prompt, "aspect_ratio": nearest_ratio(size), "seed": seed}
        return prediction(self._to.model, {"input": wishes})

    def task_id(self, body: Mapping[str, Any]) -> str | None:
        """Return the id of the prediction."""
        prediction_id = body.get("id")
        return prediction_id if isinstance(prediction_id, str) and prediction_id else None
