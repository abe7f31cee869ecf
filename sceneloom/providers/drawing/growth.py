"""Trees and grass."""

import math

from sceneloom.providers.drawing.canvas import Point
from sceneloom.providers.drawing.stage import Stage
from sceneloom.providers.drawing.terrain import ground, height_at, hill_line


def forest(stage: Stage, *, first: int = 0, last: int = 5) -> list[Point]:
    """Draw the rows of firs from *first* up to *last* of five, and return the line the last stands on."""
    line: list[Point] = []
    for layer in range(first, last):
        near = layer / 4
        base = stage.horizon + stage.height * (-0.05 + 0.40 * near**1.3)
        line = hill_line(stage, base, stage.unit * 0.03)
        _row(stage, line, near)
        ground(stage, line, 0.14 + 0.8 * near, mist=0.6 * (1 - near) ** 1.5)
    return line


def _row(stage: Stage, line: list[Point], near: float) -> None:
    """Draw firs along *line*, leaving a glade in the middle when they are near."""
    tall = stage.unit * (0.10 + 0.26 * near**1.2)
    place = -tall * 0.3
    while place < stage.width + tall * 0.3:
        glade = near > 0.4 and abs(place - stage.width * 0.5) < stage.width * 0.30 * near
        if not glade or stage.chance.random() < 0.12:
            size = tall * stage.chance.uniform(0.55, 1.1) * (0.45 if glade else 1)
            fir(stage, (place, height_at(line, place) + tall * 0.05), size, 0.12 + 0.8 * near)
        place += tall * (0.16 + 0.12 * near) * stage.chance.uniform(0.6, 1.8)


def frame(stage: Stage) -> None:
    """Draw tall dark firs at both edges, close to the viewer."""
    for place, share in ((-0.01, 0.80), (0.10, 0.52), (1.01, 0.72), (0.92, 0.46)):
        tall = stage.height * share * stage.chance.uniform(0.9, 1.05)
        fir(stage, (stage.width * place, stage.height * 1.02), tall, 0.98, wide=0.24)


def fir(stage: Stage, foot: Point, tall: float, nearness: float, *, wide: float = 0.42) -> None:
    """Draw a fir of *tall* pixels that stands on *foot*."""
    x, y = foot
    chance = stage.chance
    tiers = min(22, 4 + int(14 * tall / stage.unit))
    left: list[Point] = []
    right: list[Point] = []
    for tier in range(tiers):
        share = (tier + 1) / tiers
        level = y - tall * (1 - share) - tall * 0.04
        reach = tall * wide * 0.5 * share**0.85
        for side, points in ((-1, left), (1, right)):
            spread = reach * chance.uniform(0.82, 1.12)
            points.append((x + side * spread, level + tall * 0.03 * chance.uniform(0, 1.4)))
            points.append((x + side * spread * 0.5, level - tall * 0.015))
    trunk = tall * 0.02
    outline = [(x, y - tall), *right, (x + trunk, y - tall * 0.05), (x + trunk, y), (x - trunk, y)]
    outline += [(x - trunk, y - tall * 0.05), *reversed(left)]
    stage.canvas.shape(outline, stage.misty(y - tall, y, nearness, mist=0.5 * (1 - nearness)))


def leafy(stage: Stage, foot: Point, tall: float, nearness: float) -> None:
    """Draw a broad tree of *tall* pixels that stands on *foot*."""
    x, y = foot
    chance, canvas = stage.chance, stage.canvas
    bark = stage.palette.layer(min(1.0, nearness + 0.15))
    trunk = tall * 0.045
    canvas.shape(
        [
            (x - trunk * 1.5, y),
            (x - trunk * 0.6, y - tall * 0.5),
            (x + trunk * 0.6, y - tall * 0.5),
            (x + trunk * 1.5, y),
        ],
        bark,
    )
    side = 1 if stage.sun[0] > x else -1
    for lit in (0, 1):
        fill = stage.palette.lit(nearness * 0.8) if lit else stage.palette.layer(nearness)
        for _ in range(26 - 8 * lit):
            angle, out = chance.uniform(0, math.tau), math.sqrt(chance.random()) * (1 - 0.35 * lit)
            centre = (
                x + tall * (0.27 * out * math.cos(angle) + side * 0.10 * lit),
                y - tall * (0.66 + 0.22 * out * math.sin(angle) + 0.07 * lit),
            )
            canvas.disc(
                centre, tall * chance.uniform(0.07, 0.13) * (1 - 0.4 * lit), fill, opacity=0.16 if lit else 1
            )


def grass(stage: Stage, *, nearness: float = 1.0) -> None:
    """Draw blades and a few flowers along the lower edge."""
    chance, unit = stage.chance, stage.unit
    blades: list[str] = []
    for _ in range(round(110 * stage.width / unit)):
        x, y = chance.uniform(0, stage.width), stage.height * chance.uniform(0.97, 1.02)
        tall, lean, thick = unit * chance.uniform(0.03, 0.11), unit * chance.gauss(0, 0.02), unit * 0.004
        blades.append(
            f"M{x - thick:.1f} {y:.1f}Q{x:.1f} {y - tall * 0.6:.1f} {x + lean:.1f} {y - tall:.1f}"
            f"Q{x + thick:.1f} {y - tall * 0.5:.1f} {x + thick:.1f} {y:.1f}Z"
        )
    stage.canvas.add(f'<path d="{"".join(blades)}" fill="{stage.palette.layer(nearness).css()}"/>')
