"""Which words are on screen together, in which lines, from when to when."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, zip_longest

from models.ports import Word
from sceneloom.rendering.wording import Spoken, ends_clause, ends_sentence, tidy

Measure = Callable[[str], float]
"""Tells how wide a text is, in ems."""

_PAUSE = 0.35
"""Seconds of silence after which a new caption begins."""
_BRIDGE = 0.9
"""Seconds of silence over which a caption stays until the next."""
_LINGER = 0.4
"""Seconds that a caption stays otherwise."""
_CLAUSE_BONUS = 0.35
"""How much a break after a comma is liked, against the evenness of widths."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The room that a caption has: the width of a line in ems, the lines, the words."""

    line_ems: float
    lines: int
    words: int


@dataclass(frozen=True, slots=True)
class Cue:
    """One caption: its lines from top to bottom, and seconds from the start of the narration."""

    lines: tuple[tuple[Spoken, ...], ...]
    start: float
    end: float
    shrink: float = 1.0
    """The share of the usual size at which the widest line fits."""


def cues(words: Sequence[Word], shape: Shape, measure: Measure) -> tuple[Cue, ...]:
    """Group *words* into captions that fit *shape*, none of which begins with closing punctuation."""
    captions = [
        phrase.caption(*cut, shape)
        for phrase in (Phrase(said, measure) for said in _phrases(tidy(words)))
        for cut in _balanced(phrase, shape)
    ]
    starts = [lines[0][0].start for lines, _ in captions]
    return tuple(
        Cue(lines, start, _end(lines[-1][-1].end, upcoming), shrink)
        for (lines, shrink), (start, upcoming) in zip(captions, zip_longest(starts, starts[1:]), strict=True)
    )


def text_of(line: Sequence[Spoken]) -> str:
    """Return a line as it is read."""
    return "".join(f" {word.text}" if word.spaced and index else word.text for index, word in enumerate(line))


class Phrase:
    """Words that are said in one breath, measured once."""

    def __init__(self, words: Sequence[Spoken], measure: Measure) -> None:
        self._words = tuple(words)
        space = measure(" ")
        self._gaps = [space if word.spaced else 0.0 for word in words]
        widths = (gap + measure(word.text) for gap, word in zip(self._gaps, words, strict=True))
        self._until = [0.0, *accumulate(widths)]
        self._spaces = [0, *accumulate(word.spaced for word in words)]

    def __len__(self) -> int:
        return len(self._words)

    def width(self, start: int, end: int) -> float:
        """Return how wide the words from *start* to before *end* are in one line, in ems."""
        return self._until[end] - self._until[start] - self._gaps[start]

    def fits(self, start: int, end: int, shape: Shape) -> bool:
        """Tell whether these words make one caption."""
        if self._spaces[end] - self._spaces[start + 1] >= shape.words:
            return False
        return max(self.width(*line) for line in self._fold(start, end, shape)) <= shape.line_ems

    def ends_clause(self, end: int) -> bool:
        """Tell whether a speaker would breathe before the word at *end*."""
        return ends_clause(self._words[end - 1].text)

    def caption(self, start: int, end: int, shape: Shape) -> tuple[tuple[tuple[Spoken, ...], ...], float]:
        """Return these words in lines, and the share of the usual size at which the widest line fits."""
        folded = self._fold(start, end, shape)
        widest = max(self.width(*line) for line in folded)
        shrink = min(1.0, shape.line_ems / widest) if widest else 1.0
        return tuple(self._words[first:last] for first, last in folded), shrink

    def _fold(self, start: int, end: int, shape: Shape) -> list[tuple[int, int]]:
        """Lay words in one line, or where that is too wide, in the two most even ones."""
        if shape.lines < 2 or end - start < 2 or self.width(start, end) <= shape.line_ems:
            return [(start, end)]
        middle = min(range(start + 1, end), key=lambda at: max(self.width(start, at), self.width(at, end)))
        return [(start, middle), (middle, end)]


def _phrases(words: Sequence[Spoken]) -> Iterator[tuple[Spoken, ...]]:
    """Cut where a sentence ends or the speaker pauses."""
    phrase: list[Spoken] = []
    for word in words:
        if phrase and (ends_sentence(phrase[-1].text) or word.start - phrase[-1].end > _PAUSE):
            yield tuple(phrase)
            phrase = []
        phrase.append(word)
    if phrase:
        yield tuple(phrase)


def _balanced(phrase: Phrase, shape: Shape) -> Iterator[tuple[int, int]]:
    """Cut *phrase* into as few captions as fit, as evenly as possible, preferably after commas."""
    room = shape.line_ems * shape.lines
    best: list[tuple[int, float, int]] = [(0, 0.0, 0)]
    for end in range(1, len(phrase) + 1):
        bonus = _CLAUSE_BONUS if phrase.ends_clause(end) else 0.0
        choices = []
        for start in range(end - 1, -1, -1):
            if start < end - 1 and not phrase.fits(start, end, shape):
                break
            uneven = (phrase.width(start, end) / room) ** 2 - bonus
            choices.append((best[start][0] + 1, best[start][1] + uneven, start))
        best.append(min(choices))
    cuts = [len(phrase)]
    while cuts[-1]:
        cuts.append(best[cuts[-1]][2])
    yield from pairwise(reversed(cuts))


def _end(spoken_until: float, following: float | None) -> float:
    if following is None:
        return spoken_until + _LINGER
    return following if following - spoken_until < _BRIDGE else spoken_until + _LINGER
