"""A title in the upper part of a picture, in any script the Noto fonts of manimgx_fonts have."""

import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

import manimgx_fonts

from sceneloom.providers.drawing.canvas import Canvas

_FOLDER: Final = Path(manimgx_fonts.__file__).parent
_WIDE: Final = 0.80
_LINES: Final = 4


def fonts() -> Sequence[str]:
    """Return the paths of the font files that titles need."""
    return tuple(str(path) for path in sorted(_FOLDER.glob("Noto*.ttf")) if "Italic" not in path.name)


def write_title(canvas: Canvas, title: str) -> None:
    """Write *title*, broken into at most four lines, centred below the upper edge."""
    size = canvas.unit * 0.064
    letters = int(canvas.width * _WIDE / (size * 0.56))
    direction = ' direction="rtl"' if _is_right_to_left(title) else ""
    for index, line in enumerate(list(_lines(clean(title), letters))[:_LINES]):
        canvas.add(
            f'<text x="{canvas.width / 2:.0f}" y="{canvas.height * 0.11 + index * size * 1.32:.0f}" '
            f'text-anchor="middle"{direction} font-family="Noto Sans, Noto Sans Arabic, Noto Emoji" '
            f'font-weight="700" font-size="{size:.0f}" fill="#fff" stroke="#000" stroke-opacity="0.4" '
            f'stroke-width="{size * 0.09:.1f}" paint-order="stroke" stroke-linejoin="round">'
            f"{escape(line)}</text>"
        )


def clean(text: str) -> str:
    """Turn white space to single spaces and drop signs XML cannot hold, keeping joiners."""
    spaced = " ".join(text.split())
    return "".join(sign for sign in spaced if unicodedata.category(sign) not in {"Cc", "Cs", "Cn", "Co"})


def _lines(text: str, letters: int) -> Iterator[str]:
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > letters:
            yield line
            line = word
        else:
            line = f"{line} {word}".strip()
    yield line


def _is_right_to_left(text: str) -> bool:
    strong = (unicodedata.bidirectional(sign) for sign in text)
    return next((kind != "L" for kind in strong if kind in {"L", "R", "AL"}), False)
