"""The clock of a process whose wall clock may be set while it works."""

from datetime import datetime, timedelta

import pytest
from structlog.testing import capture_logs

from sceneloom.clock import SLEW, SystemClock
from tests.fakes import START


class Machine:
    """Its wall clock can be set; its steady seconds cannot."""

    def __init__(self) -> None:
        self.wall, self.seconds = START, 100.0

    def passes(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.seconds += seconds

    def set_by(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)

    def clock(self) -> SystemClock:
        return SystemClock(wall=lambda: self.wall, steady=lambda: self.seconds)


def passed(since: datetime, now: datetime) -> float:
    return (now - since).total_seconds()


def test_the_clock_tells_the_wall_clock_where_nobody_sets_it() -> None:
    machine = Machine()
    clock = machine.clock()
    for seconds in (0.0, 0.1, 5.0, 86_400.0):
        machine.passes(seconds)
        assert clock.now() == machine.wall
    assert abs(passed(SystemClock().now(), SystemClock().now())) < 60.0


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_wall_clock_set_by_an_hour_moves_nothing_at_once_and_is_told_once(jump: float) -> None:
    machine = Machine()
    clock = machine.clock()
    before = clock.now()
    machine.set_by(jump)

    with capture_logs() as logs:
        assert clock.now() == before
        machine.passes(10.0)
        assert passed(before, clock.now()) == pytest.approx(10.0, abs=10.0 * SLEW)

    assert [entry["seconds"] for entry in logs if entry["event"] == "clock.jumped"] == [round(jump)]


def test_the_clock_never_goes_backwards_and_comes_to_tell_the_wall_clock_again() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.set_by(-30.0)
    last = clock.now()
    for _ in range(700):
        machine.passes(1.0)
        now = clock.now()
        assert now > last
        last = now

    assert last == machine.wall


def test_a_sleep_of_the_machine_is_time_that_has_passed() -> None:
    machine = Machine()
    clock = machine.clock()
    before = clock.now()
    machine.passes(8 * 3600.0)

    assert passed(before, clock.now()) == 8 * 3600.0
