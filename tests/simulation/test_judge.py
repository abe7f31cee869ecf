"""Each protection is taken away once: the simulation must notice, or its silence would mean nothing."""

import math
import random
import uuid
from collections.abc import Callable, Iterable
from typing import Any
from unittest import mock

import pytest

from agents.recovery import RecoveryAgent
from models import decisions
from models.events import SceneCompleted
from models.ports import Absent
from sceneloom.consumer_thread import Seat
from sceneloom.custody import Custody
from sceneloom.delivery import Delivery
from sceneloom.runner.buying import Buying
from sceneloom.runner.searching import Searching
from tests.simulation import Outcome, Plan, faust_double, simulate
from tests.simulation.plan import Trouble
from tests.simulation.world import World

SEEDS = 60


async def at_once(*_: Any) -> None:
    """Wait for nothing."""


async def always(*_: Any) -> bool:
    return True


async def held(delivery: Delivery) -> Seat:
    delivery._confirmed_at = math.inf
    return Seat.HELD


async def absent(*_: Any) -> Absent:
    return Absent()


async def nothing_to_take_over(*_: Any, **__: Any) -> tuple[int, int]:
    return 0, 0


def thrown(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 -- dice, not secrets


def moved_on(seed: int) -> Plan:
    """Plan partitions that move while orders are about to leave."""
    dice = thrown(seed)
    shuffles = sorted(dice.sample(range(15, 120), 6))
    troubles = tuple(Trouble(at, "shuffle") for at in shuffles)
    return Plan(seed=seed, workers=2, slow_store=0.3, troubles=troubles)


def woken(seed: int) -> Plan:
    """Plan a worker that is cut off with full buffers, and comes back when another has its partitions."""
    dice = thrown(seed)
    troubles = tuple(Trouble(at, "cut", 40.0) for at in sorted(dice.sample(range(15, 150), 3)))
    return Plan(seed=seed, workers=2, troubles=troubles)


def killed(seed: int) -> Plan:
    """Plan a worker that dies again and again while messages take their time."""
    dice = thrown(seed)
    troubles = tuple(Trouble(at, "crash") for at in sorted(dice.sample(range(15, 250), 5)))
    return Plan(seed=seed, clips=1, slow_broker=0.4, troubles=troubles)


def cut_off(seed: int) -> Plan:
    """Plan a worker that is cut off while orders are about to leave, and comes back beside its successor."""
    moment = thrown(seed).randrange(14, 18)
    return Plan(seed=seed, workers=2, troubles=(Trouble(moment, "cut", 12.0),))


def doubtful(seed: int) -> Plan:
    """Plan orders that mostly have no clear end."""
    return Plan(seed=seed, meanness=0.8, evils=8)


def first_violation(plan_of: Callable[[int], Plan], seeds: Iterable[int] = range(SEEDS)) -> Outcome | None:
    for seed in seeds:
        outcome = simulate(plan_of(seed))
        if outcome.violations:
            return outcome
    return None


REMOVED: dict[str, tuple[Any, str, Any, Callable[[int], Plan], str]] = {
    "the announcement is not waited for": (Delivery, "acknowledged", at_once, Plan.of, "not announced"),
    "ownership is not checked": (Custody, "owns", lambda *_: True, moved_on, ""),
    "the broker is not asked who owns it": (Delivery, "_seat", held, cut_off, "I1"),
    "event ids are not the same again": (
        SceneCompleted, "event_id", property(lambda _: uuid.uuid4().hex), Plan.of, "I4",
    ),
    "the list is not looked into": (Searching, "_found", absent, Plan.of, "I1"),
    "a dead worker's order is made again": (Buying, "has_announced", lambda *_: True, Plan.of, ""),
    "offsets are committed before all is acknowledged": (faust_double.App, "_settled", always, killed, ""),
    "what was decided is not told again": (decisions, "recall", lambda *_: (), killed, ""),
    "open work is not taken over": (RecoveryAgent, "take_over", nothing_to_take_over, Plan.of, "I5"),
    "rows of one who woke too late count": (faust_double.Table, "_is_newest", lambda *_: True, woken, ""),
}  # fmt: skip


@pytest.mark.parametrize("protection", REMOVED)
def test_it_is_noticed_when(protection: str) -> None:
    target, name, instead, plan_of, sign = REMOVED[protection]
    with mock.patch.object(target, name, instead):
        found = first_violation(plan_of)
    assert found is not None, f"nothing was noticed in {SEEDS} seeds"
    assert sign in found.violations[0], found.violations


def test_a_short_grace_for_lists_is_noticed() -> None:
    def hasty(world: World, plan: Plan) -> None:
        usual(world, plan)
        world.settings = world.settings.model_copy(update={"list_grace_seconds": 0.0})

    usual = World.__init__
    with mock.patch.object(World, "__init__", hasty):
        found = first_violation(doubtful)
    assert found is not None
    assert found.violations[0].startswith("I1")


def test_a_worker_that_notices_late_that_it_was_replaced_buys_nothing() -> None:
    assert first_violation(cut_off, range(80, 300)) is None
