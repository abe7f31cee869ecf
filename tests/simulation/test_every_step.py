"""One small project, and a crash at every moment that makes a difference.

A worker's memory dies with it. So two crashes lead to the same world unless something happened between them
that outlives it: a send, its arrival, a request that left or arrived, a commit. These are the happenings;
`test_nothing_changes_between_two_happenings` holds that against every single step.
"""

import pytest

from tests.simulation import Plan, simulate
from tests.simulation.surroundings import surroundings
from tests.simulation.world import World

PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_a_crash_at_every_happening_loses_nothing_and_pays_nothing_twice(part: int) -> None:
    whole = simulate(Plan.simple())
    assert not whole.violations, whole.story
    for happening in range(1 + part, whole.happenings + 1, PARTS):
        outcome = simulate(Plan.simple(crash_after=happening))
        again = f"python -m tests.simulation --simple --seed 0 --crash-after {happening}"
        assert outcome.crashes == 1, again
        assert not outcome.violations, f"{again}\n{outcome.story}\n{outcome.violations}"


def test_nothing_changes_between_two_happenings() -> None:
    """What a dead worker leaves behind stays the same through every step that is no happening."""
    world = World(Plan.simple())
    with surroundings(world.clockwork, seed=0):
        world.begin()
        before, happenings = left_behind(world), world.clockwork.happenings
        while world.clockwork.now < 60.0:
            world.clockwork.step()
            after = left_behind(world)
            if world.clockwork.happenings == happenings:
                assert after == before
            before, happenings = after, world.clockwork.happenings
        world.bury()
    assert happenings > 100


def left_behind(world: World) -> object:
    """Return all that counts once the workers are dead."""
    sent = [[*map(len, worker.producer._lines.values())] for worker in world.workers]
    wires = [list(worker.process._wire) for worker in world.workers]
    kept = (dict(world.storage.contents), {key: dict(entry) for key, entry in world.storage.entries.items()})
    log = {place: len(records) for place, records in world.log._records.items() if records}
    return (
        sent,
        wires,
        kept,
        log,
        dict(world.log.committed),
        len(world.providers.tasks),
        list(world.group._seats),
    )
