import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sceneloom.providers.drawing.vision import Vision, read


def _read(prompt: str, seed: int = 1) -> Vision:
    return read(prompt, random.Random(seed))  # noqa: S311 -- for looks, not for secrets


@pytest.mark.parametrize(
    ("prompt", "setting", "hour"),
    [
        ("An old lighthouse above the sea at night", "sea", "night"),
        ("Старый маяк над ночным морем", "sea", "night"),
        ("فانوس دریایی قدیمی کنار دریا در شب", "sea", "night"),
        ("海边的灯塔 夜", "sea", "night"),
        ("A neon city skyline at night", "city", "night"),
        ("Дождливый город вечером", "city", "dusk"),
        ("خیابان‌های شهر هنگام غروب", "city", "dusk"),
        ("Тихий лес на рассвете", "forest", "dawn"),
        ("جنگل در صبح", "forest", "dawn"),
        ("El bosque al amanecer", "forest", "dawn"),
        ("کاروان شتر در کویر ظهر", "desert", "day"),
        ("Kafka brokers pass data", "network", "night"),
    ],
)
def test_setting_and_hour_are_read_in_many_languages(prompt: str, setting: str, hour: str) -> None:
    vision = _read(prompt)
    assert vision[0] == setting
    if setting != "network":
        assert vision[1] == hour


@pytest.mark.parametrize(
    ("prompt", "subject"),
    [
        ("a lighthouse", "lighthouse"),
        ("маяк", "lighthouse"),
        ("فانوس دریایی", "lighthouse"),
        ("Корабль в океане", "boat"),
        ("قایق کوچک", "boat"),
        ("a bird over the hills", "birds"),
        ("дом в долине", "house"),
        ("یک کلبه", "house"),
    ],
)
def test_subjects_are_read_in_many_languages(prompt: str, subject: str) -> None:
    assert subject in _read(prompt)[3]


def test_a_subject_brings_its_own_setting_when_none_is_named() -> None:
    assert _read("маяк")[0] == "sea"
    assert _read("camels")[0] == "desert"


@pytest.mark.parametrize("prompt", ["research of carpets", "лестница", "capacity"])
def test_a_keyword_inside_another_word_does_not_count(prompt: str) -> None:
    assert len({_read(prompt, seed).setting for seed in range(30)}) > 2


@given(st.text(max_size=200))
def test_any_prompt_can_be_read(prompt: str) -> None:
    assert _read(prompt)[0]
