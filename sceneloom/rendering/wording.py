"""Words as captions show them: cleaned, with their punctuation, cut where a script has no spaces."""

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from models.ports import Word

_SHORTEST = 0.04
"""Seconds that a word is lit at least."""
_LONGEST = 24
"""Characters after which even a word of a spaced script is cut: no line holds more in a size one can read."""
# Embeddings, overrides and isolates reach over word borders, and captions are cut at word borders.
_BIDI_SPANS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_UNSPACED = re.compile(
    "[\u2e80-\u2fdf\u3001-\u3003\u3005-\u3011\u3014-\u301b\u3021-\u3029\u3031-\u3035\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff9f\U00020000-\U0003ffff]"
)
_SMALL_KANA = frozenset("ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶーゝゞヽヾ々")
_CLOSING = frozenset(".,:;!?…‥%°·»›”’)]}、。，．：；！？・）］｝〉》」』】〕〗〙〛،؛؟۔٪։՝।॥׃")
_CLOSING_QUOTES = frozenset("»›”’")
"""Marks that close in one language and open in another, or stand for a dropped letter."""
_OPENING = frozenset("«‹“‘([{¿¡（［｛〈《「『【〔〖〘〚#")
_QUOTES = frozenset("\"'")


@dataclass(frozen=True, slots=True)
class Spoken:
    """A piece of a caption that is lit at once; *spaced* tells whether a space stands before it."""

    text: str
    start: float
    end: float
    spaced: bool = True


def tidy(words: Sequence[Word]) -> tuple[Spoken, ...]:
    """Return *words* ready to be set: visible text, punctuation attached, times that never run backwards."""
    visible = (Spoken(clean(word.text), word.start, word.end) for word in words)
    pieces = [part for word in _attached([word for word in visible if word.text]) for part in _cut(word)]
    return tuple(_in_order(pieces))


def clean(text: str) -> str:
    """Return *text* on one line, without control characters or marks that would reorder other words."""
    return _BREAKS.sub(" ", _BIDI_SPANS.sub("", text.replace("\x00", ""))).strip()


def is_right_to_left(words: Sequence[Spoken]) -> bool:
    """Tell whether *words* run from right to left: most of them, or at a tie the first."""
    directions = [direction for word in words if (direction := _direction(word.text))]
    return bool(directions) and (sum(directions), directions[0]) > (0, 0)


def _direction(text: str) -> int:
    """Return 1 where *text* begins in a right-to-left script, -1 in any other, 0 without letters."""
    for character in text:
        match unicodedata.bidirectional(character):
            case "R" | "AL":
                return 1
            case "L":
                return -1
    return 0


def ends_sentence(text: str) -> bool:
    """Tell whether a sentence ends with *text*, in the scripts we know."""
    return text.rstrip("\"'»›”’)]」』）").endswith((".", "!", "?", "…", "。", "！", "？", "؟", "۔", "।", "։"))


def ends_clause(text: str) -> bool:
    """Tell whether a speaker would breathe after *text*."""
    return text.endswith((",", ";", ":", "—", "–", "،", "؛", "、", "，", "；", "："))


def _attached(words: list[Spoken]) -> list[Spoken]:
    """Give lone punctuation to the word that it belongs to."""
    joined: list[Spoken] = []
    opening = ""
    for word in words:
        marks = set(word.text)
        if joined and not opening and marks <= _CLOSING | _QUOTES:
            joined[-1] = replace(
                joined[-1], text=joined[-1].text + word.text, end=max(joined[-1].end, word.end)
            )
        elif marks <= _OPENING:
            opening += word.text
        else:
            joined.append(_hand_over(joined, replace(word, text=opening + word.text)))
            opening = ""
    return [word for word in joined if word.text]


def _hand_over(joined: list[Spoken], word: Spoken) -> Spoken:
    """Move closing punctuation at the front of *word* to the word before it."""
    rest = word.text.lstrip("".join(_CLOSING - _CLOSING_QUOTES))
    moved = word.text[: len(word.text) - len(rest)]
    is_decimal = moved.endswith((".", ",")) and rest[:1].isdecimal()
    if not joined or not moved or is_decimal:
        return word
    joined[-1] = replace(joined[-1], text=joined[-1].text + moved)
    return replace(word, text=rest.strip())


def _cut(word: Spoken) -> Iterator[Spoken]:
    """Cut text without spaces into characters, and spread the time of the word over them."""
    clusters = list(_clusters(word.text))
    length = sum(len(cluster) for cluster in clusters)
    second = (word.end - word.start) / max(1, length)
    at = word.start
    for index, cluster in enumerate(clusters):
        spaced = cluster.startswith(" ") or (index == 0 and not _UNSPACED.match(cluster))
        until = at + second * len(cluster)
        yield Spoken(cluster.strip(), at, until, spaced)
        at = until


def _clusters(text: str) -> Iterator[str]:
    """Yield the runs of *text* that no line may be broken inside."""
    parts = math.ceil(len(text) / _LONGEST)
    longest = math.ceil(len(text) / max(1, parts))
    run = ""
    for character in text:
        if run and (_may_part(run, character) or (len(run) >= longest and not _belongs(run, character))):
            yield run
            run = ""
        run += character
    yield run


def _may_part(run: str, character: str) -> bool:
    """Tell whether the script allows a break between *run* and *character*."""
    if _belongs(run, character) or run[-1] == " ":
        return False
    return character == " " or bool(_UNSPACED.match(character)) or bool(_UNSPACED.match(run[-1]))


def _belongs(run: str, character: str) -> bool:
    """Tell whether *character* must stand on the line of *run*: marks, joined signs, closing punctuation."""
    if character in _CLOSING or character in _SMALL_KANA or run[-1] in _OPENING:
        return True
    return unicodedata.category(character) in {"Mn", "Mc", "Me", "Cf", "Sk"} or run[-1] == "\u200d"


def _in_order(pieces: list[Spoken]) -> Iterator[Spoken]:
    """Yield *pieces* with times that never run backwards; a piece ends before the next begins."""
    at = 0.0
    starts: list[float] = []
    for piece in pieces:
        at = max(at, piece.start)
        starts.append(at)
    for index, piece in enumerate(pieces):
        start = starts[index]
        end = max(piece.end, start + _SHORTEST)
        following = starts[index + 1] if index + 1 < len(pieces) else end
        yield replace(piece, start=start, end=max(start, min(end, following)))
