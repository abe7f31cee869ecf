"""What a scenario is, and the list of them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.faults.arena import Arena

Play = Callable[[Arena], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """One fault, how it is played, and how often."""

    number: int
    name: str
    play: Play
    runs: int = 1
    """How often in the short form; the long form goes on for as long as it is given."""
    nodes: int = 1
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the arena that are not the usual ones."""
    without: str = ""
    """The protection without which this scenario must fail."""


SCENARIOS: Final[dict[int, Scenario]] = {}


def scenario(number: int, name: str, **more: Any) -> Callable[[Play], Play]:
    """Put what is decorated on the list."""

    def enlist(play: Play) -> Play:
        if number in SCENARIOS:
            raise ValueError(f"there are two scenarios {number}")
        SCENARIOS[number] = Scenario(number=number, name=name, play=play, **more)
        return play

    return enlist
