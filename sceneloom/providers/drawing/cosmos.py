"""Stars and planets, and a sky of connected lights for prompts about machines."""

import itertools
import math
from typing import NamedTuple

from sceneloom.providers.drawing.canvas import Point, Stop
from sceneloom.providers.drawing.colours import BLACK, WHITE, Colour, colour
from sceneloom.providers.drawing.stage import Stage

_WORLDS = tuple(
    (colour(light), colour(dark))
    for light, dark in (
        ("ffd9a0", "8a3b2e"),
        ("a8e0ff", "1f3f86"),
        ("e7c0ff", "54257a"),
        ("c8f0d0", "1d5a58"),
    )
)


def stars(stage: Stage, count: int, *, lowest: float) -> None:
    """Scatter about *count* stars above *lowest* pixels."""
    chance, unit = stage.chance, stage.unit / 1080
    by_shade: dict[float, list[str]] = {0.35: [], 0.6: [], 0.95: []}
    for _ in range(count):
        x, y = chance.uniform(0, stage.width), lowest * chance.random() ** 1.2
        radius = unit * chance.choice((0.7, 0.7, 0.9, 0.9, 1.2, 1.6))
        by_shade[chance.choice(tuple(by_shade))].append(
            f"M{x - radius:.1f} {y:.1f}a{radius:.2f} {radius:.2f} 0 1 0 {2 * radius:.2f} 0"
            f"a{radius:.2f} {radius:.2f} 0 1 0 {-2 * radius:.2f} 0z"
        )
    for shade, dots in by_shade.items():
        stage.canvas.add(f'<path d="{"".join(dots)}" fill="#fff" fill-opacity="{shade}"/>')
    for _ in range(7):
        _spark(
            stage,
            (chance.uniform(0, stage.width), lowest * chance.uniform(0.02, 0.7)),
            unit * chance.uniform(7, 15),
        )


def _spark(stage: Stage, centre: Point, reach: float) -> None:
    halo = stage.canvas.glow(
        centre, reach, (Stop(WHITE, 0.9), Stop(stage.palette.light, 0.18), Stop(WHITE, 0))
    )
    stage.canvas.disc(centre, reach, halo)


def planets(stage: Stage) -> None:
    """Draw one large world, its moon, and the curve of the ground we stand on."""
    chance, unit = stage.chance, stage.unit
    worlds = chance.sample(_WORLDS, 3)
    centre = (stage.focus, stage.height * chance.uniform(0.26, 0.34))
    radius = unit * chance.uniform(0.17, 0.23)
    ringed = chance.random() < 0.6
    tilt = chance.uniform(-28, -12)
    if ringed:
        _ring(stage, centre, radius, tilt, front=False)
    _world(stage, centre, radius, worlds[0])
    if ringed:
        _ring(stage, centre, radius, tilt, front=True)
    side = 1 if centre[0] < stage.width / 2 else -1
    _world(stage, (centre[0] + side * radius * 2.1, centre[1] - radius * 1.1), radius * 0.24, worlds[1])
    _ground(stage, worlds[2][0])


def _world(stage: Stage, centre: Point, radius: float, shades: tuple[Colour, Colour]) -> None:
    light, dark = shades
    canvas, chance, (x, y) = stage.canvas, stage.chance, centre
    towards = math.atan2(stage.sun[1] - y, stage.sun[0] - x)
    lit = (x + math.cos(towards) * radius * 0.55, y + math.sin(towards) * radius * 0.55)
    stage.shine(centre, radius * 1.9, light, 0.30)
    stops = (Stop(light), Stop(light.towards(dark, 0.45)), Stop(dark), Stop(dark.towards(BLACK, 0.85)))
    canvas.disc(centre, radius, canvas.glow(lit, radius * 1.75, stops))
    clip = f"w{round(x)}-{round(radius)}"
    canvas.add(f'<clipPath id="{clip}"><circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/></clipPath>')
    canvas.add(f'<g clip-path="url(#{clip})"><g transform="rotate(-14 {x:.1f} {y:.1f})">')
    for level in range(-5, 6):
        band = (x, y + radius * (level / 6 + chance.uniform(-0.05, 0.05)))
        flat = radius * chance.uniform(0.02, 0.07)
        canvas.oval(band, radius * 1.1, flat, dark.towards(light, chance.random()), opacity=0.22)
    canvas.add("</g></g>")


