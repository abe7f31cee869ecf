from datetime import timedelta

import pytest
import typer

from sceneloom.cli.ages import age_words, parse_age


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        ("1.5h", timedelta(minutes=90)),
        (" 2D ", timedelta(days=2)),
        ("0s", timedelta()),
    ],
)
def test_an_age_is_a_number_and_a_unit(text: str, age: timedelta) -> None:
    assert parse_age(text) == age


@pytest.mark.parametrize("text", ["", "1", "h", "-1h", "1w", "1h30m", "1 h", "nan", "9" * 30 + "d"])
def test_anything_else_is_refused_with_what_was_written(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"is no age|longer than a hundred years"):
        parse_age(text)


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(), "0s"),
        (timedelta(seconds=0.4), "0s"),
        (timedelta(seconds=59.6), "1m"),
        (timedelta(seconds=75), "1m 15s"),
        (timedelta(hours=2, seconds=3), "2h"),
        (timedelta(days=3, hours=4, minutes=5), "3d 4h"),
        (timedelta(seconds=-5), "-5s"),
        (timedelta(seconds=-0.2), "0s"),
    ],
)
def test_an_age_is_written_in_its_two_largest_units(age: timedelta, words: str) -> None:
    assert age_words(age) == words
