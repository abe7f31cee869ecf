import io
import itertools

import numpy as np
import pytest
from PIL import Image

from sceneloom.providers.drawing.picture import draw

SIZE = (270, 480)
PROMPTS = (
    "An old lighthouse above the sea at night",
    "Тихий лес на рассвете",
    "کاروان شتر در کویر هنگام غروب",
    "A neon city at night",
    "Snowy mountains at noon",
    "A house in a green valley",
    "A rocket in space",
    "Data flows through a network",
)


def _pixels(picture: bytes) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    with Image.open(io.BytesIO(picture)) as opened:
        return np.asarray(opened.convert("RGB"), float)


def test_equal_arguments_give_equal_bytes() -> None:
    assert draw(PROMPTS[0], SIZE, seed=7) == draw(PROMPTS[0], SIZE, seed=7)


def test_another_seed_gives_another_picture() -> None:
    first, second = (_pixels(draw("quantum happiness", SIZE, seed=seed)) for seed in (1, 2))
    assert np.abs(first - second).mean() > 8


@pytest.mark.parametrize("size", [(1, 1), (33, 64), (641, 361), (480, 270), (300, 300)])
def test_the_size_is_exact_even_when_odd(size: tuple[int, int]) -> None:
    assert _pixels(draw("the sea at dusk", size)).shape == (size[1], size[0], 3)


def test_different_prompts_give_visibly_different_pictures() -> None:
    pictures = [_pixels(draw(prompt, SIZE, seed=1)) for prompt in PROMPTS]
    assert all(np.abs(a - b).mean() > 10 for a, b in itertools.combinations(pictures, 2))


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_picture_has_light_and_shade(prompt: str) -> None:
    brightness = _pixels(draw(prompt, SIZE, seed=1)).mean(axis=2)
    assert brightness.std() > 15
    assert 10 < brightness.mean() < 235


def test_night_is_darker_than_day() -> None:
    night, noon = (_pixels(draw(f"the sea at {hour}", SIZE, seed=1)) for hour in ("night", "noon"))
    assert night.mean() < noon.mean() - 40


@pytest.mark.parametrize(
    "subject", ["lighthouse", "boat", "house", "birds", "balloon", "rocket", "person", "tree"]
)
@pytest.mark.parametrize("place", ["the sea", "a meadow"])
def test_a_subject_changes_the_picture_above_the_captions(subject: str, place: str) -> None:
    picture = _pixels(draw(f"{place} at noon with a {subject}", SIZE, seed=1))
    assert picture[: SIZE[1] * 2 // 3].std() > 10


@pytest.mark.parametrize("weather", ["rain", "snow", "fog", "storm", "clear"])
def test_every_weather_can_be_drawn(weather: str) -> None:
    assert draw(f"{weather} over mountains", SIZE)


@pytest.mark.parametrize(
    "title",
    [
        "The lighthouse keeper",
        "Тихий лес",
        "نگهبان پیر فانوس دریایی",
        'Don\'t stop: 100% {city} & <lights> "now"',
        "a\x00b\x1bc\ud800\uffff d",
    ],
)
def test_a_title_is_written_into_the_upper_part(title: str) -> None:
    plain = _pixels(draw("the sea at night", (540, 960), seed=1))
    titled = _pixels(draw("the sea at night", (540, 960), seed=1, title=title))
    change = np.abs(plain - titled).max(axis=2) > 60
    assert change[:320].sum() > 200
    assert change[480:].sum() == 0
