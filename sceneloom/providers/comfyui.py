"""Pictures by ComfyUI on a machine of one's own: a workflow is queued and waited for, free.

Wire shapes: docs.comfy.org/development/comfyui-server/comms_routes.
"""

import asyncio
import json
from typing import Any, Final

from models.errors import ErrorCode, ProviderFailure
from models.shapes import Size
from sceneloom.providers import orders
from sceneloom.providers.connection import Connection
from sceneloom.providers.media import fitted, of_area
from sceneloom.providers.tasks import quoted
from sceneloom.providers.verdicts import Answer, Complaint, Sign, Verdicts, text_of
from sceneloom.providers.workflow import USUAL, Values, WorkflowUnusable, filled, read_workflow

__all__ = ["ComfyUI", "WorkflowUnusable"]

WAIT_SECONDS: Final = 900.0
"""How long a picture is waited for, with what stands before it in the queue."""

LOOK_SECONDS: Final = 1.0
_SEEDS: Final = 2**32


def _complaint(answer: Answer) -> Complaint:
    body = answer.json() or {}
    error, nodes = body.get("error"), body.get("node_errors")
    if not isinstance(error, dict):
        return Complaint(message=text_of(error))
    message = " ".join(filter(None, (text_of(error.get("message")), json.dumps(nodes) if nodes else "")))
    return Complaint(text_of(error.get("type")), message)


VERDICTS: Final = Verdicts(
    read=_complaint,
    signs=(Sign("", ErrorCode.PROVIDER_MODEL_RETIRED, message=r"value_not_in_list.*(ckpt|unet)_name"),),
)


class ComfyUI:
    """A TextToImageProvider that runs the account's workflow, or the usual one with one checkpoint."""

    def __init__(
        self,
        connection: Connection,
        *,
        wait_seconds: float = WAIT_SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """Raise `WorkflowUnusable` for a workflow that cannot be run."""
        self._to = connection
        self._wire = connection.wire(VERDICTS)
        self._workflow = read_workflow(connection.workflow or USUAL)
        self._wait = wait_seconds
        self._look = look_seconds

    async def generate(self, prompt: str, size: Size, *, seed: int = 0) -> bytes:
        """Return a PNG of exactly *size*, scaled from as many pixels as the account's resolution says.

        Raises `ProviderFailure` or `OutcomeUnknown`.
        """
        asked = of_area(size, int(self._to.resolution))
        values: Values = {
            "prompt": prompt,
            "model": self._to.model,
            "seed": seed % _SEEDS,
            "width": asked.width,
            "height": asked.height,
        }
        answer = await self._wire.buy("/prompt", {"prompt": filled(self._workflow, values)})
        prompt_id = orders.task_name((answer.json() or {}).get("prompt_id"))
        if prompt_id is None:
            raise self._wire.unclear(answer, "a prompt_id")
        return await asyncio.to_thread(fitted, await self._picture(prompt_id), size)

    def normalize_error(self, error: Exception) -> ErrorCode:
        """Name *error* in our words."""
        return orders.error_code(error)

    def cost_per_call(self) -> float:
        """Return the configured price of one picture, in US dollars."""
        return self._to.cost_usd

    async def _picture(self, prompt_id: str) -> bytes:
        try:
            async with asyncio.timeout(self._wait):
                run = await self._finished(prompt_id)
        except TimeoutError as late:
            detail = f"no picture after {self._wait:g} s"
            raise ProviderFailure(ErrorCode.PROVIDER_TIMEOUT, detail) from late
        place = _place_in(run)
        answer = await self._wire.ask("GET", "/view", params=place)
        if not answer.is_success:
            raise self._wire.unreadable(answer)
        return answer.content

    async def _finished(self, prompt_id: str) -> dict[str, Any]:
        """Return what the history tells of the run once it is over: until then it tells nothing."""
        while True:
            history = await self._wire.read(f"/history/{quoted(prompt_id)}")
            run = history.get(prompt_id)
            if isinstance(run, dict):
                status = run.get("status")
                if isinstance(status, dict) and status.get("status_str") == "error":
                    detail = self._wire.redacted(f"the workflow broke off: {_reason(status)}")
                    raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, detail)
                return run
            await asyncio.sleep(self._look)


def _reason(status: dict[str, Any]) -> str:
    """Return what broke a run off, by its messages: pairs of a name and facts."""
    messages = status.get("messages")
    for message in messages if isinstance(messages, list) else []:
        match message:
            case ["execution_error", dict() as facts]:
                return f"{text_of(facts.get('node_type'))}: {text_of(facts.get('exception_message'))}"
            case ["execution_interrupted", *_]:
                return "somebody interrupted it"
            case _:
                continue
    return "for no reason that it tells"


def _place_in(run: dict[str, Any]) -> dict[str, str]:
    """Return where the first picture of *run* is; one that a node saves comes before a preview."""
    outputs = run.get("outputs")
    found = [
        {name: text_of(picture.get(name)) for name in ("filename", "subfolder", "type")}
        for output in (outputs.values() if isinstance(outputs, dict) else ())
        if isinstance(output, dict) and isinstance(output.get("images"), list)
        for picture in output["images"]
        if isinstance(picture, dict) and picture.get("filename")
    ]
    if not found:
        raise ProviderFailure(ErrorCode.OUTPUT_MISSING, "the workflow made no picture")
    return min(found, key=lambda picture: picture["type"] != "output")
