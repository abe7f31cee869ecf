"""Where everything stands in one picture."""

import random
from dataclasses import dataclass, field
from typing import NamedTuple

from sceneloom.providers.drawing.canvas import Canvas, Point, Stop
from sceneloom.providers.drawing.colours import Colour
from sceneloom.providers.drawing.palette import Palette
from sceneloom.providers.drawing.vision import Vision


class Light(NamedTuple):
    """A glow in the air around something bright; strength is between 0 and 1."""

    centre: Point
    radius: float
    colour: Colour
    strength: float


@dataclass(frozen=True)
class Stage:
    """A layer to paint on, and what all painters of one picture agree upon."""

    canvas: Canvas
    vision: Vision
    palette: Palette
    chance: random.Random
    horizon: float
    """Pixels from the top."""
    sun: Point
    focus: float
    """Where the main subject stands, in pixels from the left: away from the sun."""
    lights: list[Light] = field(default_factory=list)

    @property
    def width(self) -> int:
        """Pixels."""
        return self.canvas.width

    @property
    def height(self) -> int:
        """Pixels."""
        return self.canvas.height

    @property
    def unit(self) -> int:
        """The shorter side in pixels, by which things are measured."""
        return self.canvas.unit

    def shine(self, centre: Point, radius: float, colour: Colour, strength: float) -> None:
        """Let *centre* glow as far as *radius* pixels."""
        self.lights.append(Light(centre, radius, colour, strength))

    def misty(self, top: float, bottom: float, nearness: float, *, mist: float = 0.45) -> str:
        """Return a fill that sinks into haze from *top* to *bottom*."""
        above = self.palette.layer(nearness)
        below = above.towards(self.mist, mist)
        return self.canvas.fade((0, top), (0, bottom), (Stop(above), Stop(below)))

    @property
    def mist(self) -> Colour:
        """The colour of the air near the horizon."""
        return self.palette.haze.towards(self.palette.sky[3], 0.55)


def placed(foot: Point, size: float, points: str) -> list[Point]:
    """Read `x,y` pairs in hundredths of *size* pixels around *foot*, y upwards."""
    pairs = (pair.split(",") for pair in points.split())
    return [(foot[0] + float(x) * size / 100, foot[1] - float(y) * size / 100) for x, y in pairs]
