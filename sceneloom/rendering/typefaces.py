"""The fonts that captions are set in: which character each can show, and how wide a text becomes."""

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from fontTools.ttLib import TTFont

_CAPTION_FONT = Path(__file__).parent / "fonts" / "Rubik-Bold.ttf"
_WIDE = 1.0
_NARROW = 0.6


@dataclass(frozen=True, slots=True)
class _Metrics:
    """What is asked of a font again and again; widths are in ems, by code point."""

    family: str
    em: float
    widths: Mapping[int, float]


@dataclass(frozen=True)
class Typeface:
    """A font file, read when it is first asked."""

    path: Path

    @property
    def family(self) -> str:
        """The family name, by which libass finds the font."""
        return _metrics(self.path).family

    @property
    def em(self) -> float:
        """One em as a share of the size that ASS asks for, which is the height of ascent and descent."""
        return _metrics(self.path).em

    def missing(self, text: str) -> frozenset[str]:
        """Return the characters of *text* that leave a mark and have no glyph here."""
        widths = _metrics(self.path).widths
        return frozenset(c for c in text if ord(c) not in widths and _leaves_mark(c))

    def width(self, text: str) -> float:
        """Return about how wide *text* is set in one line, in ems; joined letters come out narrower."""
        widths = _metrics(self.path).widths
        return sum(widths.get(ord(character), _guessed(character)) for character in text)


@cache
def _metrics(path: Path) -> _Metrics:
    with TTFont(path) as font:
        units, heights, advances = font["head"].unitsPerEm, font["OS/2"], font["hmtx"]
        return _Metrics(
            family=str(font["name"].getBestFamilyName()),
            em=units / (heights.usWinAscent + heights.usWinDescent),
            widths={code: advances[glyph][0] / units for code, glyph in font.getBestCmap().items()},
        )


def _guessed(character: str) -> float:
    if not _leaves_mark(character):
        return 0.0
    return _WIDE if unicodedata.east_asian_width(character) in "WF" else _NARROW


def _leaves_mark(character: str) -> bool:
    invisible = unicodedata.category(character) in {"Cc", "Cf", "Zs", "Zl", "Zp"}
    return not invisible and not "\ufe00" <= character <= "\ufe0f"


class FontBook:
    """The caption font, and those that stand in for it where it lacks a script."""

    def __init__(self, first: Typeface, others: tuple[Typeface, ...] = ()) -> None:
        self._faces = (first, *others)

    @property
    def first(self) -> Typeface:
        """The font that captions are set in where it can show them."""
        return self._faces[0]

    def face_for(self, text: str) -> Typeface:
        """Return the first font that shows all of *text*, or the one that lacks least of it."""
        # Most captions never get as far as the other fonts, which then need not be read.
        whole = next((face for face in self._faces if not face.missing(text)), None)
        return whole or min(self._faces, key=lambda face: len(face.missing(text)))

    def width(self, text: str) -> float:
        """Return about how wide *text* is in the font that shows it, in ems."""
        return self.face_for(text).width(text)

    def missing(self, texts: Iterable[str]) -> str:
        """Return the characters that would come out blank or as boxes, sorted."""
        return "".join(sorted(set().union(*(self.face_for(text).missing(text) for text in texts))))


@cache
def caption_fonts() -> FontBook:
    """Return the fonts at hand: ours, and the Noto fonts of the package manimgx-fonts."""
    package = find_spec("manimgx_fonts")
    folders = [] if package is None else (package.submodule_search_locations or [])
    noto = (
        path for folder in folders for path in Path(folder).glob("Noto*.ttf") if "Italic" not in path.name
    )
    return FontBook(Typeface(_CAPTION_FONT), tuple(Typeface(path) for path in sorted(noto)))
