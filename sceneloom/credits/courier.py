"""The courier: runs the errands of this worker's partitions to another company's ledger.

It holds no truth. What it has to run is built from the errands table when partitions come and emptied when
they go, and what the ledger answers becomes true only when the errands agent has written it.
"""

import asyncio
import contextlib
import contextvars
import random
from collections.abc import Callable, Collection
from typing import Final

import structlog
from mode import Service

from models.credit_messages import CreditAnswer, CreditsRefused, LedgerAnswered, ReserveCredits
from models.errands import Errand
from models.errors import ErrorCode, ProviderFailure
from models.policy import retry_delay
from models.ports import CreditLedger, ErrandStore, Publisher

PARALLEL: Final = 8
"""How many errands are at the ledger at the same time."""

SLOW_SECONDS: Final = 60.0
"""A settlement that the ledger does not take is tried again this often, for ever."""

_log = structlog.get_logger(__name__)
_Name = tuple[str, str]


class CreditCourier(Service):
    """Runs errands, each project's one after another, until the ledger has answered.

    A reservation is given up, as refused, where more calls are of no use: a project must not wait for ever. A
    settlement is never given up: what is held must not stay held.
    """

    def __init__(
        self,
        *,
        ledger: CreditLedger,
        errands: ErrandStore,
        publisher: Publisher,
        owns: Callable[[str], bool],
        delay: Callable[[ErrorCode, int, float | None], float | None] | None = None,
    ) -> None:
        super().__init__()
        self._ledger = ledger
        self._table = errands
        self._publisher = publisher
        self._owns = owns
        self._delay = delay or _usual_delay
        self._places = asyncio.Semaphore(PARALLEL)
        self._errands: dict[_Name, Errand] = {}
        self._working: dict[_Name, asyncio.Task[None]] = {}
        self._news: dict[_Name, asyncio.Event] = {}

    def take(self, errand: Errand, /) -> None:
        """Run *errand*, in place of an older one of its project; one that is being run is not run twice."""
        name = errand.user_id, errand.project_id
        is_new = self._errands.get(name) != errand
        self._errands[name] = errand
        if name in self._news and is_new:
            self._news[name].set()
        elif name not in self._working:
            # A fresh context: in an agent's own, a late table write would go to a partition that has moved.
            task = asyncio.get_running_loop().create_task(self._attend(name), context=contextvars.Context())
            self._working[name] = task

    def release(self) -> None:
        """Forget all errands, as partitions may have gone; what is at the ledger now is still reported."""
        self._errands.clear()

    def take_over(self, partitions: Collection[int]) -> None:
        """Take up the open errands of *partitions*."""
        for errand in self._table.unanswered(partitions):
            self.take(errand)

    async def on_stop(self) -> None:
        """Give up what is under way: it is asked again, under the same key, by the next worker."""
        self.release()
        tasks = list(self._working.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _attend(self, name: _Name) -> None:
        calls = 0
        errand: Errand | None = None
        try:
            while (latest := self._errands.get(name)) is not None and self._owns(name[0]):
                calls = calls + 1 if latest == errand else 1
                errand = latest
                wait = await self._run_once(errand, calls)
                if wait is not None:
                    await self._wait(name, wait)
                elif self._errands.get(name) == errand:
                    del self._errands[name]
        finally:
            del self._working[name]

    async def _run_once(self, errand: Errand, calls: int) -> float | None:
        """Ask the ledger once; return the seconds until it is asked again, None where it has answered."""
        try:
            async with self._places:
                answer = await self._asked(errand)
        except ProviderFailure as failure:
            delay = self._delay(failure.code, calls, failure.retry_after)
            is_reservation = isinstance(errand.order, ReserveCredits)
            if delay is None and not is_reservation:
                delay = SLOW_SECONDS
            log = _log.error if delay is None or not is_reservation else _log.warning
            log(
                "courier.failed",
                project=errand.project_id,
                order=errand.order.type,
                code=failure.code,
                detail=failure.detail,
                again_in=delay,
            )
            if delay is not None:
                return delay
            about = errand.order.model_dump(exclude={"type", "micros"})
            answer = CreditsRefused.model_validate({**about, "error_code": failure.code})
        await self._publisher.publish(LedgerAnswered(answer=answer))
        return None

    async def _asked(self, errand: Errand) -> CreditAnswer:
        try:
            if isinstance(errand.order, ReserveCredits):
                return await self._ledger.reserve(errand.order)
            return await self._ledger.settle(errand.order)
        except ProviderFailure:
            raise
        except Exception as error:
            _log.exception("courier.unexpected", project=errand.project_id)
            raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, repr(error)) from error

    async def _wait(self, name: _Name, seconds: float) -> None:
        """Wait, but no longer than until there is something newer to do."""
        news = self._news[name] = asyncio.Event()
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), seconds)
        finally:
            del self._news[name]


def _usual_delay(code: ErrorCode, calls: int, wish: float | None) -> float | None:
    jitter = random.random()  # noqa: S311 -- spreads load, hides nothing
    return retry_delay(code, calls, jitter=jitter, retry_after=wish)
