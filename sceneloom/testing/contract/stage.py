"""A server that plays an emulation, and the adapter that speaks with it."""

import asyncio
import fnmatch
import itertools
import json
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from aiohttp import web
from pydantic import SecretStr

from models.errors import AssetMissing
from models.job import Job
from models.shapes import AspectRatio
from models.work import ClipRequest, ImageRequest, JobKind, Offer
from sceneloom.providers.connection import Connection
from sceneloom.providers.wire import Patience, open_client
from sceneloom.testing.contract.emulation import Accepted, Emulation, Fault, Reply, Seen, TaskEmulation

KEY: Final = SecretStr("contract-key-0123456789")
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
OUTPUT: Final = "https://outputs.example/clip.mp4"
_PATIENT: Final = Patience()
HASTY: Final = Patience(connect=5.0, read=0.4, write=5.0, pool=5.0, total=5.0)
_NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_PNG: Final = b"\x89PNG\r\n\x1a\n-a-picture"


class Stage:
    """What the server does: change `on_submit`, `on_poll`, `on_search` and `word` to change it."""

    def __init__(self, emulation: Emulation) -> None:
        self.emulation = emulation
        self.url = ""
        self.orders: list[Seen] = []
        self.questions: list[Seen] = []
        self.accepted: list[Accepted] = []
        self.on_submit: Callable[[Seen], Reply | Fault] = self.accept
        self.on_poll: Callable[[Seen, str], Reply] | None = None
        self.on_search: Callable[[Seen], Reply] | None = None
        self.word = ""
        self._numbers = itertools.count(1)
        self._over = asyncio.Event()
        self.stop_listening: Callable[[], Awaitable[None]]

    def accept(self, seen: Seen) -> Reply:
        """Take the order."""
        emulation = self.emulation
        if not isinstance(emulation, TaskEmulation):
            return emulation.made(seen)
        task_id = f"task-{next(self._numbers)}"
        self.accepted.append(Accepted(task_id, seen, NOW))
        return Reply(200, emulation.accepted(task_id))

    def accept_and(self, fault: Fault) -> Callable[[Seen], Fault]:
        """Take the order, and let the answer come to harm."""

        def taken(seen: Seen) -> Fault:
            self.accept(seen)
            return fault

        return taken

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        base = urlsplit(self.emulation.service.entry.url).path.rstrip("/")
        seen = Seen(
            request.method,
            unquote(request.raw_path.partition("?")[0].removeprefix(base)),
            dict(request.query),
            {name.lower(): value for name, value in request.headers.items()},
            await request.read(),
        )
        reply = self._reply(seen)
        if isinstance(reply, Reply):
            return _response(reply)
        if reply is Fault.HANG:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), 30)
        if reply is Fault.HALF:
            half = web.StreamResponse(headers={"Content-Length": "1000"})
            await half.prepare(request)
            await half.write(b"{")
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    def end(self) -> None:
        """Let go of whoever hangs."""
        self._over.set()

    def _reply(self, seen: Seen) -> Reply | Fault:
        entry = self.emulation.service.entry
        said = f"{entry.scheme} {KEY.get_secret_value()}".strip()
        lacks = [name for name, value in entry.headers.items() if seen.headers.get(name.lower()) != value]
        if (entry.needs_key and seen.headers.get(entry.header.lower()) != said) or lacks:
            return Reply(418, {"error": "the contract: a header of the catalogue is missing"})
        if seen.method == "POST" and fnmatch.fnmatchcase(seen.path, self.emulation.submit):
            self.orders.append(seen)
            return self.on_submit(seen)
        self.questions.append(seen)
        if isinstance(self.emulation, TaskEmulation):
            return self._answer(self.emulation, seen)
        found = (say for path, say in self.emulation.others.items() if fnmatch.fnmatchcase(seen.path, path))
        return next(found, lambda _: Reply(404))(seen)

    def _answer(self, emulation: TaskEmulation, seen: Seen) -> Reply:
        known = {task.task_id for task in self.accepted}
        back = emulation.take_back
        if back and seen.method == back.method and _id_in(back.path, seen.path) in known:
            self.word = back.taken_back or self.word
            return Reply(204, b"")
        if (task_id := _id_in(emulation.poll, seen.path)) in known and task_id is not None:
            if self.on_poll is not None:
                return self.on_poll(seen, task_id)
            return Reply(200, emulation.task(task_id, self.word or emulation.succeeded, OUTPUT))
        for path, answer in emulation.others.items():
            if (task_id := _id_in(path, seen.path)) in known and task_id is not None:
                return answer(task_id, OUTPUT)
        if emulation.search and _id_in(emulation.search.path, seen.path) is not None:
            return self.on_search(seen) if self.on_search else emulation.search.found(self.accepted, seen)
        return Reply(404, {"error": "the contract: no such path"})


