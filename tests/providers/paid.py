"""What the tests of the paid adapters share: a job, a key, a store, and servers."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
from pydantic import SecretStr

from models.errors import AssetMissing
from models.job import Job
from models.shapes import AspectRatio
from models.work import ClipRequest, Offer
from sceneloom.providers.wire import Patience, open_client
from sceneloom.testing.contract.expecting import everything_shown
from sceneloom.testing.fake_provider import TEST_KEY, FakeProvider, HandClock
from tests.fakes import START

__all__ = [
    "FAKE_KEY",
    "HASTY",
    "PNG",
    "Shelf",
    "a_clip_job",
    "direct_client",
    "everything_shown",
    "faking",
    "mocked",
    "patience_for",
    "raw_server",
]

FAKE_KEY: Final = SecretStr(TEST_KEY)
HASTY: Final = Patience(connect=5.0, read=0.6, write=5.0, pool=5.0, total=6.0)
_TRUST: Final = ssl.SSLContext(
    ssl.PROTOCOL_TLS_CLIENT
)  # nothing here speaks TLS, and the usual one loads for long
PNG: Final = b"\x89PNG\r\n\x1a\n-a-picture"


def a_clip_job(model: str, **changes: Any) -> Job:
    wishes = {"prompt": "a fox", "aspect_ratio": AspectRatio.PORTRAIT, "duration_seconds": 4.2, "seed": 7}
    return Job(
        project_id="p1",
        scene_id="scene-001",
        user_id="user@example.com",
        offer=Offer(provider="paid", model=model, cost_usd=0.15),
        request=ClipRequest.model_validate(wishes | changes),
        created_at=START,
    )


def patience_for(scenario: Any) -> Patience:
    """Wait briefly only where no answer will come, so that a busy machine fails no test."""
    return HASTY if any(word in repr(scenario) for word in ("hang", "never")) else Patience()


class Shelf:
    """An asset store that holds one picture; adapters only ask whose a URL is, and read."""

    def owns(self, url: str) -> bool:
        return url.startswith("shelf:")

    async def get(self, url: str) -> bytes:
        if url != "shelf:picture":
            raise AssetMissing(url)
        return PNG


def direct_client() -> httpx.AsyncClient:
    """Return a client as paid requests use it, for servers on loopback."""
    return open_client(trust_env=False, verify=_TRUST)


def mocked(answer: Callable[[httpx.Request], httpx.Response]) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.MockTransport(answer))


@asynccontextmanager
async def faking(scenario: Any = None) -> AsyncIterator[tuple[FakeProvider, httpx.AsyncClient]]:
    """Run a fake provider whose clock stands still, and a client for it."""
    async with (
        FakeProvider(scenario, clock=HandClock(start=START)) as provider,
        direct_client() as client,
    ):
        yield provider, client


@asynccontextmanager
async def raw_server(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """Run a server that does with each connection what *talk* says, and then closes it."""
    held: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.add(writer)
        try:
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        server.close()
        for writer in held:
            writer.close()
        await server.wait_closed()
