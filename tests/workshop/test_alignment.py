import math

import pytest

from models.ports import Word
from sceneloom.workshop.alignment import are_plausible, timed


def heard(text: str) -> tuple[Word, ...]:
    """Let each word sound for half a second, and a silence of half a second follow it."""
    return tuple(Word(text=word, start=float(at), end=at + 0.5) for at, word in enumerate(text.split()))


def told(text: str, said: str) -> list[tuple[str, float, float]]:
    return [(word.text, word.start, word.end) for word in timed(text, heard(said))]


def test_words_are_shown_as_they_were_written() -> None:
    assert told("The fox, it sleeps!", "the FOX it sleeps") == [
        ("The", 0.0, 0.5),
        ("fox,", 1.0, 1.5),
        ("it", 2.0, 2.5),
        ("sleeps!", 3.0, 3.5),
    ]


def test_words_that_were_not_heard_share_the_time_between_their_neighbours() -> None:
    assert told("a 1 2 d", "a b d") == [("a", 0.0, 0.5), ("1", 0.5, 1.25), ("2", 1.25, 2.0), ("d", 2.0, 2.5)]


def test_a_beginning_and_an_end_that_were_not_heard_have_times_too() -> None:
    assert told("1 b c 4", "one b c four") == [
        ("1", 0.0, 1.0),
        ("b", 1.0, 1.5),
        ("c", 2.0, 2.5),
        ("4", 2.5, 3.5),
    ]


def test_words_that_nobody_said_are_left_out_of_the_captions() -> None:
    assert [word for word, *_ in told("the fox", "um the um fox um")] == ["the", "fox"]


def test_a_recording_of_something_else_gives_no_words() -> None:
    assert told("the fox sleeps", "a cat jumps") == []
    assert told("", "a cat") == []
    assert timed("the fox", ()) == ()


def test_other_scripts_are_aligned_as_well() -> None:
    assert [word for word, *_ in told("دریا، آرام است.", "دریا آرام است")] == ["دریا،", "آرام", "است."]


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        (math.nan, 1.0, "a"),
        (0.0, math.nan, "a"),
        (0.0, math.inf, "a"),
        (-0.1, 1.0, "a"),
        (1.0, 0.5, "a"),
        (0.0, 8.0, "a"),
        (0.0, 1.0, "\ud800"),
    ],
)
def test_words_whose_times_cannot_be_are_told(start: float, end: float, text: str) -> None:
    sound = Word(text="so", start=0.0, end=5.5)
    assert are_plausible([sound], 5.0)
    assert not are_plausible([sound, Word(text=text, start=start, end=end)], 5.0)


def test_words_in_the_wrong_order_are_told() -> None:
    early, late = Word(text="a", start=0.0, end=1.0), Word(text="b", start=1.0, end=2.0)
    assert are_plausible([early, late], 2.0)
    assert not are_plausible([late, early], 2.0)
