"""Collects SVG elements and rasterizes them."""

import io
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import resvg_py
from numpy.typing import NDArray
from PIL import Image

from sceneloom.providers.drawing.colours import Colour

Point = tuple[float, float]


class Stop(NamedTuple):
    """A colour along a gradient, and how much of it shows."""

    colour: Colour
    opacity: float = 1.0


class Canvas:
    """One transparent layer of a picture, measured in pixels."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        self.unit = min(width, height)
        self._definitions: list[str] = []
        self._elements: list[str] = []

    @property
    def empty(self) -> bool:
        """Whether nothing has been drawn."""
        return not self._elements

    def add(self, element: str) -> None:
        """Put an SVG element on top; its text must be escaped already."""
        self._elements.append(element)

    def shape(
        self, points: Iterable[Point], fill: Colour | str, *, opacity: float = 1.0, curved: bool = False
    ) -> None:
        """Fill the outline of *points*, through their middles in curves if *curved*."""
        paint = fill if isinstance(fill, str) else fill.css()
        outline = _curve(list(points)) if curved else _polygon(points)
        self.add(f'<path d="{outline}" fill="{paint}"{_opacity("fill", opacity)}/>')

    def line(self, points: Iterable[Point], stroke: Colour, width: float, *, opacity: float = 1.0) -> None:
        """Draw a line with round ends."""
        self.add(
            f'<path d="{_polygon(points)[:-1]}" fill="none" stroke="{stroke.css()}" '
            f'stroke-width="{width:.2f}" stroke-linecap="round" stroke-linejoin="round"'
            f"{_opacity('stroke', opacity)}/>"
        )

    def box(self, begin: Point, end: Point, fill: Colour | str, *, opacity: float = 1.0) -> None:
        """Fill the rectangle between two opposite corners."""
        (left, top), (right, bottom) = begin, end
        self.shape([(left, top), (right, top), (right, bottom), (left, bottom)], fill, opacity=opacity)

    def oval(self, centre: Point, wide: float, flat: float, fill: Colour, *, opacity: float = 1.0) -> None:
        """Fill an ellipse with the radii *wide* and *flat*."""
        self.add(
            f'<ellipse cx="{centre[0]:.1f}" cy="{centre[1]:.1f}" rx="{wide:.1f}" ry="{flat:.1f}" '
            f'fill="{fill.css()}"{_opacity("fill", opacity)}/>'
        )

    def disc(self, centre: Point, radius: float, fill: Colour | str, *, opacity: float = 1.0) -> None:
        """Fill a circle."""
        paint = fill if isinstance(fill, str) else fill.css()
        self.add(
            f'<circle cx="{centre[0]:.1f}" cy="{centre[1]:.1f}" r="{radius:.2f}" fill="{paint}"'
            f"{_opacity('fill', opacity)}/>"
        )

    def fade(self, begin: Point, end: Point, stops: Sequence[Stop]) -> str:
        """Define a gradient from *begin* to *end* in pixels, to fill shapes with."""
        name = f"g{len(self._definitions)}"
        self._definitions.append(
            f'<linearGradient id="{name}" gradientUnits="userSpaceOnUse" x1="{begin[0]:.1f}" '
            f'y1="{begin[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}">{_stops(stops)}</linearGradient>'
        )
        return f"url(#{name})"

    def glow(self, centre: Point, radius: float, stops: Sequence[Stop]) -> str:
        """Define a gradient from *centre* outwards, to fill shapes with."""
        name = f"g{len(self._definitions)}"
        self._definitions.append(
            f'<radialGradient id="{name}" gradientUnits="userSpaceOnUse" cx="{centre[0]:.1f}" '
            f'cy="{centre[1]:.1f}" r="{radius:.1f}">{_stops(stops)}</radialGradient>'
        )
        return f"url(#{name})"

    def raster(self, fonts: Sequence[str] = ()) -> NDArray[np.uint8]:
        """Return the layer as rows of red, green, blue and opacity."""
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}">'
            f"<defs>{''.join(self._definitions)}</defs>{''.join(self._elements)}</svg>"
        )
        png = resvg_py.svg_to_bytes(svg_string=svg, font_files=list(fonts), skip_system_fonts=True)
        return np.asarray(Image.open(io.BytesIO(bytes(png))).convert("RGBA"))


def _polygon(points: Iterable[Point]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + "Z"


def _curve(points: list[Point]) -> str:
    middles = [
        ((x + next_x) / 2, (y + next_y) / 2)
        for (x, y), (next_x, next_y) in zip(points, points[1:] + points[:1], strict=True)
    ]
    begin = middles[-1]
    turns = "".join(
        f"Q{x:.1f} {y:.1f} {to_x:.1f} {to_y:.1f}"
        for (x, y), (to_x, to_y) in zip(points, middles, strict=True)
    )
    return f"M{begin[0]:.1f} {begin[1]:.1f}{turns}Z"


def _stops(stops: Sequence[Stop]) -> str:
    last = max(1, len(stops) - 1)
    return "".join(
        f'<stop offset="{index / last:.3f}" stop-color="{stop.colour.css()}" '
        f'stop-opacity="{stop.opacity:.3f}"/>'
        for index, stop in enumerate(stops)
    )


def _opacity(paint: str, opacity: float) -> str:
    """Write the opacity of one paint; that of a whole element would cost a layer of its own."""
    return "" if opacity >= 1 else f' {paint}-opacity="{opacity:.3f}"'
