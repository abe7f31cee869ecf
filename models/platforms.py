"""Where a video will be shown, how long it may be there, and how long a script takes to speak."""

import re
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from models.shapes import AspectRatio

WORDS_PER_SECOND: Final = 2.5
LETTERS_PER_SECOND: Final = 4.0
"""The pace of scripts that write no spaces between words."""

_UNSPACED: Final = re.compile(
    "[\u3005\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff]"
)
_HAS_LETTER: Final = re.compile(r"\w")


class Platform(StrEnum):
    """A place that shows short videos."""

    SHORTS = "shorts"
    REELS = "reels"
    TIKTOK = "tiktok"
    YOUTUBE = "youtube"

    @property
    def limit_seconds(self) -> int:
        """The longest video that the platform accepts as one of its kind."""
        return _LIMITS[self]


_LIMITS: Final = MappingProxyType(
    {Platform.SHORTS: 180, Platform.REELS: 900, Platform.TIKTOK: 600, Platform.YOUTUBE: 3600}
)
_USUAL: Final = MappingProxyType(
    {
        AspectRatio.PORTRAIT: Platform.SHORTS,
        AspectRatio.SQUARE: Platform.REELS,
        AspectRatio.LANDSCAPE: Platform.YOUTUBE,
    }
)


def usual_platform(ratio: AspectRatio) -> Platform:
    """Return the platform that a video of *ratio* is most likely made for."""
    return _USUAL[ratio]


def spoken_seconds(text: str) -> float:
    """Estimate how long *text* takes to speak: 2.5 words a second, or 4 Chinese or Japanese letters."""
    spaced, letters = _UNSPACED.subn(" ", text)
    words = sum(1 for token in spaced.split() if _HAS_LETTER.search(token))
    return words / WORDS_PER_SECOND + letters / LETTERS_PER_SECOND
