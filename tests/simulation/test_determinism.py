"""The same seed is the same order, whatever runs it."""

import os
import subprocess
import sys

import pytest

from tests.simulation import Plan, simulate

TELL = "from tests.simulation import Plan, simulate; print(simulate(Plan.of({seed})).digest)"


@pytest.mark.parametrize("seed", [1, 7, 30])
def test_a_seed_happens_the_same_way_again(seed: int) -> None:
    assert simulate(Plan.of(seed)).digest == simulate(Plan.of(seed)).digest


def test_another_seed_happens_another_way() -> None:
    plans = [Plan.simple(seed) for seed in range(5)]
    assert len({simulate(plan).digest for plan in plans}) == len(plans)


def test_the_hash_seed_of_python_decides_nothing() -> None:
    told = set()
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-c", TELL.format(seed=7)]
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        told.add(done.stdout.strip())
    assert told == {simulate(Plan.of(7)).digest}
