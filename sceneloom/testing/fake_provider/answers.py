"""Answers as values, and the ways in which a connection fails to carry them."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from sceneloom.testing.fake_provider.scenario import Behaviour


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer that is not sent yet."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, content: Any, status: int = 200, **headers: str) -> "Answer":
        """Answer with *content* as JSON; header names are written with underscores."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return cls(status, json.dumps(content).encode(), headers=named)

    def dictated_by(self, behaviour: Behaviour) -> "Answer":
        """Return this answer with the body and headers that the scenario asks for."""
        headers = dict(self.headers)
        if behaviour.retry_after is not None:
            headers["Retry-After"] = f"{behaviour.retry_after:g}"
        body, kind = self.body, self.content_type
        if isinstance(behaviour.body, str):
            body, kind = behaviour.body.encode(), "text/plain"
        elif behaviour.body is not None:
            body, kind = json.dumps(behaviour.body).encode(), "application/json"
        for name, value in behaviour.headers.items():
            if name.lower() == "content-type":
                kind = value
            else:
                headers[name] = value
        return replace(
            self, status=behaviour.status or self.status, body=body, content_type=kind, headers=headers
        )


def respond(answer: Answer) -> web.Response:
    """Make the response that carries *answer* whole."""
    return web.Response(
        status=answer.status, body=answer.body, content_type=answer.content_type, headers=answer.headers
    )


async def send_half(request: web.Request, answer: Answer) -> web.StreamResponse:
    """Announce the whole of *answer*, send the first half, and close the connection."""
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    response.content_type = answer.content_type
    response.content_length = len(answer.body)
    with suppress(ConnectionError):  # the client may leave first
        await response.prepare(request)
        await response.write(answer.body[: len(answer.body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


def disconnect(request: web.Request) -> web.StreamResponse:
    """Close the connection without a word."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
