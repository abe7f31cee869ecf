"""Watchdogs: what ends a worker that hangs, with a line that says where; its supervisor starts it anew."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import Final

import faust
from faust.types import TP
from mode import Service

from sceneloom.delivery import EXIT_CODE, TICK_SECONDS, Delivery
from sceneloom.safe_consumer import Standing

_log = logging.getLogger(__name__)

_LOG_SECONDS: Final = 5.0
"""How long the last line may take to be written: whoever holds the loop may hold the log as well."""
_LOOKS: Final = 6
"""How often the commits are looked at within the time that they may stand still."""
_BACKLOG: Final = 10
"""So much longer one partition may stand still while others of its topic move: they go in turn."""
_ANSWER_SECONDS: Final = 10.0
_MEMBERSHIP_SECONDS: Final = 1.0
_TOPIC_SECONDS: Final = 5.0


class LoopWatch(Service):
    """Ends the process where the event loop has not turned for *patience* seconds: `time.sleep` in a handler.

    A frozen process (SIGSTOP, a laptop that slept) is not meant: its watching thread stood still as well, and
    delivery judges it by what the broker has done meanwhile.
    """

    def __init__(
        self, app: faust.App, *, patience: float, exit_process: Callable[[int], object] = os._exit
    ) -> None:
        super().__init__()
        self._app = app
        self._patience = patience
        self._exit = exit_process
        self._turned = True
        self._blocked = 0.0
        self._looked_at = monotonic()
        self._over = threading.Event()

    async def on_start(self) -> None:
        """Watch the loop that runs this."""
        self._watched = threading.get_ident()
        threading.Thread(target=self._watch, name="loop-watch", daemon=True).start()

    async def on_stop(self) -> None:
        """End the watch."""
        self._over.set()

    @Service.task
    async def _turn(self) -> None:
        while not self.should_stop:
            self._turned = True
            await asyncio.sleep(TICK_SECONDS)

    def _watch(self) -> None:
        self._looked_at = monotonic()
        while not self._over.wait(TICK_SECONDS):
            if self.has_hung(monotonic()) and self._app.in_worker:
                self._end()

    def has_hung(self, now: float) -> bool:
        """Tell whether the loop has stood still too long, by looks that follow each other closely."""
        passed, self._looked_at = now - self._looked_at, now
        # A look that comes late says that we stood still ourselves, which is not the fault of the loop.
        self._blocked = 0.0 if self._turned else self._blocked + min(passed, 2 * TICK_SECONDS)
        self._turned = False
        return self._blocked > self._patience

    def _end(self) -> None:
        forced = threading.Timer(_LOG_SECONDS, self._exit, (EXIT_CODE,))
        forced.daemon = True
        forced.start()
        line = (
            "watchdog: the event loop has been blocked for %.0f s, in:\n%s\n"
            "the worker ends, its supervisor starts it again"
        )
        _log.critical(line, self._blocked, self._place())
        self._exit(EXIT_CODE)

    def _place(self) -> str:
        """Return the stack of the loop's thread, by its lines of code only: variables may hold secrets."""
        frame = sys._current_frames().get(self._watched)  # noqa: SLF001 -- documented, and the only way
        return "".join(traceback.format_stack(frame)) if frame else "(no stack)"


class _OfDelivery(Service):
    """Has delivery look whether the worker may go on."""

    def __init__(self, delivery: Delivery) -> None:
        super().__init__()
        self._delivery = delivery


class WakeWatch(_OfDelivery):
    """Ends a worker that was frozen past its session, whatever it was at: also one that only joined.

    It begins with the worker: one that woke up in its first recovery would go on with partitions that are
    somebody else's by then.
    """

    async def on_start(self) -> None:
        """Have a process that wakes from SIGSTOP look first whether it slept too long."""
        await self._delivery.be_alive()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGCONT, lambda *_: self._delivery.end_if_overslept())

    @Service.task
    async def _tick(self) -> None:
        while not self.should_stop:
            await self._delivery.be_alive()
            await asyncio.sleep(TICK_SECONDS)


class MembershipWatch(_OfDelivery):
    """Ends a worker that takes no part in its group any more: the client only logs why."""

    @Service.task
    async def _watch(self) -> None:
        while not self.should_stop:
            await self._delivery.ensure_membership()
            await self.sleep(_MEMBERSHIP_SECONDS)


class TopicWatch(_OfDelivery):
    """Ends a worker whose topics were deleted and made anew, which it would read from their middle."""

    @Service.task
    async def _watch(self) -> None:
        while not self.should_stop:
            await self.sleep(_TOPIC_SECONDS)
            with contextlib.suppress(TimeoutError):  # a broker that is away is asked again
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await self._delivery.ensure_the_same_topics()


class CommitWatch(Service):
    """Ends a worker whose commits stand still for *patience* seconds on a partition that has messages.

    `standing` tells how the broker sees the partitions of this worker, or None where there is nothing to
    judge by, as in a rebalance. While the broker does not answer, nobody can commit, and the clock stands
    still: another limit ends a worker whose broker is away.
    """

    def __init__(
        self,
        *,
        standing: Callable[[], Awaitable[Mapping[TP, Standing] | None]],
        fail: Callable[[str], Awaitable[None]],
        patience: float,
    ) -> None:
        super().__init__()
        self._standing = standing
        self._fail = fail
        self._patience = patience
        self._since: dict[tuple[TP, int | None], float] = {}
        self._looked_at = monotonic()

    @Service.task
    async def _watch(self) -> None:
        while not self.should_stop:
            await self.sleep(self._patience / _LOOKS)
            await self.look()

    async def look(self) -> None:
        """Compare what the broker says with what it said before."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                standing = await self._standing() or {}
        except Exception as error:  # noqa: BLE001 -- whatever kept the broker from answering, the worker may be well
            _log.warning("watchdog: the broker did not say what is committed: %r", error)
            standing = None
        now = monotonic()
        passed, self._looked_at = now - self._looked_at, now
        if standing is None:
            self._since = {at: since + passed for at, since in self._since.items()}
            return
        self._since = {
            (tp, at.committed): self._since.get((tp, at.committed), now) for tp, at in standing.items()
        }
        moved: dict[str, float] = {}
        for (tp, _), since in self._since.items():
            moved[tp.topic] = max(since, moved.get(tp.topic, since))
        for (tp, committed), since in self._since.items():
            stands_alone = now - moved[tp.topic] <= self._patience
            if now - since > self._patience * (_BACKLOG if stands_alone else 1):
                where = "nothing" if committed is None else f"offset {committed}"
                await self._fail(
                    f"commits stand still on {tp.topic}[{tp.partition}]: {where} is committed, and was "
                    f"{now - since:.0f} s ago, though its messages go to offset {standing[tp].end}"
                )
                return


def watch(app: faust.App, *, delivery: Delivery, loop_patience: float, commit_patience: float) -> None:
    """Let the watchdogs run with *app*, from before its first message to after its last."""
    app.add_dependency(WakeWatch(delivery))
    app.add_dependency(MembershipWatch(delivery))
    app.add_dependency(TopicWatch(delivery))
    app.add_dependency(LoopWatch(app, patience=loop_patience))
    app.add_dependency(CommitWatch(standing=delivery.standing, fail=delivery.fail, patience=commit_patience))
