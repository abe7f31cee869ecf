"""When to try again and when to look again: pure functions of what has happened so far."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

from models.errors import ErrorCode

RECONCILE_SECONDS: Final = 20.0
"""Seconds between two looks into a provider's list for a lost task."""

GRACE_SECONDS: Final = 240.0
"""How long an order may be under way and a provider's list may lag, two minutes each.

Only so long after it became unclear is a task that the list does not show surely not there.
"""

CONFIRM_SECONDS: Final = 86_400.0
"""How long a person has to decide about a call of which nothing tells whether it was accepted."""

POLL_SCHEDULE: Final[tuple[float, ...]] = (5.0, 10.0, 15.0, 30.0, 60.0)
"""Seconds before each poll of a task; when they run out, the job is delayed."""

RARE_POLLS: Final[tuple[float, ...]] = (60.0, 60.0)
"""The same for a provider whose webhooks tell of news: one that is lost then costs no more than a minute."""


EARLY: Final = 0.1
"""The share of its step by which a poll may be early at most: tasks begun together are polled apart."""


class Retry(NamedTuple):
    """How a failed call is tried again: calls in all, seconds before the second one, seconds at most."""

    calls: int
    first: float
    most: float


NEVER: Final = Retry(calls=1, first=0.0, most=0.0)

RETRIES: Final[Mapping[ErrorCode, Retry]] = MappingProxyType(
    {
        ErrorCode.PROVIDER_RATE_LIMITED: Retry(calls=10, first=5.0, most=120.0),
        ErrorCode.PROVIDER_UNAVAILABLE: Retry(calls=5, first=2.0, most=60.0),
        ErrorCode.ASSET_FETCH_FAILED: Retry(calls=3, first=2.0, most=30.0),
        ErrorCode.OUTPUT_MISSING: Retry(calls=2, first=1.0, most=10.0),
    }
)
"""Codes that are worth another call. Every other code ends the attempt at once."""


def retry_delay(
    code: ErrorCode, calls: int, *, jitter: float, retry_after: float | None = None
) -> float | None:
    """Return the seconds to wait after the failed call number *calls*, or None to give up.

    The wait doubles with every call; *jitter* from 0 to 1 spreads it between half and all of that. A provider
    that says when to come back is believed, at least.
    """
    retry = RETRIES.get(code, NEVER)
    if calls >= retry.calls:
        return None
    backoff = min(retry.most, retry.first * 2.0 ** (calls - 1))
    return max(backoff * (0.5 + jitter / 2), retry_after or 0.0)


def next_poll(
    submitted_at: datetime,
    now: datetime,
    schedule: Sequence[float] = POLL_SCHEDULE,
    *,
    jitter: float = 0.0,
) -> datetime | None:
    """Return the first poll of *schedule* after *now*, or None when the schedule has run out.

    It follows from its arguments alone, so a restart neither forgets nor repeats a step. A *jitter* from 0
    to 1, the same for all polls of one task, puts each up to a tenth of its step earlier, never later.
    """
    elapsed, at = (now - submitted_at).total_seconds(), 0.0
    for step in schedule:
        at += step
        early = at - step * EARLY * jitter
        if early > elapsed and (due := submitted_at + timedelta(seconds=early)) > now:
            return due
    return None


def slow_poll(
    submitted_at: datetime,
    now: datetime,
    schedule: Sequence[float] = POLL_SCHEDULE,
    *,
    jitter: float = 0.0,
) -> datetime:
    """Return the first poll after *now* once the schedule has run out: its last step repeats for ever."""
    step = timedelta(seconds=schedule[-1])
    first = submitted_at + timedelta(seconds=sum(schedule)) + step - step * EARLY * jitter
    repeats = max(0, (now - first) // step + 1)
    return first + repeats * step


def deadline(seconds: float) -> timedelta:
    """Return how long a task for *seconds* of video may take before it is given up as `provider_timeout`."""
    return timedelta(seconds=max(600.0, 60.0 * seconds))
