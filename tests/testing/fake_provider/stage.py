"""What the tests of the fake provider share: a running one, its clients, and a listener for callbacks."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from aiohttp import web

from sceneloom.testing.fake_provider import TEST_KEY, FakeProvider, HandClock

TASKS = "/api/v3/contents/generations/tasks"
_TRUST = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # nothing here speaks TLS, and the usual one loads for long
SEEDANCE = "fal-ai/bytedance/seedance/v1/text-to-video"


def rules(*listed: tuple[dict[str, Any], dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"rules": [{"when": when, "then": then} for when, then in listed], **more}


def always(**then: Any) -> dict[str, Any]:
    return {"defaults": then}


class Clients:
    """One HTTP client for each way to name the key."""

    def __init__(self, provider: FakeProvider, http: httpx.AsyncClient) -> None:
        self.provider = provider
        self.http = http

    async def create(
        self, prompt: str = "a fox", *, headers: dict[str, str] | None = None, **body: Any
    ) -> httpx.Response:
        content = {"model": "seedance-2-0", "content": [{"type": "text", "text": prompt}], **body}
        return await self.bearer("POST", TASKS, json=content, headers=headers)

    async def created(self, prompt: str = "a fox", **body: Any) -> str:
        answer = await self.create(prompt, **body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"])

    async def get(self, task_id: str) -> httpx.Response:
        return await self.bearer("GET", f"{TASKS}/{task_id}")

    async def status(self, task_id: str) -> str:
        answer = await self.get(task_id)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["status"])

    async def submit(
        self, prompt: str = "a fox", *, model: str = SEEDANCE, hook: str = "", **body: Any
    ) -> httpx.Response:
        query = {"fal_webhook": hook} if hook else None
        return await self.key("POST", f"/{model}", json={"prompt": prompt, **body}, params=query)

    async def image(
        self, prompt: str = "a fox", *, headers: dict[str, str] | None = None, **body: Any
    ) -> httpx.Response:
        content = {"model": "gpt-image-2", "prompt": prompt, "size": "64x64", **body}
        return await self.bearer("POST", "/v1/images/generations", json=content, headers=headers)

    async def speech(self, text: str = "once upon a time", **body: Any) -> httpx.Response:
        content = {"model": "tts-1", "voice": "alloy", "input": text, **body}
        return await self.bearer("POST", "/v1/audio/speech", json=content)

    async def bearer(
        self, method: str, path: str, headers: dict[str, str] | None = None, **rest: Any
    ) -> httpx.Response:
        return await self.http.request(
            method, path, headers={"Authorization": f"Bearer {TEST_KEY}", **(headers or {})}, **rest
        )

    async def key(self, method: str, path: str, **rest: Any) -> httpx.Response:
        return await self.http.request(method, path, headers={"Authorization": f"Key {TEST_KEY}"}, **rest)


@asynccontextmanager
async def playing(scenario: Any = None, *, patience: float = 10, **options: Any) -> AsyncIterator[Clients]:
    """Run a fake provider on a clock that stands still, with clients that wait *patience* real seconds."""
    async with (
        FakeProvider(scenario, **{"clock": HandClock(), **options}) as provider,
        httpx.AsyncClient(base_url=provider.url, timeout=patience, trust_env=False, verify=_TRUST) as http,
    ):
        yield Clients(provider, http)


@dataclass
class Listener:
    """A client's callback address, which keeps what it gets and answers as told."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    got: list[dict[str, Any]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        self.raw.append(await request.read())
        self.got.append(await request.json())
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        return web.Response(status=self.answers.pop(0) if self.answers else 200)


@asynccontextmanager
async def listening() -> AsyncIterator[Listener]:
    listener = Listener()
    app = web.Application()
    app.add_routes([web.post("/hook", listener.handle)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    listener.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    try:
        yield listener
    finally:
        await runner.cleanup()
