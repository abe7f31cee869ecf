"""How much one account may ask for at once."""

import math
from collections import deque
from collections.abc import Iterable

from sceneloom.testing.fake_provider.answers import Answer
from sceneloom.testing.fake_provider.clocks import Time
from sceneloom.testing.fake_provider.dialect import Dialect
from sceneloom.testing.fake_provider.scenario import Behaviour, Limits
from sceneloom.testing.fake_provider.tasks import Task
from sceneloom.testing.fake_provider.words import Problem

_WINDOW_SECONDS = 60.0


class Gate:
    """Counts the submits of the last minute and the tasks at work."""

    def __init__(self, limits: Limits, clock: Time) -> None:
        self._limits = limits
        self._clock = clock
        self._entered: deque[float] = deque()

    def lets_in(self) -> bool:
        """Count one submit; refused ones are not counted."""
        most, now = self._limits.requests_per_minute, self._clock.elapsed()
        if most is None:
            return True
        while self._entered and self._entered[0] <= now - _WINDOW_SECONDS:
            self._entered.popleft()
        if len(self._entered) >= most:
            return False
        self._entered.append(now)
        return True

    def is_full(self, tasks: Iterable[Task]) -> bool:
        """Tell whether another task would be one too many."""
        most, now = self._limits.concurrent_tasks, self._clock.elapsed()
        return most is not None and sum(task.is_working(now) for task in tasks) >= most

    def closed(self, dialect: Dialect) -> Answer:
        """Return the 429."""
        after = self._seconds_to_wait() if self._limits.retry_after else None
        return dialect.problem(Problem.RATE_LIMITED).dictated_by(Behaviour(retry_after=after))

    def _seconds_to_wait(self) -> int:
        """Return whole seconds, as the header wants them."""
        if not self._entered or len(self._entered) < (self._limits.requests_per_minute or 0):
            return 1
        return max(1, math.ceil(self._entered[0] + _WINDOW_SECONDS - self._clock.elapsed()))
