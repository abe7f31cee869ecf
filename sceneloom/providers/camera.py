"""Moves a camera over a picture, as expressions for ffmpeg's perspective filter.

A move has a beginning and an end. Each names where the camera looks and how much it is turned, so that the
near side of the picture grows and the far side shrinks.
"""

import random
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple


class View(NamedTuple):
    """Where a camera looks: shares of the picture's width and height, from its middle."""

    zoom: float
    across: float = 0.0
    down: float = 0.0
    turn: float = 0.0
    """Positive turns to the right: the right edge comes closer."""
    tilt: float = 0.0
    """Positive looks up: the upper edge comes closer."""


class Move(NamedTuple):
    """The first and the last view of a clip."""

    begin: View
    end: View


def _push_in(side: int, slant: float) -> Move:
    return Move(View(1.10, turn=0.010 * side), View(1.30, side * 0.02, slant - 0.04, turn=-0.012 * side))


def _pull_out(side: int, slant: float) -> Move:
    return Move(View(1.32, side * 0.03, slant - 0.05, tilt=0.014), View(1.10, tilt=-0.008))


def _truck(side: int, slant: float) -> Move:
    return Move(
        View(1.22, -side * 0.07, slant, turn=0.012 * side),
        View(1.22, side * 0.07, -slant, turn=-0.012 * side),
    )


def _crane(side: int, slant: float) -> Move:
    return Move(View(1.24, slant, 0.06, tilt=-0.014), View(1.20, side * 0.02, -0.06, tilt=0.014))


def _orbit(side: int, slant: float) -> Move:
    return Move(
        View(1.16, side * 0.03, slant, turn=0.028 * side), View(1.20, -side * 0.04, 0.0, turn=-0.028 * side)
    )


_MOVES: Final[Mapping[str, Callable[[int, float], Move]]] = {
    "push in": _push_in,
    "pull out": _pull_out,
    "truck": _truck,
    "crane": _crane,
    "orbit": _orbit,
}


def choose(seed: int) -> Move:
    """Choose a move; the same seed gives the same one."""
    chance = random.Random(seed)  # noqa: S311 -- for looks, not for secrets
    return _MOVES[chance.choice(tuple(_MOVES))](chance.choice((-1, 1)), chance.uniform(-0.015, 0.015))


def perspective(move: Move, frames: int) -> str:
    """Write *move* over *frames* frames as a perspective filter that eases in and out."""
    share = f"(1-cos(PI*min(1,in/{max(1, frames - 1)})))/2"
    corners = [
        f"{axis}{index}='{_place(axis, move, right=index % 2 == 1, low=index > 1, share=share)}'"
        for index in range(4)
        for axis in "xy"
    ]
    return f"perspective={':'.join(corners)}:interpolation=linear:sense=source:eval=frame"


def _place(axis: str, move: Move, *, right: bool, low: bool, share: str) -> str:
    """Write where one corner of the view lies in the picture."""
    begin, end = (_corner(view, right=right, low=low)[axis == "y"] for view in move)
    return f"{'W' if axis == 'x' else 'H'}*({begin:.6f}+({end - begin:.6f})*{share})"


def _corner(view: View, *, right: bool, low: bool) -> tuple[float, float]:
    """Return a corner of *view* as shares of the picture, kept inside it."""
    half = 0.5 / view.zoom
    closer_x = view.tilt * (1 if low else -1)
    closer_y = view.turn * (-1 if right else 1)
    x = 0.5 + view.across + (half + closer_x) * (1 if right else -1)
    y = 0.5 + view.down + (half + closer_y) * (1 if low else -1)
    return min(1.0, max(0.0, x)), min(1.0, max(0.0, y))
