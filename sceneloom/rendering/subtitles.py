"""Writes captions as an ASS document for libass, with the spoken word lit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from models.ports import Word
from models.shapes import Size
from sceneloom.rendering.captions import Cue, Shape, cues
from sceneloom.rendering.typefaces import FontBook, Typeface
from sceneloom.rendering.wording import Spoken, is_right_to_left, tidy

_WHITE = "&HFFFFFF&"
_LIT = "&H35C8FF&"  # blue, green, red: a warm yellow
_RAMP = 66
"""Milliseconds in which a word lights up and fades."""
_RIGHT_TO_LEFT_MARK = "\u200f"
_WORD_JOINER = "\u2060"

_HEADER = """\
[Script Info]
ScriptType: v4.00+
PlayResX: {width}
PlayResY: {height}
WrapStyle: 2
ScaledBorderAndShadow: yes
YCbCr Matrix: TV.709

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, Italic, \
Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, Alignment, MarginL, \
MarginR, MarginV, Encoding
Style: Caption,{family},{size},&H00FFFFFF,&H00FFFFFF,&H00181210,&H78000000,-1,0,0,0,100,100,0,0,1,{outline},\
{shadow},2,{side},{side},{bottom},-1

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where captions stand in a frame: inside what the platforms leave free of their own buttons and text."""

    size: Size
    letter: float
    """Height of one em in pixels."""
    side: int
    bottom: int
    lines: int
    words: int

    def shape(self, outline: float) -> Shape:
        """Return the room for one caption, whose letters have an *outline* of so many pixels."""
        return Shape((self.size.width - 2 * self.side - 2 * outline) / self.letter, self.lines, self.words)


def stage_for(size: Size) -> Stage:
    """Return where captions stand in a frame of *size*.

    Upright: x 108 to 972 and y 384 to 1248 of 1080x1920, which the buttons and texts of Shorts, Reels and
    TikTok leave free. Wide and square: a tenth of the frame from each edge, the title-safe area of EBU R 95.
    """
    ratio = size.width / size.height
    if ratio < 0.9:
        return Stage(size, size.width * 74 / 1080, size.width // 10, round(size.height * 672 / 1920), 2, 5)
    if ratio <= 1.2:
        return Stage(size, size.height * 62 / 1080, size.width // 10, round(size.height * 0.1), 2, 6)
    return Stage(size, size.height * 60 / 1080, size.width // 10, round(size.height * 0.1), 1, 8)


def document(words: Sequence[Word], *, lead_seconds: float, size: Size, fonts: FontBook) -> str:
    """Return the captions of one scene on its own clock; the narration begins at *lead_seconds*."""
    stage = stage_for(size)
    outline = max(1.0, round(stage.letter * 0.085, 1))
    header = _HEADER.format(
        width=size.width,
        height=size.height,
        family=fonts.first.family,
        size=round(stage.letter / fonts.first.em, 2),
        outline=outline,
        shadow=round(outline * 0.4, 1),
        side=stage.side,
        bottom=stage.bottom,
    )
    mark = _RIGHT_TO_LEFT_MARK if is_right_to_left(tidy(words)) else ""
    shown = cues(words, stage.shape(outline), fonts.width)
    return header + "".join(_dialogue(cue, lead_seconds, stage, fonts, mark) for cue in shown)


def faces_of(words: Sequence[Word], fonts: FontBook) -> frozenset[Typeface]:
    """Return the fonts that the captions of *words* are set in."""
    return frozenset({fonts.first, *(fonts.face_for(word.text) for word in tidy(words))})


def escape(text: str) -> str:
    """Return *text* so that libass shows it letter by letter: it opens no tag and breaks no line."""
    return text.replace("\\", "\\" + _WORD_JOINER).replace("{", "\\{").replace("}", "\\}")


def _dialogue(cue: Cue, lead: float, stage: Stage, fonts: FontBook, mark: str) -> str:
    spoken = [word for line in cue.lines for word in line]
    until = [word.start for word in spoken[1:]] + [cue.end]
    endings = iter(until)
    lines = (mark + "".join(_words(line, cue, endings, stage, fonts)) for line in cue.lines)
    times = f"{_clock(cue.start + lead)},{_clock(cue.end + lead)}"
    return f"Dialogue: 0,{times},Caption,,0,0,0,,{{\\fad(60,60)\\blur0.6}}" + "\\N".join(lines) + "\n"


def _words(
    line: Sequence[Spoken], cue: Cue, endings: Iterator[float], stage: Stage, fonts: FontBook
) -> Iterator[str]:
    for index, word in enumerate(line):
        face = fonts.face_for(word.text)
        # \fn takes the rest of its tag: the name comes from the font file, never from a user.
        look = f"\\fn{face.family}\\fs{round(stage.letter * cue.shrink / face.em, 2)}"
        space = " " if word.spaced and index else ""
        light = _light(word.start - cue.start, next(endings) - cue.start)
        yield f"{space}{{{look}{light}}}{escape(word.text)}"


def _light(start: float, end: float) -> str:
    """Return the tags that light a word from *start* to *end*, in seconds of its caption."""
    on, off = round(start * 1000), round(end * 1000)
    # libass reads \t(0,0,...) as the whole length of the caption: the ramp must end later than 0.
    rise = f"\\t({max(0, on - _RAMP // 2)},{max(1, on + _RAMP // 2)},\\1c{_LIT})"
    fall = f"\\t({max(1, off - _RAMP // 2)},{max(2, off + _RAMP // 2)},\\1c{_WHITE})"
    return f"\\1c{_WHITE}{rise}{fall}"


def _clock(seconds: float) -> str:
    hundredths = round(seconds * 100)
    hours, rest = divmod(hundredths, 360_000)
    minutes, rest = divmod(rest, 6_000)
    return f"{hours}:{minutes:02d}:{rest // 100:02d}.{rest % 100:02d}"
