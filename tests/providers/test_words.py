from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sceneloom.providers.words import Mark, Token, timed, tokens

_MARKS = st.none() | st.builds(Mark, st.floats(-1, 12), st.none() | st.floats(-1, 12))


def test_tokens_are_the_words_as_the_user_wrote_them() -> None:
    text = " “Stop!”  she said;\nКафка — می‌رفت. "
    assert [token.text for token in tokens(text)] == ["“Stop!”", "she", "said;", "Кафка", "—", "می‌رفت."]


def test_writing_without_spaces_is_cut_into_short_pieces_that_keep_their_punctuation() -> None:
    assert [t.text for t in tokens("我们在海边看日落，然后回家。“好”2024年")] == [
        "我们在海边看",
        "日落，",
        "然后回家。",
        "“好”",
        "2024",
        "年",
    ]


def test_a_piece_never_begins_with_a_sign_that_belongs_to_the_letter_before() -> None:
    assert [t.text for t in tokens("สวัสดีชาวโลก")] == ["สวัสดี", "ชาวโลก"]


@given(st.text(max_size=60))
def test_tokens_cover_all_but_the_white_space_in_order(text: str) -> None:
    found = tokens(text)
    assert "".join(token.text for token in found) == "".join(text.split())
    assert all(text[token.start : token.end] == token.text for token in found)
    assert all(before.end <= after.start for before, after in pairwise(found))


@given(st.data(), st.integers(1, 12), st.floats(0.05, 60))
def test_times_are_in_order_apart_and_inside_the_recording(
    data: st.DataObject, count: int, seconds: float
) -> None:
    written = [Token("word", index * 5, index * 5 + 4) for index in range(count)]
    marks = data.draw(st.lists(_MARKS, min_size=count, max_size=count))
    words = timed(written, marks, seconds)
    assert [word.text for word in words] == ["word"] * count
    assert all(0 <= word.start < word.end <= seconds for word in words)
    assert all(before.end <= after.start for before, after in pairwise(words))


def test_a_word_keeps_its_own_mark_and_a_silent_one_shares_the_gap() -> None:
    written = tokens("one 🎉 two")
    words = timed(written, [Mark(0.0, 0.4), None, Mark(1.0, 1.5)], 2.0)
    assert (words[0].start, words[0].end) == (0.0, 0.4)
    assert 0.4 <= words[1].start < words[1].end <= 1.0
    assert (words[2].start, words[2].end) == (1.0, 1.5)


def test_no_tokens_have_no_times() -> None:
    assert timed((), (), 1.0) == ()
