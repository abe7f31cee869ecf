"""Many seeds, each an order of its own, with crashes, cuts, freezes, rebalances and mean providers."""

import pytest

from tests.simulation import Plan, explore, simulate

SEEDS = 200
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_no_order_of_things_loses_work_or_pays_twice(part: int) -> None:
    for seed in range(part, SEEDS, PARTS):
        outcome = simulate(Plan.of(seed))
        again = f"python -m tests.simulation --seed {seed}"
        assert not outcome.violations, f"{again}\n{outcome.story}\n{outcome.violations}"


def test_the_figures_tell_what_was_tried() -> None:
    figures = explore(range(3))
    assert (figures.runs, figures.failed) == (3, ())
    assert figures.crashes == sum(simulate(Plan.of(seed)).crashes for seed in range(3))
    assert figures.steps > 300
