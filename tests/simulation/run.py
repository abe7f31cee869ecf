"""Runs one simulation to its end, and tells what was seen."""

import asyncio
import gc
import hashlib
from dataclasses import dataclass
from typing import Any, Final

import orjson

from tests.simulation.clockwork import Deadlock
from tests.simulation.judge import judge
from tests.simulation.plan import Plan
from tests.simulation.surroundings import surroundings
from tests.simulation.world import World

BOUND_SECONDS: Final = 4 * 3600.0
"""So long the dust may need to settle after the last trouble, an hour's jump of a clock included."""

_MOST_STEPS: Final = 400_000
_LOOK_SECONDS: Final = 5.0
_SHOWN: Final = 80
_WIDEST: Final = 150
_TELLING: Final = (
    "job_id", "project_id", "scene_id", "version", "state", "status", "submit", "attempt", "call",
    "postponed", "provider_task_id", "error_code", "decision", "command_id", "micros",
)  # fmt: skip
"""What is shown of messages and rows."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one simulation."""

    plan: Plan
    violations: tuple[str, ...]
    crashes: int
    steps: int
    happenings: int
    seconds: float
    """How long it took, in virtual seconds."""
    digest: str
    """The hash of everything that happened, in its order."""
    story: str
    """The last things that happened, for people."""


def simulate(plan: Plan, *, shown: int = _SHOWN) -> Outcome:
    """Run *plan* until the dust has settled, and judge."""
    outer = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    is_collecting = gc.isenabled()
    gc.disable()  # a task that is collected runs its `finally`, at a moment that no seed decides
    world = World(plan)
    try:
        with surroundings(world.clockwork, plan.seed):
            _run(world)
            if not world.violations:
                world.violations.extend(judge(world))
            outcome = _outcome(world, shown)
            world.bury()
    finally:
        if is_collecting:
            gc.enable()
        asyncio._set_running_loop(outer)
    return outcome


def _run(world: World) -> None:
    clockwork, plan = world.clockwork, world.plan
    world.begin()
    looked = 0.0
    while not world.violations:
        if plan.crash_after is not None and not world.crashes and clockwork.happenings >= plan.crash_after:
            world.crash(world.workers[0])
        try:
            clockwork.step()
        except Deadlock as deadlock:
            world.violations.append(f"I5: {deadlock}")
            return
        world.trouble(clockwork.happenings)
        if clockwork.now - looked >= _LOOK_SECONDS:
            looked = clockwork.now
            left = next(world.unsettled(), None)
            if left is None:
                return
            if looked - world.last_trouble > BOUND_SECONDS or clockwork.steps > _MOST_STEPS:
                world.violations.append(f"I5: after {clockwork.now:.0f} s and {clockwork.steps} steps {left}")


def _outcome(world: World, shown: int) -> Outcome:
    clockwork = world.clockwork
    digest = hashlib.sha256()
    for moment, what, details in clockwork.trace:
        if what != "log":  # other tests may have frozen the loggers
            digest.update(f"{moment!r} {what} {details!r}\n".encode())
    return Outcome(
        plan=world.plan,
        violations=tuple(world.violations),
        crashes=world.crashes,
        steps=clockwork.steps,
        happenings=clockwork.happenings,
        seconds=clockwork.now,
        digest=digest.hexdigest(),
        story="\n".join(_line(*entry) for entry in clockwork.trace[-shown:]),
    )


def _line(moment: float, what: str, details: tuple[object, ...]) -> str:
    said = " ".join(_short(detail) for detail in details)
    return f"{moment:10.3f}  {what:9} {said}"


def _short(detail: object) -> str:
    if isinstance(detail, bytes):
        try:
            return _gist(orjson.loads(detail))
        except ValueError:
            return repr(detail[:80])
    text = str(detail)
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}..."


def _gist(message: dict[str, Any]) -> str:
    """Return what matters of a message or a row."""
    kind = (message.get("request") or {}).get("kind", "")
    words = [f"{name}={message[name]}" for name in _TELLING if message.get(name) is not None]
    return " ".join([str(message.get("type", kind or "row")), *words])
