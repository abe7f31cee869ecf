"""What may stand in a landscape."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from sceneloom.providers.drawing import buildings, travellers
from sceneloom.providers.drawing.canvas import Point
from sceneloom.providers.drawing.growth import leafy
from sceneloom.providers.drawing.stage import Stage, placed


class Subject(NamedTuple):
    """Paints itself on a foot point at a size in pixels."""

    paint: Callable[[Stage, Point, float], None]
    size: float
    """A share of the picture's shorter side."""
    afloat: bool = False
    """Needs no ground under its feet."""


def birds(stage: Stage, foot: Point, size: float) -> None:
    """Draw a loose flock high in the sky."""
    chance, ink = stage.chance, stage.palette.near.towards(stage.palette.haze, 0.15)
    side = 1 if foot[0] < stage.width / 2 else -1
    for index in range(9):
        x = foot[0] + side * size * (index * 0.16 + chance.uniform(-0.05, 0.05))
        y = stage.height * 0.17 + size * (abs(index - 3) * 0.07 + chance.uniform(-0.04, 0.04))
        lift, wing = chance.uniform(24, 52), size * chance.uniform(0.07, 0.12)
        outline = (
            f"-100,{lift} -60,58 -25,50 0,0 25,52 60,60 100,{lift * 0.8} 55,42 25,26 0,-18 -25,24 -55,40"
        )
        stage.canvas.shape(placed((x, y), wing, outline), ink, curved=True)


def tree(stage: Stage, foot: Point, size: float) -> None:
    """Draw a broad old tree."""
    leafy(stage, foot, size * 1.15, 0.85)


SUBJECTS: Final[Mapping[str, Subject]] = {
    "lighthouse": Subject(buildings.lighthouse, 0.60, afloat=True),
    "house": Subject(buildings.house, 0.36),
    "castle": Subject(buildings.castle, 0.50),
    "bridge": Subject(buildings.bridge, 0.50, afloat=True),
    "boat": Subject(travellers.boat, 0.40, afloat=True),
    "balloon": Subject(travellers.balloon, 0.52, afloat=True),
    "rocket": Subject(travellers.rocket, 0.46, afloat=True),
    "train": Subject(travellers.train, 0.50),
    "person": Subject(travellers.person, 0.60),
    "camels": Subject(travellers.camels, 0.50),
    "birds": Subject(birds, 0.60, afloat=True),
    "tree": Subject(tree, 0.46),
}
