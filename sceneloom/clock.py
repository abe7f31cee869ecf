"""The time of day."""

from collections.abc import Callable
from datetime import UTC, datetime


def _wall() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 -- this is the Clock


class SystemClock:
    """The clock on the wall, which somebody may set while we work."""

    def __init__(self, *, wall: Callable[[], datetime] = _wall) -> None:
        self._wall = wall

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        return self._wall()
