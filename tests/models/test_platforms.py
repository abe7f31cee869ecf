import pytest

from models.platforms import Platform, spoken_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("", 0),
        ("one two three four five", 2.0),
        ("  spaced \n out  ", 0.8),
        ("wait — what ?", 0.8),
        ("昔々あるところに", 2.0),
        ("我爱 Kafka", 0.9),
        ("چراغ را روشن می‌کرد", 1.6),
    ],
)
def test_speech_is_estimated_by_words_or_by_letters_where_words_have_no_spaces(
    text: str, seconds: float
) -> None:
    assert spoken_seconds(text) == pytest.approx(seconds)


def test_each_platform_has_its_limit() -> None:
    assert {platform.value: platform.limit_seconds for platform in Platform} == {
        "shorts": 180,
        "reels": 900,
        "tiktok": 600,
        "youtube": 3600,
    }
