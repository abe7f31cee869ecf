"""Hills, mountains and dunes, from the far haze to the near dark."""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from sceneloom.providers.drawing.canvas import Point, Stop
from sceneloom.providers.drawing.colours import WHITE, Colour
from sceneloom.providers.drawing.stage import Stage


def hill_line(stage: Stage, base: float, swing: float, *, calm: float = 1.2) -> list[Point]:
    """Return a soft line across the picture around *base*; higher *calm* makes fewer bumps."""
    chance, width = stage.chance, stage.width
    waves = [
        (chance.uniform(0.6, 1.5) * (order + 1), chance.uniform(0, math.tau), swing / (order + 1) ** calm)
        for order in range(5)
    ]
    spread = width / stage.unit
    steps = round(48 * spread)
    return [
        (
            width * step / steps,
            base + sum(a * math.sin(f * 4 * spread * step / steps + phase) for f, phase, a in waves),
        )
        for step in range(steps + 1)
    ]


def ground(stage: Stage, line: list[Point], nearness: float, *, mist: float = 0.45) -> None:
    """Fill everything below *line*: a band that sinks into mist, and below it one colour, drawn faster."""
    top = min(y for _, y in line)
    bottom = max(max(y for _, y in line) + stage.unit * 0.12, top + stage.unit * 0.2)
    right, low = float(stage.width), float(stage.height)
    band = [*line, (right, bottom + 1), (0.0, bottom + 1)]
    stage.canvas.shape(band, stage.misty(top, bottom, nearness, mist=mist))
    if bottom < low:
        solid = stage.palette.layer(nearness).towards(stage.mist, mist)
        stage.canvas.shape([(0.0, bottom), (right, bottom), (right, low), (0.0, low)], solid)
    _rim(stage, line, nearness)


def _rim(stage: Stage, line: list[Point], nearness: float) -> None:
    """Let the edge of the ground catch the light below the sun."""
    thick, glare = stage.unit * (0.0022 + 0.0025 * nearness), stage.palette.light
    lower = [(x, y + thick) for x, y in reversed(line)]
    reach = stage.unit * 0.75
    strength = 0.28 if stage.palette.dark else 0.45
    stops = (Stop(glare, 0.0), Stop(glare, strength), Stop(glare, 0.0))
    fill = stage.canvas.fade((stage.sun[0] - reach, 0), (stage.sun[0] + reach, 0), stops)
    stage.canvas.shape([*line, *lower], fill)


def height_at(line: list[Point], x: float) -> float:
    """Return how far from the top *line* passes *x*, in pixels."""
    return min(line, key=lambda point: abs(point[0] - x))[1]


def hills(stage: Stage, nearness: Sequence[float]) -> list[list[Point]]:
    """Draw hills, each at its share of the way from the horizon to us, and return their lines."""
    lines = []
    for near in nearness:
        base = stage.horizon + stage.height * (-0.06 + 0.42 * near**1.4)
        line = hill_line(stage, base, stage.unit * (0.045 + 0.035 * near))
        ground(stage, line, 0.12 + 0.8 * near, mist=0.5 * (1 - near))
        lines.append(line)
    return lines


class _Peak(NamedTuple):
    """A mountain: both edges and the side that faces the sun, each from the summit down."""

    left: list[Point]
    right: list[Point]
    lit: list[Point]


def range_of_peaks(stage: Stage, base: float, height: float, nearness: float, *, snow: float) -> None:
    """Draw overlapping peaks of about *height* pixels that rise from *base*; *snow* covers that share."""
    chance, span = stage.chance, height * 1.15
    places = [x * span * 0.62 for x in range(-1, math.ceil(stage.width / (span * 0.62)) + 2)]
    chance.shuffle(places)
    for place in places:
        summit = (place + chance.uniform(-0.2, 0.2) * span, base - height * chance.uniform(0.55, 1.0))
        peak = _peak(stage, summit, base, span * chance.uniform(0.8, 1.15))
        outline = [*reversed(peak.left), *peak.right]
        stage.canvas.shape(outline, stage.misty(summit[1], base, nearness, mist=0.75))
        _lit_face(stage, peak, base, stage.palette.lit(nearness))
        _snow_cap(stage, peak, max(3, round(len(peak.left) * snow)))


def _peak(stage: Stage, summit: Point, base: float, half: float) -> _Peak:
    swing = (base - summit[1]) * 0.10
    left = _jagged(stage, summit, (summit[0] - half, base), swing)
    right = _jagged(stage, summit, (summit[0] + half, base), swing)
    return _Peak(left, right, right if stage.sun[0] > summit[0] else left)


def _lit_face(stage: Stage, peak: _Peak, base: float, face: Colour) -> None:
    (x, top), half = peak.left[0], peak.right[-1][0] - peak.left[0][0]
    foot = (x + stage.chance.uniform(-0.15, 0.15) * half, base)
    edge = _jagged(stage, (x, top), foot, (base - top) * 0.28)
    bright = stage.canvas.fade((0, top), (0, base), (Stop(face, 0.9), Stop(face, 0.25), Stop(face, 0)))
    stage.canvas.shape([*edge, *reversed(peak.lit)], bright)


