"""The whole worker in a simulation: virtual time, Kafka and providers in memory, a seed for each order.

Everything from the composition root down is the real code: agents, tables, delivery, custody, runner,
workshop, pace, single flight and the paid adapters. What is replaced is Faust itself, aiokafka, the network,
the asset store, media checks that would decode the same file again, and ffmpeg. One process is one event
loop, so that a crash is a loop that nobody runs any more: no line of it, and no `finally`, has an effect.

    python -m tests.simulation --seed 7            one seed, with what happened
    python -m tests.simulation --from 0 --to 5000  many, with the first that fail
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tests.simulation.plan import Plan
from tests.simulation.run import Outcome, simulate

__all__ = ["Figures", "Outcome", "Plan", "explore", "simulate"]


@dataclass(frozen=True, slots=True)
class Figures:
    """What was tried, and which seeds failed."""

    runs: int
    crashes: int
    steps: int
    virtual_seconds: float
    failed: tuple[int, ...]


def explore(seeds: Iterable[int]) -> Figures:
    """Simulate each of *seeds* to its end, and judge."""
    outcomes = [simulate(Plan.of(seed), shown=0) for seed in seeds]
    return Figures(
        runs=len(outcomes),
        crashes=sum(outcome.crashes for outcome in outcomes),
        steps=sum(outcome.steps for outcome in outcomes),
        virtual_seconds=sum(outcome.seconds for outcome in outcomes),
        failed=tuple(outcome.plan.seed for outcome in outcomes if outcome.violations),
    )
