"""A provider and a ledger that repeat every secret that they are shown, in whatever they answer."""

import asyncio
import base64
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

SIGNED = "canary-output-signature"


class HostileProvider:
    """Speaks as Ark does; what becomes of a task follows from a word in its prompt."""

    def __init__(self) -> None:
        self.url = ""
        self.seen: Counter[str] = Counter()
        self.callbacks: set[str] = set()
        self.authorizations: set[str] = set()
        self._said: dict[str, Any] = {}

    async def order(self, request: web.Request) -> web.Response:
        body = await request.json()
        take = body["content"][0]["text"].split()[-1]
        self.seen[take] += 1
        self.callbacks.add(body["callback_url"])
        self._said[take] = said = self._echo(request, body)
        match take:
            case "refused":
                return web.json_response({"error": {"code": "Bad", "message": said}}, status=400)
            case "unclear":
                return web.Response(status=500, text=said)
            case "odd":
                return web.json_response({"task": said})
            case _:
                return web.json_response({"id": f"task-{take}"})

    async def task(self, request: web.Request) -> web.Response:
        take = request.match_info["id"].removeprefix("task-")
        self.seen[f"poll {take}"] += 1
        said = self._echo(request, self._said.get(take))
        if take == "fine":
            url = f"{self.url}/outputs/clip.mp4?X-Amz-Signature={SIGNED}&Expires=1"
            return web.json_response(
                {"id": "task-fine", "status": "succeeded", "content": {"video_url": url}}
            )
        error = {"code": "OutputVideoSensitiveContentDetected", "message": said}
        return web.json_response({"id": f"task-{take}", "status": "failed", "error": error})

    async def tasks(self, request: web.Request) -> web.Response:
        self.seen["list"] += 1
        return web.Response(status=403, text=self._echo(request, self._said.get("unclear")))

    async def output(self, request: web.Request) -> web.Response:
        self.seen["download"] += 1
        if request.path.endswith("clip.mp4"):
            raise web.HTTPFound(f"{self.url}/outputs/other.mp4?token={SIGNED}")
        return web.Response(status=403, text=self._echo(request, None))

    async def ledger(self, request: web.Request) -> web.Response:
        self.seen["ledger"] += 1
        if self.seen["ledger"] % 3 == 1:
            return web.Response(status=500, text=self._echo(request, await request.json()))
        return web.json_response({})

    def _echo(self, request: web.Request, body: Any) -> str:
        if sent := request.headers.get("Authorization"):
            self.authorizations.add(sent)
            if sent.startswith("Basic "):
                sent += " " + base64.b64decode(sent.removeprefix("Basic ")).decode()
        return f"you sent {json.dumps(dict(request.headers))} {sent} to {request.url} with {json.dumps(body)}"


@asynccontextmanager
async def hostile_provider() -> AsyncIterator[HostileProvider]:
    """Run one on a free port of loopback."""
    provider = HostileProvider()
    app = web.Application()
    app.router.add_post("/api/v3/contents/generations/tasks", provider.order)
    app.router.add_get("/api/v3/contents/generations/tasks", provider.tasks)
    app.router.add_get("/api/v3/contents/generations/tasks/{id}", provider.task)
    app.router.add_get("/outputs/{name}", provider.output)
    app.router.add_post("/ledger/{what}", provider.ledger)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    provider.url = f"http://{host}:{port}"
    try:
        yield provider
    finally:
        await asyncio.shield(runner.cleanup())
