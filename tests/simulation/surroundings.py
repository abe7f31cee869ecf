"""What the product meets in a simulation in place of its surroundings. Patched here only, and put back."""

import asyncio
import functools
import logging
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast
from unittest import mock

import faust
import structlog
from mode import Service

import sceneloom.app
import sceneloom.custody
import sceneloom.delivery
import sceneloom.watchdogs
from sceneloom.assets.checks import check_audio, check_video
from sceneloom.assets.download import download
from sceneloom.workshop import makers, tasks
from tests.simulation import faust_double
from tests.simulation.clockwork import Clockwork, Process


class _Like:
    """A module with some names replaced."""

    def __init__(self, module: Any, **replaced: Any) -> None:
        self._module = module
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


@contextmanager
def surroundings(clockwork: Clockwork, seed: int) -> Iterator[None]:
    """Let the product see virtual time, dice that follow the seed, and Faust's double."""
    clock = _Like(time, monotonic=lambda: clockwork.now)
    dice, logged = random.getstate(), structlog.get_config()
    with ExitStack() as stack:
        stack.callback(random.setstate, dice)
        random.seed(seed)
        stack.callback(structlog.configure, **logged)
        structlog.configure(processors=[_noting(clockwork)], cache_logger_on_first_use=False)
        stack.enter_context(_quiet(clockwork))
        for target, name, value in (
            (sceneloom.app, "faust", _Like(faust, App=faust_double.App)),
            (sceneloom.delivery, "DurableTable", faust_double.Table),
            (sceneloom.delivery, "SafeTransport", faust_double.Transport),
            (sceneloom.delivery, "time", clock),
            (sceneloom.delivery, "boot_seconds", clock.monotonic),
            (sceneloom.watchdogs, "signal", _Like(signal, signal=_remember_handler)),
            (sceneloom.watchdogs, "monotonic", clock.monotonic),
            (sceneloom.watchdogs, "asyncio", _Like(asyncio, sleep=_sleep_a_while)),
            (sceneloom.watchdogs, "LoopWatch", _NoWatch),
            (sceneloom.delivery, "os", _Like(os, _exit=_exit)),
            (sceneloom.custody, "time", clock),
            (sceneloom.custody, "asyncio", _Like(asyncio, sleep=_sleep_long)),
            (makers, "download", _download),
            (tasks, "download", _download),
            (makers, "check_video_async", _in_thread(_check_video)),
            (makers, "check_audio_async", _in_thread(_check_audio)),
            (Service, "_get_tasks", _tasks_in_order),
        ):
            stack.enter_context(mock.patch.object(target, name, value))
        yield


_check_video = functools.cache(check_video)
_check_audio = functools.cache(check_audio)


def _in_thread(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return *check*, which looks at the same few files again and again, as the product calls it."""

    async def checked(content: Any) -> Any:
        return await asyncio.to_thread(check, content)

    return checked


async def _sleep_long(seconds: float) -> None:
    await asyncio.sleep(_process().clockwork.between(seconds, seconds * faust_double.SLOWEST))


async def _sleep_a_while(seconds: float) -> None:
    """Wait for less than what would tell of a frozen process."""
    await asyncio.sleep(max(seconds, 2.0))


class _NoWatch(Service):
    """In place of the watchdog that needs a thread: virtual time does not block."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()


async def _download(url: str, **options: Any) -> bytes:
    client = cast("Any", asyncio.get_running_loop()).client
    return await download(url, client=client, **options)


def _process() -> Process:
    return cast("Process", asyncio.get_running_loop())


def _remember_handler(_signal: int, handler: Callable[..., Any]) -> None:
    _process().on_wake = handler


def _exit(code: int) -> None:
    _process().ends(f"exit {code}")


def _tasks_in_order(service: Service) -> Iterator[Any]:
    """Yield the tasks of a service by name: mode takes them from a set, so in an order of the hash seed."""
    for name in sorted(service._tasks[service._get_class_id()] if service._tasks else ()):
        yield getattr(service, name)


def _noting(clockwork: Clockwork) -> Callable[..., Any]:
    def note(_logger: Any, level: str, line: dict[str, Any]) -> Any:
        clockwork.note("log", level, str(line.pop("event", "")), repr(line))
        raise structlog.DropEvent

    return note


class _Notes(logging.Handler):
    def __init__(self, clockwork: Clockwork) -> None:
        super().__init__(logging.WARNING)
        self._clockwork = clockwork

    def emit(self, record: logging.LogRecord) -> None:
        self._clockwork.note("log", record.levelname, record.getMessage(), "")


@contextmanager
def _quiet(clockwork: Clockwork) -> Iterator[None]:
    """Have what goes to the standard library's logs noted, and not printed."""
    handler = _Notes(clockwork)
    loggers = [logging.getLogger(name) for name in ("sceneloom", "mode", "asyncio")]
    before = [(logger.handlers, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.handlers, logger.propagate = [handler], False
    try:
        yield
    finally:
        for logger, (handlers, propagate) in zip(loggers, before, strict=True):
            logger.handlers, logger.propagate = handlers, propagate
