"""From a message at our door to a hint on job-events, or to the short answer that refuses it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import orjson
import structlog
from fastapi import HTTPException, Request
from pydantic import SecretStr
from starlette.requests import ClientDisconnect

from models.identifiers import event_id
from models.job_events import PollNow
from models.ports import Clock
from sceneloom.callbacks import Call
from sceneloom.gateway.errors import NotNow, Refused
from sceneloom.gateway.replays import Replays
from sceneloom.gateway.senders import Content, Sender

LARGEST: Final = 1_000_000
"""Bytes that a message may have."""

READ_SECONDS: Final = 10.0
"""How long a message may take to arrive."""

_log = structlog.get_logger(__name__)


class Reception:
    """Takes messages. What it answers names a rule, and never what was sent or what was expected.

    The token comes first: without it nothing is read, verified or fetched.
    """

    def __init__(
        self,
        *,
        senders: Mapping[str, Sender],
        secret: SecretStr,
        publish: Callable[[PollNow], Awaitable[None]],
        clock: Clock,
    ) -> None:
        self._senders = senders
        self._secret = secret
        self._publish = publish
        self._clock = clock
        self._taken = Replays(clock)

    async def take(self, call: Call, token: str, request: Request) -> str:
        """Return what became of the message: `taken`, or `known` for one that was taken before.

        Raises `HTTPException`.
        """
        sender = self._senders.get(call.provider)
        if sender is None:
            raise _refusal(404, "no such provider")
        if not call.is_proven_by(token, self._secret):
            raise _refusal(403, "wrong token", provider=call.provider)
        body = await _body(request)
        content = _content(body)
        try:
            message = await sender.scheme.verify(request.headers, body)
            return await self._pass_on(call, message, sender.task_in(content))
        except Refused as refused:
            raise _refusal(401, "not verified", job=call.job_id, reason=str(refused)) from refused
        except NotNow as not_now:
            raise _refusal(503, "try again later", job=call.job_id, reason=str(not_now)) from not_now

    async def _pass_on(self, call: Call, message: str, task: str | None) -> str:
        """Put the hint on its topic, once for each message: only then may the provider forget it."""
        named = event_id("webhook", call.provider, call.job_id, call.attempt, call.call, message)
        if named in self._taken:
            return "known"
        await self._publish(
            PollNow(
                event_id=named,
                project_id=call.project_id,
                job_id=call.job_id,
                attempt=call.attempt,
                call=call.call,
                occurred_at=self._clock.now(),
                provider_task_id=task,
            )
        )
        self._taken.add(named)
        _log.info("gateway.hint", provider=call.provider, job=call.job_id, call=call.call)
        return "taken"


async def _body(request: Request) -> bytes:
    """Read the message, no further than it may be long."""
    content = bytearray()
    try:
        async with asyncio.timeout(READ_SECONDS):
            async for chunk in request.stream():
                content += chunk
                if len(content) > LARGEST:
                    raise _refusal(413, f"more than {LARGEST} bytes")
    except TimeoutError as error:
        raise _refusal(408, "too slow") from error
    except ClientDisconnect as gone:
        raise _refusal(400, "incomplete") from gone
    return bytes(content)


def _content(body: bytes) -> Content:
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, dict):
        raise _refusal(400, "not a JSON object")
    return content


def _refusal(status: int, rule: str, **known: object) -> HTTPException:
    """Log the refusal with what is *known* for certain, and return it; its address must not be told."""
    _log.warning("gateway.refused", status=status, rule=rule, **known)
    return HTTPException(status, rule)
