from hypothesis import given
from hypothesis import strategies as st

from models.ports import Word
from sceneloom.rendering.captions import Cue, Shape, cues, text_of
from sceneloom.rendering.wording import tidy
from tests.rendering.media import words

SHAPE = Shape(line_ems=12, lines=2, words=5)
CLOSING = tuple(".,:;!?…)]}、。，！？」』）،؛؟")


def half_em(text: str) -> float:
    return len(text) / 2


def lines(text: str, shape: Shape = SHAPE) -> list[list[str]]:
    return [[text_of(line).strip() for line in cue.lines] for cue in cues(words(text), shape, half_em)]


def spoken(shown: tuple[Cue, ...]) -> list[str]:
    return [piece.text for cue in shown for line in cue.lines for piece in line]


@given(st.lists(st.text(alphabet="abcшяهش灯塔，。.!?،", min_size=1, max_size=30), max_size=40))
def test_captions_show_every_word_once_in_order(texts: list[str]) -> None:
    said = words(" ".join(texts))
    assert spoken(cues(said, SHAPE, half_em)) == [piece.text for piece in tidy(said)]


@given(
    st.lists(st.sampled_from(["night", ",", "。", "灯塔", "(", ")", "!", "«", "»", "شب،", "؟"]), max_size=40)
)
def test_no_line_begins_with_closing_punctuation_except_where_nothing_came_before(texts: list[str]) -> None:
    shown = [line for cue in cues(words(" ".join(texts)), SHAPE, half_em) for line in cue.lines]
    assert not any(text_of(line).strip().startswith(CLOSING) for line in shown[1:])


@given(st.lists(st.tuples(st.sampled_from(["a", "word", "sentence."]), st.floats(0, 60)), max_size=30))
def test_captions_never_overlap(raw: list[tuple[str, float]]) -> None:
    shown = cues([Word(text=text, start=at, end=at + 0.3) for text, at in raw], SHAPE, half_em)
    clock = 0.0
    for cue in shown:
        assert clock <= cue.start <= cue.end
        clock = cue.end


@given(st.lists(st.text(alphabet="abc灯塔", min_size=1, max_size=24), min_size=1, max_size=30))
def test_every_line_fits_at_its_size(texts: list[str]) -> None:
    for cue in cues(words(" ".join(texts)), SHAPE, half_em):
        assert max(half_em(text_of(line)) for line in cue.lines) * cue.shrink <= SHAPE.line_ems + 1e-9
        assert len(cue.lines) <= SHAPE.lines


def test_a_sentence_is_cut_evenly_rather_than_leaving_one_word_alone() -> None:
    text = "one two six ten red big"
    assert lines(text, Shape(100, 1, 5)) == [["one two six"], ["ten red big"]]


def test_a_new_sentence_begins_a_new_caption() -> None:
    assert lines("Stop. Go now") == [["Stop."], ["Go now"]]
    assert lines("ایست؟ برو") == [["ایست؟"], ["برو"]]


def test_a_break_after_a_comma_is_preferred() -> None:
    assert lines("every old night, they sang a song", Shape(100, 1, 5))[0] == ["every old night,"]


def test_chinese_fills_even_lines() -> None:
    assert lines("灯塔守护者每天晚上都会爬上两百级台阶", Shape(5, 2, 5)) == [
        ["灯塔守护者每天晚上", "都会爬上两百级台阶"]
    ]


def test_a_caption_stays_over_a_short_silence_and_leaves_in_a_long_one() -> None:
    said = [
        Word(text="One.", start=0, end=0.5),
        Word(text="Two.", start=1.0, end=1.5),
        Word(text="Three.", start=5.0, end=5.5),
    ]
    ends = [cue.end for cue in cues(said, SHAPE, half_em)]
    assert ends == [1.0, 1.9, 5.9]


def test_without_words_there_are_no_captions() -> None:
    assert cues((), SHAPE, half_em) == ()
    assert cues((Word(text=" \n", start=0, end=1),), SHAPE, half_em) == ()
