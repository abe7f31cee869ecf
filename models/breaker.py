"""The circuit breaker: after many calls in a row that failed, a provider is left alone for a while."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Self

from models.errors import ErrorCode, OutcomeUnknown, ProviderFailure
from models.values import Value

FAILURES: Final = 5
"""So many failures in a row open the breaker."""

OPEN_SECONDS: Final = 30.0
"""How long it stays open at first; each trial call that fails doubles that."""

LONGEST_OPEN_SECONDS: Final = 300.0

TRIAL_SECONDS: Final = 180.0
"""After that, a trial call of which nothing was heard counts as lost, and another one may be made."""

LOOK_SECONDS: Final = 5.0
"""How long to wait while the trial call of another job is under way."""


class BreakerState(StrEnum):
    """Whether calls are made: all, none, or one to try."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker(Value):
    """What the calls to one provider so far say about the next one."""

    failures: int = 0
    openings: int = 0
    ill_since: datetime | None = None
    """When it opened first, since a call was last answered."""
    open_until: datetime | None = None
    trial_until: datetime | None = None

    def state(self, now: datetime) -> BreakerState:
        """Return whether calls are made at *now*."""
        if self.open_until is None:
            return BreakerState.CLOSED
        if now < self.open_until or self._is_tried(now):
            return BreakerState.OPEN
        return BreakerState.HALF_OPEN

    def next_call(self, now: datetime) -> datetime | None:
        """Return when to ask again, or None where a call may start at *now*."""
        if self.open_until is None:
            return None
        if now < self.open_until:
            return self.open_until
        return now + timedelta(seconds=LOOK_SECONDS) if self._is_tried(now) else None

    def calling(self, now: datetime) -> Self:
        """Return the breaker after a call has begun: while it is half open, that one is the trial."""
        if self.state(now) is not BreakerState.HALF_OPEN:
            return self
        return self.model_copy(update={"trial_until": now + timedelta(seconds=TRIAL_SECONDS)})

    def answered(self) -> Self:
        """Return the breaker after a call that the provider took or refused: it works."""
        return type(self)()

    def unjudged(self) -> Self:
        """Return the breaker after a call that says nothing of the provider's health."""
        return self.model_copy(update={"trial_until": None})

    def failed(self, now: datetime) -> Self:
        """Return the breaker after a call that failed for the provider's ill health."""
        match self.state(now):
            case BreakerState.CLOSED if self.failures + 1 < FAILURES:
                return self.model_copy(update={"failures": self.failures + 1})
            case BreakerState.OPEN if not self._is_tried(now):
                return self  # begun before the breaker opened, and says nothing new
            case _:
                return self._opened(now)

    def _opened(self, now: datetime) -> Self:
        seconds = min(LONGEST_OPEN_SECONDS, OPEN_SECONDS * 2.0**self.openings)
        return type(self)(
            openings=self.openings + 1,
            ill_since=self.ill_since or now,
            open_until=now + timedelta(seconds=seconds),
        )

    def _is_tried(self, now: datetime) -> bool:
        return self.trial_until is not None and now < self.trial_until


def is_ill_health(outcome: ProviderFailure | OutcomeUnknown | None) -> bool:
    """Tell whether the *outcome* of a call, None for a success, shows that the provider does not work."""
    match outcome:
        case None:
            return False
        case OutcomeUnknown():
            return True
        case ProviderFailure(code=code):
            return code is ErrorCode.PROVIDER_UNAVAILABLE
