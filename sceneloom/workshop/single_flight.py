"""Single flight: of equal paid jobs, anywhere, one buys at a time, and the others wait for its output."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Self

import structlog
from pydantic import AwareDatetime, ValidationError

from models.job import Job
from models.ports import AssetStore
from models.values import Value

LOOK_SECONDS: Final = 2.0
"""How often a job looks for the output of the equal one that it waits for."""

MOST_KNOWN: Final = 10_000
"""So many fingerprints are remembered with the number of their newest lease."""

MARGIN: Final = timedelta(minutes=5)
"""How much longer than its job a lease lasts: for clocks that differ, and for what comes before and after."""

_log = structlog.get_logger(__name__)


class Lease(Value):
    """The right of one attempt at a job to buy what its fingerprint stands for."""

    job_id: str
    attempt: int
    expires_at: AwareDatetime

    @classmethod
    def read(cls, entry: Mapping[str, object] | None) -> Self | None:
        """Return the lease in *entry*; None where nobody can read it, so that it binds nobody."""
        try:
            return cls.model_validate(entry)
        except ValidationError:
            return None


@dataclass(frozen=True, slots=True)
class _Generation:
    """The newest lease of a fingerprint, by its number; number -1 stands for none yet."""

    number: int
    lease: Lease | None
    released: bool


class SingleFlight:
    """Leases in the asset store, one at a time for each fingerprint.

    Why two never hold one: a lease is the entry `claims/FINGERPRINT/N`. It is created by a conditional put,
    never changed and never removed; N + 1 is only tried by who has seen that N is over, which stays true
    once it is: it was released (by another entry), its time is up, or the taker is its own job. So each N
    is won by exactly one job, and who is late with N + 1 loses. A lease that were removed instead could be
    created again by one job while another, that had seen it expired, takes the one after it.

    The owner is the job and not its worker, so that a takeover goes on. Clocks that differ by more than
    `MARGIN` could end a lease early: then two equal jobs both buy, each of them still only once.
    """

    def __init__(self, assets: AssetStore) -> None:
        self._assets = assets
        self._known: dict[str, int] = {}

    async def claim(self, job: Job, now: datetime, *, needs: timedelta) -> bool:
        """Tell whether *job* may buy, with a lease of its own that lasts for what it *needs* and more.

        False means that an equal job is at it. Raises what the store raises where it is away.
        """
        newest = await self._newest(job)
        while True:
            if _is_of(newest, job) and _lasts(newest, now + needs + MARGIN):
                return True
            if not _is_over(newest, job, now):
                return False
            # Twice as long as needed, so that a job that is held up seldom has to renew.
            lease = Lease(job_id=job.job_id, attempt=job.attempt, expires_at=now + 2 * (needs + MARGIN))
            number = newest.number + 1
            if await self._assets.claim(_key(job, number), lease.model_dump(mode="json")):
                return True
            newest = await self._newest(job, known=number)  # another was faster, or our own answer got lost

    async def release(self, job: Job) -> None:
        """End the lease of this attempt at *job*, if it has one; a store that is away leaves it to expire."""
        try:
            newest = await self._newest(job)
            if _is_of(newest, job) and not newest.released:
                await self._assets.remember(_key(job, newest.number, ".released"), {"job_id": job.job_id})
        except Exception as error:  # noqa: BLE001 -- the attempt is over; equal ones wait until the lease expires
            _log.warning("single_flight.not_released", job=job.job_id, error=repr(error))

    async def _newest(self, job: Job, *, known: int = -1) -> _Generation:
        """Find the newest lease; there is none missing before it, and the one of number *known* is there."""
        number, entry = max(known, self._known.get(job.fingerprint, -1)), None
        if number >= 0:
            entry = await self._assets.recall(_key(job, number))
        while (following := await self._assets.recall(_key(job, number + 1))) is not None:
            number, entry = number + 1, following
        self._remember(job.fingerprint, number)
        if number < 0:
            return _Generation(number, None, released=True)
        released = await self._assets.recall(_key(job, number, ".released")) is not None
        return _Generation(number, Lease.read(entry), released)

    def _remember(self, fingerprint: str, number: int) -> None:
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()  # only a place to begin looking
        self._known[fingerprint] = number


def _is_of(newest: _Generation, job: Job) -> bool:
    lease = newest.lease
    return lease is not None and (lease.job_id, lease.attempt) == (job.job_id, job.attempt)


def _lasts(newest: _Generation, until: datetime) -> bool:
    return not newest.released and newest.lease is not None and newest.lease.expires_at >= until


def _is_over(newest: _Generation, job: Job, now: datetime) -> bool:
    """Tell whether *job* may take the next lease: after its own, to renew it, at any time."""
    lease = newest.lease
    return newest.released or lease is None or lease.job_id == job.job_id or lease.expires_at <= now


def _key(job: Job, number: int, suffix: str = "") -> str:
    return f"claims/{job.fingerprint[:2]}/{job.fingerprint}/{number}{suffix}"
