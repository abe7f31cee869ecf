import pickle
from typing import Any

import pytest
from pydantic import ValidationError

from models.checks import parse_request
from models.platforms import Platform
from models.request import ProjectRequest, ProviderKind, SceneRequest, Visual
from models.shapes import AspectRatio, Size
from tests.models.requests import a_request, a_scene


def test_a_title_and_one_prompt_are_a_request() -> None:
    request = parse_request({"title": "Sea", "scenes": [{"prompt": "waves"}]})

    assert request.user_id == "local"
    assert request.aspect_ratio is AspectRatio.PORTRAIT
    assert request.language == "en"
    assert request.platform is Platform.SHORTS
    assert request.max_cost_usd is None
    assert request.scenes == (SceneRequest(prompt="waves"),)
    assert request.scenes[0].visual is Visual.IMAGE
    assert request.scenes[0].duration_seconds is None


def test_every_field_is_read() -> None:
    request = parse_request(
        a_request(
            user_id="ann",
            aspect_ratio="1:1",
            language="pt-BR",
            max_cost_usd=1.5,
            voice="heart",
            providers={"clip": "motion", "image": "storyboard"},
            platform="tiktok",
            scenes=[a_scene(visual="clip", picture="a.png", duration_seconds=7, variation=3)],
        )
    )

    assert request.providers == {ProviderKind.CLIP: "motion", ProviderKind.IMAGE: "storyboard"}
    assert request.providers.get(ProviderKind("image")) == "storyboard"
    assert request.platform is Platform.TIKTOK
    assert request.max_cost_usd == 1.5
    scene = request.scenes[0]
    assert (scene.visual, scene.picture, scene.duration_seconds, scene.variation) == ("clip", "a.png", 7.0, 3)


def test_camel_case_is_read_and_snake_case_is_written() -> None:
    request = parse_request(
        a_request(userId="ann", aspectRatio="16:9", maxCostUsd=2, scenes=[a_scene(durationSeconds=3)])
    )

    written = request.model_dump(mode="json")
    assert written["user_id"] == "ann"
    assert written["aspect_ratio"] == "16:9"
    assert written["max_cost_usd"] == 2.0
    assert written["scenes"][0]["duration_seconds"] == 3.0
    assert not any(key != key.lower() for key in written)


def test_what_is_written_is_read_again_as_the_same_request() -> None:
    request = parse_request(
        a_request(providers={"speech": "offline"}, scenes=[a_scene(), a_scene(visual="clip", variation="b")])
    )

    assert parse_request(request.model_dump(mode="json")) == request
    assert ProjectRequest.model_validate(request.model_dump(mode="json")) == request
    assert pickle.loads(pickle.dumps(request)) == request  # noqa: S301 - made one line above


def test_null_is_as_good_as_no_value() -> None:
    raw = a_request(voice=None, platform=None, providers=None, scenes=[a_scene(narration=None, visual=None)])

    assert parse_request(raw) == parse_request(a_request(scenes=[{"prompt": "a quiet harbour"}]))


@pytest.mark.parametrize(
    ("ratio", "size", "platform"),
    [
        ("9:16", Size(1080, 1920), Platform.SHORTS),
        ("16:9", Size(1920, 1080), Platform.YOUTUBE),
        ("1:1", Size(1080, 1080), Platform.REELS),
    ],
)
def test_a_ratio_has_a_size_and_a_usual_platform(ratio: str, size: Size, platform: Platform) -> None:
    request = parse_request(a_request(aspect_ratio=ratio))

    assert request.aspect_ratio.size == size
    assert request.platform is platform


def test_a_clip_lasts_five_seconds_unless_it_says_otherwise() -> None:
    request = parse_request(
        a_request(scenes=[a_scene(visual="clip"), a_scene(visual="clip", duration_seconds=1)])
    )

    assert [scene.duration_seconds for scene in request.scenes] == [5.0, 1.0]


@pytest.mark.parametrize("blank", ["", "  \n", "\u200b\u200c"])
def test_blank_narration_is_no_narration(blank: str) -> None:
    assert parse_request(a_request(scenes=[a_scene(narration=blank)])).scenes[0].narration is None


def test_a_title_becomes_one_line_and_longer_texts_keep_theirs() -> None:
    request = parse_request(
        a_request(title=" Two\nlines\tof  title ", scenes=[a_scene(prompt="a\r\nb\n", narration="c\td")])
    )

    assert request.title == "Two lines of title"
    assert request.scenes[0].prompt == "a\nb"
    assert request.scenes[0].narration == "c\td"


def test_joiners_and_marks_of_direction_inside_a_text_are_kept() -> None:
    text = "می\u200cشود \u200fو\u200e 👩\u200d🚀"

    assert parse_request(a_request(scenes=[a_scene(narration=text)])).scenes[0].narration == text


@pytest.mark.parametrize(
    ("written", "read"),
    [("EN", "en"), ("pt-br", "pt-BR"), ("zh-hant-TW", "zh-Hant-TW"), ("fa", "fa"), ("es-419", "es-419")],
)
def test_a_language_code_is_written_in_its_usual_case(written: str, read: str) -> None:
    assert parse_request(a_request(language=written)).language == read


def test_a_request_cannot_be_changed() -> None:
    request = parse_request(a_request())

    with pytest.raises(ValidationError, match="frozen"):
        request.title = "another"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        request.scenes[0].prompt = "another"  # type: ignore[misc]


def test_a_request_built_in_code_keeps_the_same_rules() -> None:
    wrong: dict[str, Any] = {"prompt": "x", "visual": "clip", "duration_seconds": 11}

    with pytest.raises(ValidationError):
        SceneRequest(**wrong)


def test_a_stored_request_of_a_newer_release_can_still_be_read() -> None:
    assert ProjectRequest.model_validate(a_request(mood="calm")) == ProjectRequest.model_validate(a_request())
