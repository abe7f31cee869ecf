"""Plays the worker on the topics: answers the first command of each project with what a test wants."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Queue
from typing import Any

from pydantic import TypeAdapter

from models.commands import ProjectCommand
from models.snapshot import ProjectSnapshot
from sceneloom.client import Reader, Refusal
from sceneloom.settings import Settings
from sceneloom.topics import PROJECT_REQUESTS
from tests.stage import tell_event, tell_state

Answer = Callable[[Any], list[ProjectSnapshot | Refusal]]
_COMMAND: TypeAdapter[ProjectCommand] = TypeAdapter(ProjectCommand)


@contextmanager
def answering(settings: Settings, answer: Answer) -> Iterator["Queue[ProjectCommand]"]:
    """Answer commands in a thread, until the block ends; yields the commands that came."""
    commands: Queue[ProjectCommand] = Queue()
    ready = threading.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
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

    task = loop.create_task(serve())

    def live() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        finally:
            loop.close()

    thread = threading.Thread(target=live)
    thread.start()
    try:
        if not ready.wait(30):
            raise TimeoutError("the double of the worker is not ready")
        yield commands
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
