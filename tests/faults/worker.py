"""A worker that dies where it is told to, and does without a protection where its worth is to be seen.

python -m tests.faults.worker      settings by SCENELOOM_*, those of tests.e2e.house, and:
FAULT_POINT, FAULT_HIT   kill -9 itself at this point, when it comes there for the HIT-th time
FAULT_WITHOUT            the protection that is taken away (tests.faults.unprotected)
FAULT_RELEASE            `next`: be a worker of the next release
FAULT_POLLS              seconds between polls of a paid task, instead of the provider's schedule
FAULT_CLOCK              a file that holds by how many seconds the clock is wrong
FAULT_READ_SECONDS       how long an answer of a provider may take
FAULT_BLOCK              how many seconds SIGALRM blocks the event loop for
"""

import functools
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import httpx

from models.job_events import JobSubmitted, JobSucceeded, SubmitIntended
from models.lifecycle import SubmitState
from models.snapshot import ProjectSnapshot
from sceneloom.app import create_app, run
from sceneloom.clock import SystemClock
from sceneloom.delivery import Delivery
from sceneloom.durable_table import DurableTable
from sceneloom.outside import Outside
from sceneloom.providers.wire import Patience
from sceneloom.publisher import TopicPublisher
from sceneloom.runner.journal import Journal
from sceneloom.safe_consumer import SafeConsumer
from sceneloom.settings import Settings
from sceneloom.topics import JOBS_TABLE
from sceneloom.workshop.workshop import Workshop
from tests.e2e import house
from tests.faults.unprotected import take_away
from tests.stored.next_release import become_next

Matches = Callable[..., bool]


def _always(*_: object, **__: object) -> bool:
    return True


class Death:
    """Comes at the *hit*-th time that it is called."""

    def __init__(self, hit: int) -> None:
        self._left = hit

    def come(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def _before(owner: type[Any], name: str, death: Death, matches: Matches = _always) -> None:
    """Die before *owner*'s method *name* does anything."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def dying(*args: Any, **options: Any) -> Any:
        if matches(*args, **options):
            death.come()
        return original(*args, **options)

    setattr(owner, name, dying)


def _after(owner: type[Any], name: str, death: Death, matches: Matches = _always) -> None:
    """Die when *owner*'s coroutine method *name* has returned, before its caller goes on."""
    original = getattr(owner, name)

    @functools.wraps(original)
    async def dying(*args: Any, **options: Any) -> Any:
        result = await original(*args, **options)
        if matches(*args, **options):
            death.come()
        return result

    setattr(owner, name, dying)


def _telling(event: type[Any]) -> Matches:
    return lambda _self, told, *_, **__: told is event


def _publishing(message: type[Any]) -> Matches:
    return lambda _self, published, *_, **__: isinstance(published, message)


def _written(submit: SubmitState) -> Callable[[Death], None]:
    """Die when the row of a job that stands at *submit* was handed to the producer, unacknowledged."""

    def prepare(death: Death) -> None:
        original = DurableTable.send_changelog

        def dying(table: DurableTable, *args: Any, **options: Any) -> Any:
            future = original(table, *args, **options)
            value = options.get("value", args[2] if len(args) > 2 else None)
            if table.name == JOBS_TABLE and getattr(value, "submit", None) is submit:
                death.come()
            return future

        setattr(DurableTable, "send_changelog", dying)  # noqa: B010 -- mypy knows better than to assign it

    return prepare


POINTS: Final[Mapping[str, Callable[[Death], None]]] = MappingProxyType(
    {
        "before the intent": lambda death: _before(Journal, "tell", death, _telling(SubmitIntended)),
        "intent sent": lambda death: _after(Journal, "tell", death, _telling(SubmitIntended)),
        "intent written, unacknowledged": _written(SubmitState.INTENDED),
        "intent acknowledged": lambda death: _after(Delivery, "acknowledged", death),
        "answer heard": lambda death: _after(Workshop, "submit", death),
        "task id sent": lambda death: _after(Journal, "tell", death, _telling(JobSubmitted)),
        "task id written, unacknowledged": _written(SubmitState.ACCEPTED),
        "before a commit": lambda death: _before(SafeConsumer, "_commit_offsets", death),
        "after a commit": lambda death: _after(SafeConsumer, "_commit_offsets", death),
        "output collected": lambda death: _after(Workshop, "collect", death),
        "success sent": lambda death: _after(Journal, "tell", death, _telling(JobSucceeded)),
        "state sent": lambda death: _after(TopicPublisher, "publish", death, _publishing(ProjectSnapshot)),
    }
)
"""Where a worker can be made to die; while the provider works on a call, it is killed from outside."""


def _wrong_by(file: Path) -> Callable[[], datetime]:
    """Return a wall clock that is wrong by as many seconds as *file* says."""

    def wall() -> datetime:
        wrong = float(file.read_text()) if file.exists() else 0.0
        return datetime.now(UTC) + timedelta(seconds=wrong)  # noqa: TID251 -- this is the wall

    return wall


def outside(settings: Settings) -> Outside:
    """Make the outside of the quick house, with the polls and the clock that are wanted."""
    file = os.environ.get("FAULT_CLOCK")
    polls = os.environ.get("FAULT_POLLS")
    return house.outside(
        settings,
        clock=SystemClock(wall=_wrong_by(Path(file))) if file else None,
        polls=tuple(float(step) for step in polls.split(",")) * int(os.environ.get("FAULT_REPEATS", "10000"))
        if polls
        else (),
    )


def _block(*_: object) -> None:
    time.sleep(float(os.environ["FAULT_BLOCK"]))


def main() -> int:
    """Work as the environment says; return the exit code."""
    if "FAULT_BLOCK" in os.environ:
        signal.signal(signal.SIGALRM, _block)
    take_away()
    if os.environ.get("FAULT_RELEASE") == "next":
        become_next()
    if "FAULT_READ_SECONDS" in os.environ:
        short = httpx.Timeout(float(os.environ["FAULT_READ_SECONDS"]))
        setattr(Patience, "timeout", property(lambda _: short))  # noqa: B010 -- see above
    if point := os.environ.get("FAULT_POINT"):
        POINTS[point](Death(int(os.environ.get("FAULT_HIT", "1"))))
    settings = Settings()
    return run(create_app(settings, outside(settings)), settings)


if __name__ == "__main__":
    sys.exit(main())
