"""Colours as red, green and blue between 0 and 1."""

from typing import NamedTuple


class Colour(NamedTuple):
    """A colour in sRGB."""

    red: float
    green: float
    blue: float

    def towards(self, other: "Colour", share: float) -> "Colour":
        """Mix in *share* (0 to 1) of *other*."""
        return Colour(*(mine + (theirs - mine) * share for mine, theirs in zip(self, other, strict=True)))

    def css(self) -> str:
        """Write the colour as `#rrggbb`."""
        return "#" + "".join(f"{round(255 * min(1.0, max(0.0, part))):02x}" for part in self)


def colour(code: str) -> Colour:
    """Read `rrggbb`."""
    return Colour(*(int(code[index : index + 2], 16) / 255 for index in (0, 2, 4)))


WHITE = colour("ffffff")
BLACK = colour("000000")
LAMP = colour("ffe2a0")
RED = colour("b8402f")
