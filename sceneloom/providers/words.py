"""The words of a narration as its viewer sees them, and when each of them sounds."""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from sceneloom.providers.voices import script_of

_UNSPACED: Final = frozenset({"Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar"})
_LONGEST_UNSPACED: Final = 6
_SHORTEST: Final = 0.02


class Token(NamedTuple):
    """A word as written, with its punctuation, and where it stands in the text (end exclusive)."""

    text: str
    start: int
    end: int


class Mark(NamedTuple):
    """When a token sounds, in seconds; the end may be unknown."""

    start: float
    end: float | None = None


class Timed(NamedTuple):
    """A word as written and when it sounds, in seconds."""

    text: str
    start: float
    end: float


class Recording(NamedTuple):
    """A WAV file, its length in seconds, and its words; all empty where nothing sounds."""

    audio: bytes
    seconds: float
    words: tuple[Timed, ...]


def tokens(text: str) -> tuple[Token, ...]:
    """Split *text* at white space; writing without spaces is cut into pieces of a few letters."""
    return tuple(piece for word in _between_spaces(text) for piece in _pieces(word))


def timed(written: Sequence[Token], marks: Sequence[Mark | None], seconds: float) -> tuple[Timed, ...]:
    """Give every token a time of its own inside *seconds*, in order and without overlap.

    A token without a mark (one that makes no sound, such as an emoji) shares the time of its neighbours.
    """
    if not written:
        return ()
    starts = _starts(written, marks, seconds)
    shortest = min(_SHORTEST, seconds / (len(written) + 1))
    starts[0] = max(0.0, starts[0])
    for index in range(1, len(starts)):
        starts[index] = max(starts[index], starts[index - 1] + shortest)
    limit = seconds
    for index in reversed(range(len(starts))):
        starts[index] = limit = max(0.0, min(starts[index], limit - shortest))
    limits = [*starts[1:], seconds]
    return tuple(
        Timed(token.text, start, _end(mark, start, limit))
        for token, mark, start, limit in zip(written, marks, starts, limits, strict=True)
    )


def _end(mark: Mark | None, start: float, limit: float) -> float:
    known = mark.end if mark and mark.end is not None else limit
    return limit if known <= start else min(known, limit)


def _starts(written: Sequence[Token], marks: Sequence[Mark | None], seconds: float) -> list[float]:
    """Spread the tokens between two known starts by their length in letters."""
    known = [(index, mark.start) for index, mark in enumerate(marks) if mark is not None]
    if not known or known[0][0] > 0:
        known.insert(0, (0, 0.0))
    starts: list[float] = []
    for (first, begin), (last, finish) in zip(known, [*known[1:], (len(written), seconds)], strict=True):
        lengths = [len(token.text) for token in written[first:last]]
        pace = (finish - begin) / sum(lengths)
        starts += [begin + pace * sum(lengths[:before]) for before in range(len(lengths))]
    return starts


def _between_spaces(text: str) -> Iterator[Token]:
    position = 0
    for word in text.split():
        position = text.index(word, position)
        yield Token(word, position, position + len(word))
        position += len(word)


def _pieces(word: Token) -> Iterator[Token]:
    if not any(script_of(letter) in _UNSPACED for letter in word.text):
        yield word
        return
    begin = 0
    for index in range(1, len(word.text)):
        if _may_break(word.text, begin, index):
            yield Token(word.text[begin:index], word.start + begin, word.start + index)
            begin = index
    yield Token(word.text[begin:], word.start + begin, word.end)


def _may_break(word: str, begin: int, index: int) -> bool:
    """Tell whether a piece may end before *index*: never before a sign that belongs to the letter ahead."""
    here, before = word[index], word[index - 1]
    if _opens(before) or (not _opens(here) and script_of(here) is None and not here.isdigit()):
        return False
    full = index - begin >= _LONGEST_UNSPACED and script_of(here) in _UNSPACED
    if unicodedata.category(before).startswith("M"):
        return full
    return full or not before.isalnum() or _writing(here) != _writing(before)


def _writing(character: str) -> str | None:
    """Name the script for breaking; a mark or a sound-lengthening sign goes with its neighbour."""
    return "digits" if character.isdigit() else script_of(character)


def _opens(character: str) -> bool:
    return unicodedata.category(character) in {"Ps", "Pi"}