class _Clock:
    def now(self) -> datetime:
        return NOW


class _Shelf:
    """An asset store with one picture."""

    def owns(self, url: str) -> bool:
        return url.startswith("shelf:")

    async def get(self, url: str) -> bytes:
        if url != "shelf:picture":
            raise AssetMissing(url)
        return _PNG


@asynccontextmanager
async def staged(emulation: Emulation, *, hasty: bool = False) -> AsyncIterator[tuple[Stage, Any]]:
    """Run the server, and return its stage and an adapter for it; a *hasty* one waits briefly."""
    stage = Stage(emulation)
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", stage.serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=False)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    stage.stop_listening = site.stop
    stage.url = f"http://{host}:{port}"
    client = open_client(trust_env=False, verify=_NO_TLS)
    try:
        yield stage, adapter(stage, client, patience=HASTY if hasty else _PATIENT)
    finally:
        stage.end()
        await client.aclose()
        await runner.cleanup()


def adapter(stage: Stage, client: Any, *, patience: Patience) -> Any:
    """Make the adapter of the stage's service."""
    emulation = stage.emulation
    entry = emulation.service.entry
    known = entry.model(emulation.model, emulation.kind)
    return emulation.service.adapters[emulation.kind](
        Connection(
            entry=entry,
            client=client,
            key=KEY,
            clock=_Clock(),
            assets=_Shelf(),  # type: ignore[arg-type]  # an adapter only asks whose a URL is, and reads
            url=stage.url + urlsplit(entry.url).path,
            list_url=stage.url + urlsplit(entry.list_url).path if entry.list_url else "",
            model=emulation.model,
            resolution=emulation.resolution or (known.resolution if known else ""),
            voice=getattr(emulation, "voice", ""),
            cost_usd=0.25,
            patience=patience,
        )
    )


def a_job(emulation: Emulation, **changes: Any) -> Job:
    """Return a job for a clip or a picture that the model makes."""
    request = _a_picture if emulation.kind is JobKind.IMAGE else _a_clip
    return Job(
        project_id="p1",
        scene_id="scene-001",
        user_id="user@example.com",
        offer=Offer(provider=emulation.service.entry.name, model=emulation.model, cost_usd=0.25),
        request=request(emulation, changes),
        created_at=NOW,
        intended_at=NOW,
    )


def _a_clip(emulation: Emulation, changes: Mapping[str, Any]) -> ClipRequest:
    known = emulation.service.entry.model(emulation.model, emulation.kind)
    seconds = known.seconds if known else ()
    wishes: dict[str, Any] = {
        "prompt": "a fox in the snow",
        "aspect_ratio": AspectRatio.PORTRAIT,
        "duration_seconds": float(seconds[0] if seconds else 5),
        "seed": 7,
    }
    return ClipRequest.model_validate({**wishes, **changes})


def _a_picture(_: Emulation, changes: Mapping[str, Any]) -> ImageRequest:
    wishes: dict[str, Any] = {"prompt": "a fox in the snow", "width": 1080, "height": 1920, "seed": 7}
    return ImageRequest.model_validate({**wishes, **changes})


def _id_in(pattern: str, path: str) -> str | None:
    """Return what stands for `{id}` in *path*, empty where nothing does; None where *path* does not fit."""
    before, _, after = pattern.partition("{id}")
    if "{id}" not in pattern:
        return "" if path == pattern else None
    found = re.fullmatch(f"{re.escape(before)}([^/]+){re.escape(after)}", path)
    return found[1] if found else None


def _response(reply: Reply) -> web.Response:
    raw = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
    headers = {"Content-Type": "application/json", **reply.headers}
    return web.Response(status=reply.status, body=raw, headers=headers)
