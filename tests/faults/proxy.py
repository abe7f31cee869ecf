"""A wire that can be cut, both ways or one way, between clients and one TCP port."""

import asyncio
import contextlib
from typing import Final, Self

_CHUNK: Final = 65_536


class Wire:
    """Carries connections from its own `port` to *target* on loopback, as long as it is not cut.

    What is sent into a cut waits, as behind a network that drops packets: no side is told.
    """

    def __init__(self, target: int, *, port: int = 0) -> None:
        self.port = port
        self._target = target
        self._up, self._down = asyncio.Event(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.heal()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self, *, up: bool = True, down: bool = True) -> None:
        """Let nothing through any more: *up* to the target, *down* from it."""
        if up:
            self._up.clear()
        if down:
            self._down.clear()

    def heal(self) -> None:
        """Let everything through, with what has waited."""
        self._up.set()
        self._down.set()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        ways = ((reader, to_writer, self._up), (to_reader, writer, self._down))
        for source, sink, gate in ways:
            task = asyncio.create_task(_pump(source, sink, gate))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, gate: asyncio.Event) -> None:
    with contextlib.suppress(OSError):
        while chunk := await source.read(_CHUNK):
            await gate.wait()
            sink.write(chunk)
            await sink.drain()
    sink.close()
