"""Plays the worker on the topics: answers the first command of each project with what a test wants."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from queue import Queue
from typing import Any

from pydantic import TypeAdapter

from agents.credits import CreditsAgent
from models.commands import ProjectCommand
from models.credits import GrantConflict
from models.ports import Message
from models.snapshot import ProjectSnapshot
from sceneloom.client import Reader, Refusal
from sceneloom.codec import encode
from sceneloom.intake import read_for_credits
from sceneloom.settings import Settings
from sceneloom.topics import CREDIT_REQUESTS, PROJECT_REQUESTS, key_of, topic_of
from tables.credits import CreditTable
from tests.stage import tell_event, tell_state, write

Answer = Callable[[Any], list[ProjectSnapshot | Refusal]]
_COMMAND: TypeAdapter[ProjectCommand] = TypeAdapter(ProjectCommand)


@contextmanager
def answering(settings: Settings, answer: Answer) -> Iterator["Queue[ProjectCommand]"]:
    """Answer commands in a thread, until the block ends; yields the commands that came."""
    commands: Queue[ProjectCommand] = Queue()

    async def serve(ready: threading.Event) -> None:
        async with Reader(settings, only_new=(PROJECT_REQUESTS,)) as reader:
            ready.set()
            async for record in reader.news():
                command = _COMMAND.validate_json(record.value)
                commands.put(command)
                for message in answer(command):
                    if isinstance(message, ProjectSnapshot):
                        await tell_state(settings, message)
                    else:
                        await tell_event(settings, message)

    with _in_a_thread(serve):
        yield commands


@contextmanager
def keeping_credits(settings: Settings) -> Iterator[None]:
    """Let the real credits agent answer, on a table in memory, until the block ends."""

    class Post:
        async def publish(self, message: Message, /) -> None:
            await write(settings, topic_of(message), key_of(message), encode(message))

    async def serve(ready: threading.Event) -> None:
        agent = CreditsAgent(credits_table=CreditTable({}), publisher=Post())
        async with Reader(settings, only_new=(CREDIT_REQUESTS,)) as reader:
            ready.set()
            async for record in reader.news():
                with contextlib.suppress(GrantConflict):
                    await agent.handle(read_for_credits(record.key, record.value), origin="o")

    with _in_a_thread(serve):
        yield


@contextmanager
def _in_a_thread(serve: Callable[[threading.Event], Coroutine[Any, Any, None]]) -> Iterator[None]:
    ready = threading.Event()
    stop: Callable[[], object] = ready.set

    async def live() -> None:
        nonlocal stop
        serving = asyncio.create_task(serve(ready))
        loop = asyncio.get_running_loop()
        stop = partial(loop.call_soon_threadsafe, serving.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await serving

    thread = threading.Thread(target=asyncio.run, args=(live(),))
    thread.start()
    try:
        if not ready.wait(30):
            raise TimeoutError("the double of the worker is not ready")
        yield
    finally:
        with contextlib.suppress(RuntimeError):  # it has ended by itself, and said why
            stop()
        thread.join()