def _snow_cap(stage: Stage, peak: _Peak, count: int) -> None:
    """Whiten the first *count* points of both edges, down to a row of teeth."""
    left, right, lit = peak
    (x_right, y_right), (x_left, y_left) = right[count - 1], left[count - 1]
    tall = y_right - left[0][1]
    teeth = [
        (
            x_right + (x_left - x_right) * step / 7,
            y_right
            + (y_left - y_right) * step / 7
            + (-0.5 if step % 2 else 0.3) * tall * stage.chance.uniform(0.4, 1),
        )
        for step in range(1, 7)
    ]
    white = WHITE.towards(stage.palette.haze, 0.45 if stage.palette.dark else 0.22)
    stage.canvas.shape([*reversed(left[:count]), *right[:count], *teeth], white, opacity=0.75)
    glare = WHITE.towards(stage.palette.light, 0.5)
    stage.canvas.shape([*lit[: count - 1], (left[0][0], lit[count - 2][1])], glare, opacity=0.6)


def _jagged(stage: Stage, begin: Point, end: Point, swing: float) -> list[Point]:
    """Break the line from *begin* to *end* by moving its middles, again and again."""
    points = [begin, end]
    for _ in range(5):
        broken = [begin]
        for (x0, y0), (x1, y1) in itertools.pairwise(points):
            shift = stage.chance.uniform(-swing, swing)
            broken += [((x0 + x1) / 2 + shift, (y0 + y1) / 2 + shift * 0.25), (x1, y1)]
        points, swing = broken, swing * 0.52
    return points


def dunes(stage: Stage, *, first: int = 0, last: int = 5) -> list[Point]:
    """Draw the rows of dunes from *first* up to *last* of five, and return the last crest line."""
    line: list[Point] = []
    for layer in range(first, last):
        near = layer / 4
        base = stage.horizon + stage.height * (-0.035 + 0.36 * near**1.3)
        line = hill_line(stage, base, stage.unit * (0.03 + 0.05 * near), calm=2.2)
        ground(stage, line, 0.06 + 0.50 * near, mist=0.20 * (1 - near))
        _shades(stage, line, near)
    return line


def _shades(stage: Stage, line: list[Point], near: float) -> None:
    """Darken the side of each crest that looks away from the sun, along an edge the wind has curved."""
    crests = [i for i in range(1, len(line) - 1) if line[i - 1][1] > line[i][1] <= line[i + 1][1]]
    dark = stage.palette.layer(0.5 + 0.5 * near).towards(stage.palette.sky[0], 0.25)
    for crest in crests:
        x, y = line[crest]
        away = -1 if stage.sun[0] > x else 1
        end = crest
        while 0 <= end + away < len(line) and line[end + away][1] >= line[end][1]:
            end += away
        side = line[crest : end + 1] if away > 0 else line[end : crest + 1][::-1]
        if len(side) < 4:
            continue
        reach, depth = abs(side[-1][0] - x), stage.unit * (0.10 + 0.22 * near)
        sway = stage.chance.uniform(0.06, 0.16)
        edge = [
            (
                x + away * reach * (t**1.6 + sway * math.sin(math.tau * t) * (1 - t)),
                y + (side[-1][1] - y) * t + depth * 0.7 * math.sin(math.pi * t**0.8),
            )
            for t in (step / 18 for step in range(1, 19))
        ]
        fill = stage.canvas.fade((0, y), (0, y + depth), (Stop(dark, 0.80), Stop(dark, 0.0)))
        stage.canvas.shape([*reversed(side), *edge], fill)


def headland(stage: Stage) -> list[Point]:
    """Draw a tongue of land that reaches into the water at the focus, and return its upper edge."""
    side = 0.0 if stage.focus < stage.width / 2 else float(stage.width)
    tip = stage.focus + (stage.focus - side) * 0.75
    level, rise = stage.horizon + stage.height * 0.085, stage.height * 0.055
    steps = [step / 24 for step in range(25)]
    upper = [
        (
            side + (tip - side) * t,
            level - rise * (1 - t**3) - stage.unit * 0.006 * math.sin(t * 9 + stage.focus),
        )
        for t in steps
    ]
    lower = [
        (x, level + stage.height * 0.06 * (1 - t) ** 0.7 + stage.unit * 0.004)
        for t, (x, _) in zip(steps, upper, strict=True)
    ]
    near = stage.palette.layer(0.86)
    fill = stage.canvas.fade((0, level - rise), (0, level + rise), (Stop(stage.palette.lit(0.7)), Stop(near)))
    stage.canvas.shape([*upper, *reversed(lower)], fill)
    return upper
