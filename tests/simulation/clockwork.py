"""Virtual time and one seeded order of everything that happens: each seed is one interleaving."""

import asyncio
import contextlib
import heapq
import itertools
import warnings
from collections.abc import Callable, Coroutine
from contextvars import Context
from random import Random
from typing import Any, Final, cast

Call = Callable[[], object]

_WIRE_SECONDS: Final = (0.001, 0.05)


class Deadlock(AssertionError):
    """Nothing can happen any more, and there is work left."""


class Clockwork:
    """Runs one callback at a time, chosen by dice from all that could run now; else time jumps to the next.

    A callback belongs to a process, or to the world around them (None). One step is one callback.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 -- dice, not secrets
        self.now = 0.0
        self.steps = 0
        self.happenings = 0
        """How much has happened that outlives a process, or is on its way to that."""
        self.trace: list[tuple[float, str, tuple[object, ...]]] = []
        self._ready: list[tuple[Process | None, Call]] = []
        self._timers: list[tuple[float, int, Process | None, Call]] = []
        self._numbers = itertools.count()
        self._is_over = False

    def note(self, what: str, *details: object) -> None:
        """Put a line into the trace: what happened, or what the product logs."""
        self.happenings += what != "log"
        self.trace.append((self.now, what, details))

    def soon(self, call: Call, process: "Process | None" = None) -> None:
        """Run *call* next, or after anything else that could run now."""
        if not self._is_over:
            self._ready.append((process, call))

    def at(self, when: float, call: Call, process: "Process | None" = None) -> None:
        """Run *call* at *when*, in seconds since the start."""
        if not self._is_over:
            heapq.heappush(self._timers, (when, next(self._numbers), process, call))

    def later(self, seconds: float, call: Call, process: "Process | None" = None) -> None:
        """Run *call* in so many *seconds*."""
        self.at(self.now + seconds, call, process)

    def between(self, least: float, most: float) -> float:
        """Throw the dice for a number of seconds: mostly near *least*, seldom near *most*."""
        return least + (most - least) * self.random.random() ** 3

    def happens(self, chance: float) -> bool:
        """Throw the dice: True with the *chance* from 0 to 1."""
        return self.random.random() < chance

    def step(self) -> None:
        """Let one thing happen. Raises `Deadlock`."""
        timers, ready = self._timers, self._ready
        if not ready:
            if not timers:
                raise Deadlock("nothing is ready, no timer is set, and there is work left")
            self.now = max(self.now, timers[0][0])
        while timers and timers[0][0] <= self.now:
            _, _, process, call = heapq.heappop(timers)
            ready.append((process, call))
        pick = int(self.random.random() * len(ready))
        ready[pick], ready[-1] = ready[-1], ready[pick]
        process, call = ready.pop()
        self.steps += 1
        if process is None:
            call()
        else:
            process.run(call)

    def end(self) -> None:
        """Let nothing happen any more."""
        self._is_over = True
        self._ready.clear()
        self._timers.clear()


class Process(asyncio.AbstractEventLoop):
    """A process is its event loop: whoever drops the loop has killed the process, and no `finally` runs."""

    def __init__(self, clockwork: Clockwork, name: str) -> None:
        self.clockwork = clockwork
        self.name = name
        self.is_alive = True
        self.is_frozen = False
        self.faults: list[str] = []
        self.client: Any = None
        """The HTTP client of this process."""
        self.on_wake: Callable[..., Any] | None = None
        """What the process does first when it goes on after a SIGSTOP."""
        self.ends: Callable[[str], None] = lambda _: None
        self._parked: list[Call] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._wire: dict[int, Call] = {}
        self._numbers = itertools.count()

    # -- life and death

    def run(self, call: Call) -> None:
        """Run one callback of this process, unless it is dead, or stopped by a signal."""
        if not self.is_alive:
            return
        if self.is_frozen:
            self._parked.append(call)
            return
        asyncio._set_running_loop(self)
        try:
            call()
        finally:
            asyncio._set_running_loop(None)

    def kill(self, arrives: float) -> None:
        """End the process at once; what it has on the wire *arrives* with that chance."""
        self.is_alive = False
        on_the_wire, self._wire = list(self._wire.values()), {}
        for call in on_the_wire:
            if self.clockwork.happens(arrives):
                self.clockwork.soon(call)

    def freeze(self) -> None:
        """Stop as by SIGSTOP."""
        self.is_frozen = True

    def thaw(self, first: Call) -> None:
        """Go on as by SIGCONT: with the handler of that signal, and what the process hears *first*."""
        self.is_frozen = False
        if self.on_wake is not None:
            self.run(self.on_wake)
        first()
        parked, self._parked = self._parked, []
        for call in parked:
            self.clockwork.soon(call, self)

    def bury(self) -> None:
        """Close what is left of a process whose world is over."""
        self.is_alive = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while self._tasks:
                task = self._tasks.pop()
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # as the loop's own run() does
                for coro in (getattr(task, "__wrapped__", None), task.get_coro()):  # mode's hold another
                    with contextlib.suppress(BaseException):
                        cast("Any", coro).close()

    # -- to the world and back

    async def ask(
        self, act: Callable[[], Any], *, there: float | None = None, back: float | None = None
    ) -> Any:
        """Have the world *act* once the request has travelled *there*; return, or raise, what comes back."""
        world, answer = self.clockwork, self.create_future()
        number = next(self._numbers)
        world.note("leave", self.name, number)

        def arrive() -> None:
            world.note("arrive", self.name, number)
            try:
                result, error = act(), None
            except Exception as raised:  # noqa: BLE001 -- goes back to whoever asked
                result, error = None, raised
            seconds = world.between(*_WIRE_SECONDS) if back is None else back
            world.later(seconds, lambda: _resolve(answer, result, error), self)

        def travel() -> None:
            if self._wire.pop(number, None) is not None:
                arrive()

        self._wire[number] = arrive
        world.later(world.between(*_WIRE_SECONDS) if there is None else there, travel)
        return await answer

    # -- what asyncio asks of a loop

    def time(self) -> float:
        return self.clockwork.now

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]  # typed as loosely as we need
        handle = asyncio.Handle(callback, args, self, context)
        self.clockwork.soon(lambda: None if handle.cancelled() else handle._run(), self)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # as above

    def call_later(  # type: ignore[override]  # as above
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]  # as above
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self.clockwork.at(when, lambda: None if handle.cancelled() else handle._run(), self)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Leave the handle where it is: it does nothing when its time comes."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks.append(task)
        return task

    async def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        """Do the work of a thread in one go, at some moment."""
        await asyncio.sleep(self.clockwork.between(0.0, 0.02))
        return func(*args)

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        return [(0, 0, 0, "", ("93.184.216.34", port))]

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self.is_alive

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if self.is_alive:
            self.faults.append(f"{context.get('message')}: {error!r}")

    def start(self, main: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Begin with *main*, in a fresh context."""
        self.clockwork.soon(lambda: self.create_task(main(), context=Context()), self)


def _resolve(answer: asyncio.Future[Any], result: object, error: Exception | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)
