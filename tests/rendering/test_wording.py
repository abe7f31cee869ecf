import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.ports import Word
from sceneloom.rendering.wording import clean, is_right_to_left, tidy
from tests.rendering.media import words

texts = st.text(alphabet=st.characters(codec="utf-8"), max_size=40)


def shown(text: str) -> list[str]:
    return [piece.text for piece in tidy(words(text))]


@given(st.lists(st.tuples(texts, st.floats(-5, 100), st.floats(-5, 100)), max_size=30))
def test_whatever_the_words_and_times_are_pieces_follow_each_other(
    raw: list[tuple[str, float, float]],
) -> None:
    pieces = tidy([Word(text=text, start=start, end=end) for text, start, end in raw])
    clock = 0.0
    for piece in pieces:
        assert clock <= piece.start <= piece.end
        assert piece.text.strip()
        clock = piece.end


@given(texts)
def test_no_control_character_and_no_line_break_is_left(text: str) -> None:
    left = clean(text)
    assert not any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in left)
    assert not set(left) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@given(st.text(alphabet="شب می‌رفت灯塔はガーッ abc,.。", max_size=60))
def test_no_letter_is_lost(text: str) -> None:
    letters = [character for character in text if not character.isspace()]
    pieces = "".join(shown(text))
    assert [character for character in pieces if not character.isspace()] == letters


def test_lone_punctuation_joins_the_word_before_or_after_it() -> None:
    assert shown("« Bonjour » , dit - il ( vite )") == ["«Bonjour»,", "dit", "-", "il", "(vite)"]


def test_punctuation_in_front_of_a_word_moves_to_the_word_before() -> None:
    assert shown("wait ,then go") == ["wait,", "then", "go"]
    assert shown("only .5 percent ’twas") == ["only", ".5", "percent", "’twas"]


def test_chinese_is_cut_into_characters_that_keep_their_punctuation() -> None:
    assert shown("灯塔，亮了。“好”") == ["灯", "塔，", "亮", "了。", "“好”"]


def test_japanese_small_letters_never_begin_a_piece() -> None:
    assert shown("ちょっとガード") == ["ちょっ", "と", "ガー", "ド"]


def test_the_time_of_a_word_is_spread_over_its_characters() -> None:
    pieces = tidy([Word(text="灯塔亮了", start=1.0, end=3.0)])
    assert [piece.start for piece in pieces] == [1.0, 1.5, 2.0, 2.5]
    assert not any(piece.spaced for piece in pieces)


def test_a_long_address_is_cut_evenly() -> None:
    pieces = shown("https://averyveryverylongaddress.example.com/with/path")
    assert len(pieces) == 3
    assert max(map(len, pieces)) - min(map(len, pieces)) <= 2


def test_an_emoji_of_several_signs_stays_whole() -> None:
    assert shown("👩‍👩‍👧 👍🏽") == ["👩‍👩‍👧", "👍🏽"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("هر شب NASA", True),
        ("NASA در سال", True),
        ("שלום world", True),
        ("world שלום", False),
        ("סיפור קצר", True),
        ("Every night", False),
        ("1924 ...", False),
    ],
)
def test_the_direction_is_that_of_most_letters(text: str, *, expected: bool) -> None:
    assert is_right_to_left(tidy(words(text))) is expected
