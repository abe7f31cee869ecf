"""The three shapes a video may have."""

from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple


class Size(NamedTuple):
    """A picture's width and height in pixels."""

    width: int
    height: int


class AspectRatio(StrEnum):
    """Width to height of the finished video."""

    PORTRAIT = "9:16"
    LANDSCAPE = "16:9"
    SQUARE = "1:1"

    @property
    def size(self) -> Size:
        """The finished video's size in pixels."""
        return _SIZES[self]


_SIZES: Final = MappingProxyType(
    {
        AspectRatio.PORTRAIT: Size(1080, 1920),
        AspectRatio.LANDSCAPE: Size(1920, 1080),
        AspectRatio.SQUARE: Size(1080, 1080),
    }
)
