"""Custody of partitions: what a worker does when they come, and when they go."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, cast

import faust
import structlog
from faust.tables.recovery import RecoveryStats
from faust.types import TP
from mode import Service

from agents.recovery import RecoveryAgent
from sceneloom.credits.courier import CreditCourier
from sceneloom.runner import JobRunner
from sceneloom.topics import partition_of
from sceneloom.unreadable import RowUnreadable

_TICK_SECONDS: Final = 0.1
RECOVERY_SECONDS: Final = 30.0
"""How long the recovery of the tables may read nothing before the worker ends."""

_log = structlog.get_logger(__name__)


class Phase(StrEnum):
    """What a worker is at."""

    JOINING = "joining"
    """It waits for its first partitions."""
    REBALANCING = "rebalancing"
    RECOVERING = "recovering"
    """It reads its tables from the changelogs, or takes up their open work."""
    WORKING = "working"
    STOPPING = "stopping"


def missing(stats: Mapping[TP, RecoveryStats]) -> str:
    """Say which rows a recovery still waits for."""
    return ", ".join(
        f"{tp.topic}[{tp.partition}] was read to offset {at.offset} of {at.highwater}"
        for tp, at in sorted(stats.items())
    )


class Custody(Service):
    """Watches which partitions this worker holds, and hands their open work to the runner.

    Faust tells of a rebalance before its tables are recovered, and swallows what its callbacks raise: so the
    state of the app is looked at instead, which costs nothing.
    """

    def __init__(
        self, app: faust.App, *, topic: str, partitions: int, fail: Callable[[str], Awaitable[None]]
    ) -> None:
        super().__init__()
        self._fail = fail
        self._app = app
        self._topic = topic
        self._partitions = partitions
        self._rebalances: int | None = None
        self._held: frozenset[int] = frozenset()

    def entrust(
        self,
        runner: JobRunner,
        recovery: RecoveryAgent,
        closers: Sequence[Callable[[], Awaitable[None]]],
        *,
        courier: CreditCourier | None = None,
    ) -> None:
        """Name who works on the partitions, and what is to be closed at the end."""
        self._runner = runner
        self._courier = courier
        self._recovery = recovery
        self._closers = closers

    def owns(self, key: str) -> bool:
        """Tell whether this worker holds the partition of *key* right now, with its tables recovered.

        The key is a project's id or a user's: all keyed topics have their partitions on the same workers.
        A worker that stops begins nothing, and so holds nothing.
        """
        if self._app.should_stop:
            return False
        return self._is_settled and partition_of(key, self._partitions) in self._active()

    @property
    def phase(self) -> Phase:
        """What the worker is at; also before this service is started, which is after the first recovery."""
        if self._app.should_stop:
            return Phase.STOPPING
        if not self._app.rebalancing_count:
            return Phase.JOINING
        if self._app.rebalancing:
            return Phase.REBALANCING
        taken_over = self._rebalances == self._app.rebalancing_count
        return Phase.RECOVERING if self._app.in_recovery or not taken_over else Phase.WORKING

    @property
    def held(self) -> int:
        """How many partitions this worker works on."""
        return len(self._held)

    async def on_start(self) -> None:
        """Start those who work on the partitions with the worker."""
        await self.add_runtime_dependency(self._runner)
        if self._courier is not None:
            await self.add_runtime_dependency(self._courier)

    async def on_shutdown(self) -> None:
        """Close what the worker has opened, once the runner has stopped."""
        for close in self._closers:
            await close()

    @Service.task
    async def _watch_recovery(self) -> None:
        """End a worker whose recovery stands still: nothing in it would ever begin again."""
        seen: dict[object, int | None] = {}
        since = time.monotonic()
        while not self.should_stop:
            recovery: Any = cast("Any", self._app.tables).recovery
            offsets = dict(recovery.active_offsets)
            if not self._app.in_recovery or offsets != seen:
                seen, since = offsets, time.monotonic()
            elif time.monotonic() - since > RECOVERY_SECONDS:
                line = f"the recovery of the tables stood still for {RECOVERY_SECONDS:g} s"
                await self._fail(": ".join(filter(None, (line, missing(recovery.active_stats())))))
            await asyncio.sleep(1.0)

    @Service.task
    async def _watch(self) -> None:
        while not self.should_stop:
            if not self._is_settled:
                self._release()
            elif self._rebalances != self._app.rebalancing_count:
                try:
                    await self._take_over()
                except RowUnreadable as unreadable:
                    await self._fail(str(unreadable))
                    return
            await asyncio.sleep(_TICK_SECONDS)

    async def _take_over(self) -> None:
        rebalances = self._app.rebalancing_count
        active = self._active()
        new = active - self._held
        self._release()
        if self._courier is not None:
            self._courier.take_over(active)
        jobs, projects = await self._recovery.take_over(active, new=new)
        self._rebalances, self._held = rebalances, active  # only now: what fails is done again
        _log.info(
            "custody.partitions",
            held=len(active),
            new=len(new),
            open_jobs=jobs,
            interrupted_projects=projects,
        )

    def _release(self) -> None:
        self._runner.release()
        if self._courier is not None:
            self._courier.release()

    @property
    def _is_settled(self) -> bool:
        return bool(self._app.rebalancing_count) and not self._app.rebalancing and not self._app.in_recovery

    def _active(self) -> frozenset[int]:
        return frozenset(
            tp.partition for tp in self._app.assignor.assigned_actives() if tp.topic == self._topic
        )
