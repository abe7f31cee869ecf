"""Clients that wait for an answer which never comes."""

import asyncio
from typing import Final

from aiohttp import web

_LOOK_SECONDS: Final = 0.2


class Hanging:
    """Holds connections open until the client leaves or everybody is let go."""

    def __init__(self) -> None:
        self._released = asyncio.Event()

    async def wait(self, request: web.Request) -> None:
        """Return when the client of *request* has left, or at the next release."""
        released = self._released
        while not released.is_set() and request.transport is not None and not request.transport.is_closing():
            try:
                await asyncio.wait_for(released.wait(), _LOOK_SECONDS)
            except TimeoutError:
                continue

    def release(self) -> None:
        """Let go of everybody who waits now."""
        self._released.set()
        self._released = asyncio.Event()