def _ground(stage: Stage, shade: Colour) -> None:
    """Draw the curve of a dusty world below us, its edge alight."""
    top, radius = stage.height * 0.73, max(stage.width, stage.height) * 1.4
    centre = (stage.width * 0.42, top + radius)
    soil = shade.towards(stage.palette.near, 0.62)
    fill = stage.canvas.fade(
        (0, top), (0, stage.height), (Stop(soil.towards(shade, 0.45)), Stop(soil.towards(BLACK, 0.72)))
    )
    stage.canvas.disc(centre, radius, fill)
    for _ in range(26):
        level = stage.chance.random() ** 1.5
        y = top + stage.height * (0.035 + 0.22 * level)
        wide = stage.unit * stage.chance.uniform(0.01, 0.055) * (0.4 + level)
        x = stage.chance.uniform(0, stage.width)
        for shift, tint, opacity in ((0.0, soil.towards(BLACK, 0.55), 0.55), (wide * 0.12, shade, 0.22)):
            stage.canvas.oval((x, y + shift), wide, wide * 0.26, tint, opacity=opacity)
    stage.shine((stage.sun[0], top), stage.unit * 0.9, shade.towards(stage.palette.light, 0.5), 0.55)


def _ring(stage: Stage, centre: Point, radius: float, tilt: float, *, front: bool) -> None:
    """Draw the half of a ring that lies before or behind the world."""
    x, y = centre
    ice = stage.palette.light.towards(_WORLDS[0][0], 0.6).css()
    for reach, width, opacity in ((1.45, 0.06, 0.55), (1.66, 0.11, 0.7), (1.88, 0.04, 0.45)):
        wide, flat = radius * reach, radius * reach * 0.26
        sweep = 0 if front else 1
        stage.canvas.add(
            f'<path d="M{x - wide:.1f} {y:.1f}A{wide:.1f} {flat:.1f} 0 0 {sweep} {x + wide:.1f} {y:.1f}" '
            f'fill="none" stroke="{ice}" stroke-width="{radius * width:.1f}" stroke-opacity="{opacity}" '
            f'transform="rotate({tilt:.1f} {x:.1f} {y:.1f})"/>'
        )


class _Node(NamedTuple):
    """A light of the network: where it hangs, and how near it is between 0 and 1."""

    x: float
    y: float
    near: float


def network(stage: Stage) -> None:
    """Draw lights joined by lines, the nearer the brighter, with signals on their way."""
    chance, unit = stage.chance, stage.unit
    glow = chance.choice((colour("58d6ff"), colour("8f8cff"), colour("4ff0c0")))
    nodes = _scattered(stage)
    for first, second in itertools.combinations(nodes, 2):
        _link(stage, first, second, glow)
    for x, y, near in nodes:
        _light(stage, (x, y), unit * (0.012 + 0.05 * near**2), glow, 0.35 + 0.6 * near)
    hub = (stage.focus, stage.height * 0.34)
    _light(stage, hub, unit * 0.30, glow, 0.75)
    for ring in (0.11, 0.15, 0.21):
        stage.canvas.add(
            f'<circle cx="{hub[0]:.1f}" cy="{hub[1]:.1f}" r="{unit * ring:.1f}" fill="none" '
            f'stroke="{glow.towards(WHITE, 0.4).css()}" stroke-width="{unit * 0.003:.1f}" '
            f'stroke-dasharray="{unit * chance.uniform(0.05, 0.2):.1f} {unit * 0.02:.1f}" '
            'stroke-opacity="0.75"/>'
        )
    stage.canvas.disc(hub, unit * 0.05, WHITE.towards(glow, 0.25))


def _scattered(stage: Stage) -> list[_Node]:
    """Put one node into each cell of a loose grid."""
    chance = stage.chance
    columns, rows = round(5 * stage.width / stage.unit), round(5 * stage.height / stage.unit)
    wide, tall = stage.width / columns, stage.height / rows
    return [
        _Node(
            (column + chance.uniform(0.15, 0.85)) * wide,
            (row + chance.uniform(0.15, 0.85)) * tall,
            chance.random(),
        )
        for column in range(columns)
        for row in range(rows)
    ]


def _link(stage: Stage, first: _Node, second: _Node, glow: Colour) -> None:
    """Join two nodes that are close to each other, a signal between some of them."""
    unit, reach = stage.unit, stage.unit * 0.30
    length = math.hypot(first.x - second.x, first.y - second.y)
    if length >= reach:
        return
    near = (first.near + second.near) / 2
    opacity = (0.15 + 0.6 * near) * (1 - length / reach) + 0.06
    stage.canvas.line([first[:2], second[:2]], glow, unit * (0.0008 + 0.003 * near), opacity=opacity)
    if stage.chance.random() < 0.25:
        share = stage.chance.random()
        place = (first.x + (second.x - first.x) * share, first.y + (second.y - first.y) * share)
        _light(stage, place, unit * 0.014, colour("ffb45c"), 0.9)


def _light(stage: Stage, centre: Point, radius: float, tint: Colour, opacity: float) -> None:
    stage.shine(centre, radius * 1.5, tint, opacity)
    stage.canvas.disc(centre, radius * 0.16, WHITE.towards(tint, 0.3), opacity=opacity)
