"""What the tests of the gateway share: one with a stopped clock, its callers, and what it publishes."""

import hashlib
import hmac
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
from pydantic import SecretStr

from models.job_events import PollNow
from sceneloom.callbacks import PREFIX, Call
from sceneloom.gateway.app import create_gateway
from sceneloom.gateway.errors import NotNow
from sceneloom.gateway.reception import Reception
from sceneloom.gateway.senders import senders
from sceneloom.settings import Settings
from sceneloom.testing.fake_provider.signing import Signer
from tests.fakes import MovedClock

SECRET: Final = SecretStr("a-secret-of-forty-characters-and-no-less")
ELEVENLABS_SECRET: Final = SecretStr("wsec_of_elevenlabs")
STANDARD_SECRET: Final = SecretStr("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")


class Door:
    """A gateway, what it published, and a client that knocks."""

    def __init__(self, **changes: Any) -> None:
        self.clock, self.signer = MovedClock(), Signer()
        self.hints: list[PollNow] = []
        self.broker_is_away = False
        self.key_fetches = 0
        self.key_answer: httpx.Response | Exception | None = None
        self.settings = Settings(
            _env_file=None,
            **{
                "webhook_secret": SECRET,
                "standard_webhook_secret": STANDARD_SECRET,
                "elevenlabs_webhook_secret": ELEVENLABS_SECRET,
                **changes,
            },
        )

    async def publish(self, hint: PollNow) -> None:
        if self.broker_is_away:
            raise NotNow("the broker is away")
        self.hints.append(hint)

    async def broker_answers(self) -> bool:
        return not self.broker_is_away

    def key_set(self, request: httpx.Request) -> httpx.Response:
        self.key_fetches += 1
        if isinstance(self.key_answer, Exception):
            raise self.key_answer
        return self.key_answer or httpx.Response(200, json=self.signer.key_set())

    @asynccontextmanager
    async def open(self) -> AsyncIterator[httpx.AsyncClient]:
        """Yield a client that reaches the gateway without a network."""
        async with httpx.AsyncClient(transport=httpx.MockTransport(self.key_set)) as keys:
            reception = Reception(
                senders=senders(self.settings, client=keys, clock=self.clock),
                secret=self.settings.webhook_secret,
                publish=self.publish,
                clock=self.clock,
            )
            app = create_gateway(reception, broker_answers=self.broker_answers)
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
                yield client

    def stamp(self, offset: float = 0.0) -> int:
        return int(self.clock.now().timestamp() + offset)

    def fal_headers(self, body: bytes, *, offset: float = 0.0, forged: bool = False) -> dict[str, str]:
        return self.signer.headers(body, request_id="r-1", stamp=self.stamp(offset), forged=forged)

    def elevenlabs_headers(
        self, body: bytes, *, offset: float = 0.0, secret: SecretStr = ELEVENLABS_SECRET
    ) -> dict[str, str]:
        stamp = self.stamp(offset)
        signed = f"{stamp}.".encode() + body
        mac = hmac.new(secret.get_secret_value().encode(), signed, hashlib.sha256).hexdigest()
        return {"ElevenLabs-Signature": f"t={stamp},v0={mac}"}


def a_call(provider: str = "ark", **changes: Any) -> Call:
    facts: dict[str, Any] = {"provider": provider, "job_id": "p1/scene-001/clip", "attempt": 2, "call": 1}
    return Call(**(facts | changes))


def path_of(call: Call, token: str | None = None) -> str:
    token = call.token(SECRET) if token is None else token
    return f"{PREFIX}/{call.provider}/{call.job_id}/{call.attempt}/{call.call}/{token}"


async def knock(
    client: httpx.AsyncClient,
    call: Call,
    body: bytes = b'{"id": "cgt-1"}',
    headers: Mapping[str, str | bytes] | None = None,
) -> httpx.Response:
    """Send *body* as the provider of *call* would, to its own address."""
    return await client.post(path_of(call), content=body, headers=list(_raw(headers or {})))


def _raw(headers: Mapping[str, str | bytes]) -> Iterator[tuple[bytes, bytes]]:
    for name, value in headers.items():
        yield name.encode(), value if isinstance(value, bytes) else value.encode()
