"""Gives the words of a text the times at which they were heard, however they were spelled there. No I/O."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from models.ports import Word

LEAST_HEARD: Final = 0.5
"""The share of words that must be heard: with fewer, the recording is of something else."""

SLACK_SECONDS: Final = 2.0
"""By how much a word may end after its recording: providers round, and cut the silence at the end."""


def are_plausible(words: Sequence[Word], seconds: float) -> bool:
    """Tell whether *words* can be those of a recording of so many seconds, and can be written down."""
    starts = [word.start for word in words]
    return (
        all(0.0 <= word.start <= word.end <= seconds + SLACK_SECONDS for word in words)
        and starts == sorted(starts)
        and not any("\ud800" <= letter <= "\udfff" for word in words for letter in word.text)
    )


def timed(text: str, heard: Sequence[Word]) -> tuple[Word, ...]:
    """Return the words of *text*, each with its time in *heard*; none where too few of them were heard.

    Captions show what was written: what was heard has other spellings, and often no punctuation. Words
    that were not heard share the time between their neighbours.
    """
    written = text.split()
    known = dict(_matches(written, heard))
    if not known or len(known) < LEAST_HEARD * len(written):
        return ()
    return tuple(_placed(written, known, heard))


def _matches(written: Sequence[str], heard: Sequence[Word]) -> Iterator[tuple[int, Word]]:
    """Yield the position of each written word that was heard, and that word."""
    told = [_plain(word) for word in written]
    said = [_plain(word.text) for word in heard]
    for block in SequenceMatcher(None, told, said, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            yield block.a + offset, heard[block.b + offset]


def _placed(written: Sequence[str], known: dict[int, Word], heard: Sequence[Word]) -> Iterator[Word]:
    at, free_from = 0, heard[0].start
    while at < len(written):
        upcoming = next((place for place in range(at, len(written)) if place in known), len(written))
        free_until = known[upcoming].start if upcoming in known else max(free_from, heard[-1].end)
        step = (free_until - free_from) / max(1, upcoming - at)
        for place in range(at, upcoming):
            start = free_from + step * (place - at)
            yield Word(text=written[place], start=start, end=start + step)
        if upcoming in known:
            word = known[upcoming]
            yield Word(text=written[upcoming], start=word.start, end=word.end)
            free_from = word.end
        at = upcoming + 1


def _plain(word: str) -> str:
    return "".join(letter for letter in word.casefold() if letter.isalnum())
