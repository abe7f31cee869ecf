"""The time of day, for a process that must not trust it: what has been waited for is measured evenly."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

SLEW: Final = 0.05
"""By so many seconds a second the clock follows a wall clock that was set."""

JUMP_SECONDS: Final = 60.0
"""A difference to the wall clock that is worth a warning."""

_log = structlog.get_logger(__name__)


def _wall() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 -- this is the Clock


def _steady() -> float:
    """Return seconds that nobody can set, and that go on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class SystemClock:
    """The wall clock as it stood when this was made, running evenly since.

    Where somebody sets the wall clock by an hour, no task is an hour older and no retry an hour away: the
    clock follows slowly, and says so once. *wall* and *steady* tell the time of day, and seconds.
    """

    def __init__(
        self, *, wall: Callable[[], datetime] = _wall, steady: Callable[[], float] = _steady
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._shown = wall()
        self._seen = steady()
        self._has_jumped = False

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        seen = self._steady()
        elapsed = max(0.0, seen - self._seen)
        self._seen = seen
        self._shown += timedelta(seconds=elapsed)
        wrong = (self._wall() - self._shown).total_seconds()
        self._tell_of(wrong)
        most = elapsed * SLEW
        self._shown += timedelta(seconds=min(max(wrong, -most), most))
        return self._shown

    def _tell_of(self, wrong: float) -> None:
        has_jumped = abs(wrong) > JUMP_SECONDS
        if has_jumped and not self._has_jumped:
            _log.warning("clock.jumped", seconds=round(wrong), advice="the worker's clock follows slowly")
        self._has_jumped = has_jumped
