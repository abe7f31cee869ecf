import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.ports import Word
from models.shapes import Size
from sceneloom.rendering.subtitles import document, escape, stage_for
from sceneloom.rendering.typefaces import caption_fonts
from tests.rendering.media import words

SIZES = [Size(1080, 1920), Size(1920, 1080), Size(1080, 1080), Size(270, 480)]
OWN_TAG = re.compile(
    r"\{\\fad\(60,60\)\\blur0\.6\}|"
    r"\{\\fn[\w ]+\\fs[\d.]+\\1c&HFFFFFF&(?:\\t\([\d]+,[\d]+,\\1c&H\w{6}&\)){2}\}"
)


def events(text: str, size: Size = SIZES[0]) -> list[str]:
    whole = document(words(text), lead_seconds=0.3, size=size, fonts=caption_fonts())
    return [line for line in whole.splitlines() if line.startswith("Dialogue:")]


def users_part(event: str) -> str:
    return OWN_TAG.sub("", event.split(",", 9)[9])


@pytest.mark.parametrize(
    "text",
    [
        "{", "}", "\\", "\\N", "\\n", "\\h", r"{\b1}bold{\b0}", r"\{", r"{\p1}m 0 0 l 99 99", r"\\N",
        "\\{\\}",
        "a\nDialogue: 0,0:00:00.00,9:00:00.00,Caption,,0,0,0,,x", "a\r\nb", "a\u2028b", "a\x00b",
        "\u202eevil\u202c", "\u2067isolated", "هر{شب}", "שלום\\N", "灯{\\b1}塔", "🔥{🔥}",
        "a,b,c,,,", "%s%d:[];'",
    ],
)  # fmt: skip
def test_what_a_user_wrote_is_text_and_never_a_tag_or_a_line(text: str) -> None:
    assert_harmless(text)


@given(st.text(alphabet=st.characters(codec="utf-8") | st.sampled_from("{}\\Nnhb1\n"), max_size=60))
def test_no_text_at_all_opens_a_tag(text: str) -> None:
    assert_harmless(text)


def assert_harmless(text: str) -> None:
    said = (Word(text=text, start=0, end=1),)
    whole = document(said, lead_seconds=0, size=SIZES[0], fonts=caption_fonts())
    body = whole.split("[Events]\n", 1)[1].split("\n")[1:]
    for event in filter(None, body):
        assert event.startswith("Dialogue: 0,")
        left = users_part(event)
        assert not re.search(r"(?<!\\)[{}]", left)
        # Only our own line break and escaped braces may follow a backslash.
        assert all(after in "\u2060{}N" for after in re.findall(r"\\(.)", left))
        assert len(re.findall(r"\\N", left)) <= 1


def test_escaping_keeps_what_is_read() -> None:
    assert escape("C:\\new {x}") == "C:\\\u2060new \\{x\\}"


def test_a_right_to_left_caption_is_told_its_direction_even_where_it_begins_with_latin() -> None:
    assert all("\u200f" in event for event in events("NASA در سال ۱۹۲۴ آمد"))
    assert not any("\u200f" in event for event in events("Every night in Tehran شب"))


@pytest.mark.parametrize("size", SIZES)
def test_captions_stay_where_the_platforms_leave_room(size: Size) -> None:
    stage = stage_for(size)
    assert stage.side >= size.width // 10
    bottom = size.height - stage.bottom
    assert bottom <= size.height * (0.651 if size.height > size.width else 0.9)
    assert bottom - stage.lines * stage.letter * 1.6 >= size.height * 0.2


def test_the_spoken_word_is_lit_from_its_start_to_the_next_one() -> None:
    (event,) = events("one two")
    ramps = [(int(a), int(b)) for a, b in re.findall(r"\\t\((\d+),(\d+),", event)]
    assert ramps[0] == (0, 33)
    assert ramps[1] == ramps[2] == (267, 333)


def test_captions_are_shifted_by_the_lead_of_the_narration() -> None:
    assert events("one two")[0].startswith("Dialogue: 0,0:00:00.30,")


def test_a_script_that_the_caption_font_lacks_is_set_in_one_that_has_it() -> None:
    assert "\\fnNoto Sans Devanagari" in events("हर रात")[0]
    assert "\\fnRubik" in events("Каждую ночь")[0]
    assert caption_fonts().missing(["Каждую", "هر شب", "हर", "ok", "🔥"]) == ""


def test_characters_that_no_font_has_are_told() -> None:
    assert caption_fonts().missing(["灯塔", "塔", "ok"]) == "塔灯"
