"""Runs checks one after another, each bounded in time, and goes on whatever one of them finds."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from sceneloom.settings import Settings

T = TypeVar("T")


class Verdict(StrEnum):
    """What a check says: all is well, it may matter, or the work cannot be done like this."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, and what to do about it where it is not well."""

    verdict: Verdict
    found: str
    advice: str = ""


def ok(found: str) -> Finding:
    """Return a finding that all is well."""
    return Finding(Verdict.OK, found)


def warning(found: str, advice: str) -> Finding:
    """Return a finding that may matter."""
    return Finding(Verdict.WARNING, found, advice)


def fault(found: str, advice: str) -> Finding:
    """Return a finding that stops the work."""
    return Finding(Verdict.FAULT, found, advice)


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One thing to look at, for at most so many `seconds`.

    `needs` names a check without whose success this one has nothing to look at.
    """

    name: str
    look: Callable[[Settings], Awaitable[Sequence[Finding]]]
    seconds: float = 20.0
    needs: str | None = None


async def examine(
    settings: Settings, checks: Sequence[Check], starting: Callable[[str], None]
) -> AsyncIterator[tuple[str, Finding]]:
    """Yield what each of *checks* finds, under its name, as soon as it is known; *starting* hears of each."""
    failed: set[str] = set()
    for check in checks:
        starting(check.name)
        if check.needs in failed:
            yield check.name, warning(f"not looked at: {check.needs} failed", f"repair {check.needs} first")
            continue
        for finding in await _look(check, settings):
            if finding.verdict is Verdict.FAULT:
                failed.add(check.name)
            yield check.name, finding


async def _look(check: Check, settings: Settings) -> Sequence[Finding]:
    try:
        async with asyncio.timeout(check.seconds):
            return await check.look(settings)
    except TimeoutError:
        advice = "whatever it waits for hangs or is overloaded: look at that"
        return [fault(f"no answer within {check.seconds:g} s", advice)]
    except Exception as error:  # noqa: BLE001 -- the other checks are still to come
        return [fault(f"{type(error).__name__}: {error}", "nobody foresaw this: please report it")]


async def aside(work: Callable[[], T]) -> T:
    """Do blocking *work* in a thread that nobody waits for at the end: a dead disk must not hang us."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # None only where T is

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as exc:  # noqa: BLE001 -- whoever awaits the work gets it
            error = exc
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody listens any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, daemon=True).start()
    return await done
