"""The settings: what each puts behind the subjects of a picture, and before them."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from sceneloom.providers.drawing import cosmos, growth, terrain, town
from sceneloom.providers.drawing.canvas import Point
from sceneloom.providers.drawing.stage import Stage


class Landscape(NamedTuple):
    """Paints what lies behind the subjects, and says where they stand; then what lies before them."""

    far: Callable[[Stage], list[Point]]
    near: Callable[[Stage], None]


def _far_sea(stage: Stage) -> list[Point]:
    line: list[Point] = []
    for layer, rise in enumerate((0.035, 0.018)):
        line = terrain.hill_line(stage, stage.horizon - stage.height * rise * 0.6, stage.height * rise * 0.5)
        terrain.ground(stage, line, 0.12 + 0.22 * layer, mist=0.5)
    return line


def _far_mountains(stage: Stage) -> list[Point]:
    snow = 0.42 if stage.vision.weather == "snow" else 0.26
    for layer in range(3):
        height = stage.height * (0.30 - 0.055 * layer)
        base = stage.horizon + stage.height * (0.02 + 0.06 * layer)
        terrain.range_of_peaks(stage, base, height, 0.12 + 0.26 * layer, snow=snow * (1 - 0.3 * layer))
    return terrain.hills(stage, (0.42,))[-1]


def _near_mountains(stage: Stage) -> None:
    terrain.hills(stage, (0.68, 1.0))


def _far_meadow(stage: Stage) -> list[Point]:
    lines = terrain.hills(stage, (0.0, 0.22, 0.42))
    _orchard(stage, lines[1], 0.35)
    return lines[-1]


def _near_meadow(stage: Stage) -> None:
    line = terrain.hills(stage, (0.62,))[-1]
    _orchard(stage, line, 0.62)
    terrain.hills(stage, (0.85, 1.0))
    growth.grass(stage)


def _orchard(stage: Stage, line: list[Point], near: float) -> None:
    for _ in range(7):
        x, y = stage.chance.choice(line)
        if abs(x - stage.focus) > stage.width * 0.16:
            growth.leafy(stage, (x, y + 4), stage.unit * (0.05 + 0.14 * near**2), near)


def _near_forest(stage: Stage) -> None:
    growth.forest(stage, first=3)
    growth.frame(stage)


def _near_desert(stage: Stage) -> None:
    terrain.dunes(stage, first=2)


def _far_city(stage: Stage) -> list[Point]:
    town.skyline(stage, last=2)
    return [(0.0, stage.horizon + stage.height * 0.12)]


def _far_space(stage: Stage) -> list[Point]:
    cosmos.planets(stage)
    return [(0.0, stage.height * 0.76)]


def _far_network(stage: Stage) -> list[Point]:
    cosmos.network(stage)
    return [(0.0, stage.height * 0.62)]


def _nothing(_stage: Stage) -> None:
    """Leave the foreground empty."""


LANDSCAPES: Final[Mapping[str, Landscape]] = {
    "sea": Landscape(_far_sea, _nothing),
    "mountains": Landscape(_far_mountains, _near_mountains),
    "meadow": Landscape(_far_meadow, _near_meadow),
    "forest": Landscape(lambda stage: growth.forest(stage, last=3), _near_forest),
    "desert": Landscape(lambda stage: terrain.dunes(stage, last=2), _near_desert),
    "city": Landscape(_far_city, lambda stage: town.skyline(stage, first=2)),
    "space": Landscape(_far_space, _nothing),
    "network": Landscape(_far_network, _nothing),
}
