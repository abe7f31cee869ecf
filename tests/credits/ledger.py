"""Another company's ledger, as docs/credits.md wants it: a real HTTP server with faults."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web


class FakeLedger:
    """Keeps one balance for everyone, and every request that it took.

    `faults` are used up one request each: `lost` takes the order and never answers, `busy` takes it and
    answers 409, `wait` is a 429 with Retry-After, any number is that status, and an empty text is no fault.
    """

    def __init__(self, balance: int = 1_000_000) -> None:
        self.balance = balance
        self.held: dict[str, int] = {}
        self.charged: dict[str, int] = {}
        self.faults: list[str] = []
        self.requests: list[tuple[str, str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.orders_taken = 0
        self.url = ""
        self._answers: dict[str, int] = {}
        self._versions: dict[str, int] = {}
        self._released = asyncio.Event()

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.json()
        key = request.headers["Idempotency-Key"]
        self.requests.append((request.path, key, body))
        self.headers.append(dict(request.headers))
        fault = self.faults.pop(0) if self.faults else ""
        if fault.isdigit():
            return web.Response(status=int(fault), text="no: Bearer sk-secret-12345678")
        if fault == "wait":
            return web.Response(status=429, headers={"Retry-After": "7"})
        status = self._answer(key, request.path, body)
        if fault == "lost":
            await self._released.wait()
        return web.Response(status=409 if fault == "busy" else status)

    def _answer(self, key: str, path: str, body: dict[str, Any]) -> int:
        if key not in self._answers:
            self._answers[key] = self._take(path, body)
            self.orders_taken += 1
        return self._answers[key]

    def _take(self, path: str, body: dict[str, Any]) -> int:
        project, amount = body["project_id"], body["amount_micros"]
        if body["version"] <= self._versions.get(project, 0):
            return 410
        self._versions[project] = body["version"]
        own = self.held.pop(project, 0)
        charged = self.charged.get(project, 0)
        if path == "/settlements":
            self.balance += own + charged - amount
            self.charged[project] = amount
            return 200
        self.balance += own
        needed = max(0, amount - charged)
        if needed > self.balance:
            return 402
        self.balance -= needed
        self.held[project] = needed
        return 201

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["FakeLedger"]:
        app = web.Application()
        app.router.add_post("/reservations", self.handle)
        app.router.add_post("/settlements", self.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            self._released.set()
            await runner.cleanup()
