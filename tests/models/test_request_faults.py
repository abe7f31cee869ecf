import json
import math
import pickle
from typing import Any

import pytest

from models.checks import draft_request
from models.faults import MOST_FAULTS, Fault, RequestRefused
from models.lifecycle import ProjectState
from tests.models.requests import a_request, a_scene, refused, rules, the_fault


def test_all_faults_are_told_at_once_with_their_path() -> None:
    raw = {
        "tittle": "Harbour",
        "aspect_ratio": "4:3",
        "max_cost_usd": -1,
        "language": "english please",
        "providers": {"video": "motion"},
        "scenes": [
            {"prompt": " "},
            "a scene",
            {"prompt": "x", "visual": "clip", "duration_seconds": 12, "voiceover": "y"},
        ],
    }

    assert rules(raw) == {
        "tittle": "unknown_key",
        "title": "required",
        "aspect_ratio": "unknown_value",
        "max_cost_usd": "out_of_range",
        "language": "unknown_language",
        "providers.video": "unknown_key",
        "scenes[0].prompt": "blank",
        "scenes[1]": "wrong_type",
        "scenes[2].voiceover": "unknown_key",
        "scenes[2].duration_seconds": "out_of_range",
    }


def test_faults_stand_in_the_order_of_the_scenes_behind_those_of_the_whole() -> None:
    scenes = [a_scene(prompt="", tone="x") for _ in range(12)]

    paths = [fault.path for fault in refused(a_request(language="??", scenes=scenes))]

    assert paths[0] == "language"
    numbers = [int(path[7:].partition("]")[0]) for path in paths[1:]]
    assert numbers == sorted(numbers)
    assert len(numbers) == 24


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"scenes": [a_scene(), a_scene(), a_scene(visual="clip", duration_seconds=12)]},
            "scene 3: duration_seconds is 12; a clip lasts 1 to 10 seconds",
        ),
        (
            {"scenes": [a_scene(duration_seconds=0.25)]},
            "scene 1: duration_seconds is 0.25; an image lasts 0.5 to 60 seconds",
        ),
        ({"scenes": [a_scene(visual="gif")]}, "scene 1: visual is 'gif'; use image or clip"),
        ({"aspect_ratio": "2:3"}, "aspect_ratio is '2:3'; use 9:16, 16:9 or 1:1"),
        ({"title": 1984}, "title is a number; it must be text; put it in quotes"),
        ({"title": "x" * 121}, "title has 121 characters; at most 120 are allowed"),
        ({"scenes": [{"narration": "x"}]}, "scene 1: prompt is missing"),
        ({"scenes": []}, "scenes needs at least one entry"),
        ({"max_cost_usd": "5"}, "max_cost_usd is text; it must be a number"),
        (
            {"scenes": [a_scene(narations="x")]},
            "scene 1: there is no key 'narations'; did you mean narration?",
        ),
        ({"aspect-ratio": "1:1"}, "there is no key 'aspect-ratio'; did you mean aspect_ratio?"),
        (
            {"providers": {"image": "a b"}},
            (
                "providers.image is 'a b'; use 1 to 64 of A-Z, a-z, 0-9, dot, underscore and hyphen, "
                "first a letter or digit"
            ),
        ),
        ({"title": "a\x00b"}, "title holds the invisible character U+0000 at position 2; remove it"),
    ],
)
def test_a_message_says_what_to_do(changes: dict[str, Any], message: str) -> None:
    assert the_fault(a_request(**changes)).message == message


@pytest.mark.parametrize(
    ("scene", "rule"),
    [
        ({"prompt": "x" * 2001}, "too_long"),
        ({"narration": "x" * 2001}, "too_long"),
        ({"prompt": "\u200b \u2060"}, "blank"),
        ({"prompt": ["x"]}, "wrong_type"),
        ({"narration": 5}, "wrong_type"),
        ({"picture": ""}, "blank"),
        ({"duration_seconds": True}, "wrong_type"),
        ({"duration_seconds": "5"}, "wrong_type"),
        ({"duration_seconds": math.nan}, "out_of_range"),
        ({"duration_seconds": 10**400}, "wrong_type"),
        ({"duration_seconds": -1}, "out_of_range"),
        ({"duration_seconds": 61}, "out_of_range"),
        ({"variation": -1}, "wrong_value"),
        ({"variation": True}, "wrong_value"),
        ({"variation": 1.5}, "wrong_value"),
        ({"variation": "x" * 65}, "wrong_value"),
        ({"variation": " "}, "wrong_value"),
        ({"variation": 10**5000}, "wrong_value"),
        ({"prompt": "\ud800"}, "bad_character"),
        ({"narration": "bell \x07"}, "bad_character"),
        ({"narration": "csi \x9b31m"}, "bad_character"),
        ({"prompt": "\ufffe"}, "bad_character"),
    ],
)
def test_a_scene_that_breaks_a_rule_is_refused(scene: dict[str, Any], rule: str) -> None:
    (key,) = scene

    assert rules(a_request(scenes=[a_scene(**scene)])) == {f"scenes[0].{key}": rule}


@pytest.mark.parametrize(("seconds", "visual"), [(1, "clip"), (10, "clip"), (0.5, "image"), (60, "image")])
def test_the_ends_of_a_range_belong_to_it(seconds: float, visual: str) -> None:
    raw = a_request(scenes=[a_scene(visual=visual, duration_seconds=seconds)])

    assert draft_request(raw).faults == ()


@pytest.mark.parametrize("raw", [None, [], "title: x", 5, True, math.nan])
def test_what_is_no_request_at_all_is_refused_in_plain_words(raw: object) -> None:
    fault = the_fault(raw)

    assert (fault.path, fault.rule) == ("", "wrong_type")
    assert fault.message.endswith("it must be keys and values such as title and scenes")


def test_a_key_in_both_spellings_is_refused_even_where_they_agree() -> None:
    fault = the_fault(a_request(user_id="ann", userId="ann"))

    assert (fault.path, fault.rule) == ("user_id", "duplicate_key")
    assert "user_id and as userId" in fault.message


def test_one_scene_too_many_is_refused_together_with_the_faults_of_the_others() -> None:
    raw = a_request(aspect_ratio="16:9", scenes=[a_scene(prompt=""), *[a_scene()] * 100])

    assert rules(raw) == {"scenes": "too_many", "scenes[0].prompt": "blank"}
    assert draft_request(a_request(aspect_ratio="16:9", scenes=[a_scene()] * 100)).faults == ()


def test_a_script_too_long_for_its_platform_is_refused_beside_other_faults() -> None:
    long = "word " * 300

    faults = refused(a_request(scenes=[a_scene(narration=long), a_scene(narration=long, tone="sad")]))

    assert [fault.rule for fault in faults] == ["script_too_long", "unknown_key"]
    assert faults[0].path == "scenes"
    assert "about 240 seconds" in faults[0].message
    assert "shorts takes at most 180" in faults[0].message


def test_the_same_script_fits_another_platform() -> None:
    scenes = [a_scene(narration="word " * 300)] * 2

    assert draft_request(a_request(platform="reels", scenes=scenes)).faults == ()
    assert draft_request(a_request(aspect_ratio="16:9", scenes=scenes)).faults == ()


def test_a_platform_that_cannot_be_read_has_no_limit() -> None:
    scenes = [a_scene(narration="word " * 300)] * 2

    assert rules(a_request(platform="vine", scenes=scenes)) == {"platform": "unknown_value"}
    assert rules(a_request(aspect_ratio="4:3", scenes=scenes)) == {"aspect_ratio": "unknown_value"}


def test_scenes_without_words_fill_a_platform_too() -> None:
    assert rules(a_request(scenes=[{"prompt": "x"}] * 91)) == {"scenes": "script_too_long"}
    assert rules(a_request(scenes=[{"prompt": "x", "duration_seconds": 60}] * 4)) == {
        "scenes": "script_too_long"
    }
    assert draft_request(a_request(scenes=[{"prompt": "x"}] * 90)).faults == ()


def test_a_request_over_300_kilobytes_is_refused_whole() -> None:
    # Persian letters take two bytes: what counts is the size on the wire.
    heavy = [a_scene(prompt="س" * 2000) for _ in range(80)]

    fault = the_fault(a_request(aspect_ratio="16:9", scenes=heavy))

    assert (fault.path, fault.rule) == ("", "too_large")
    light = a_request(aspect_ratio="16:9", scenes=heavy[:70])
    assert draft_request(light).faults == ()
    assert len(json.dumps(light, ensure_ascii=False).encode()) > 280_000


def test_few_lists_that_hold_each_other_many_times_are_refused_at_once() -> None:
    bomb: list[Any] = ["x"]
    for _ in range(6):
        bomb = [bomb] * 100

    assert the_fault(a_request(scenes=bomb)).rule in {"too_large", "too_deep"}


def test_a_list_within_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)

    assert the_fault(a_request(scenes=endless)).rule == "too_deep"


def test_thousands_of_unknown_keys_are_told_as_a_hundred_faults() -> None:
    faults = refused(a_request(**{f"key{number}": 1 for number in range(20_000)}))

    assert len(faults) == MOST_FAULTS
    assert faults[-1] == Fault("", "more_faults", faults[-1].message)
    assert "more faults" in faults[-1].message


def test_strange_keys_are_named_in_letters_that_can_be_printed() -> None:
    faults = refused(
        {"title": "x", "scenes": [a_scene()], 5: 1, "\ud800": 1, "a\nb": 1, "k" * 9999: 1, None: 2}
    )

    assert len(faults) == 5
    for fault in faults:
        assert (fault.path + fault.message).isprintable()
        assert len(fault.message) < 300


def test_a_refusal_names_every_fault_and_survives_another_process() -> None:
    refusal = RequestRefused([Fault("title", "blank", "title is empty"), Fault("", "x", "y")])

    assert str(refusal) == "title is empty; y"
    again = pickle.loads(pickle.dumps(refusal))  # noqa: S301 - made one line above
    assert again.faults == refusal.faults


def test_a_draft_tells_what_it_could_not_read() -> None:
    draft = draft_request(a_request(language=5, scenes=[a_scene(), a_scene(narration=6)]))

    assert draft.request.scenes[0].narration == "Nothing moves."
    assert draft.request.scenes[1].narration is None
    assert not draft.tells(("language",))
    assert not draft.tells(("title",), ("scenes", 1, "narration"))
    assert draft.tells(("title",), ("scenes", 0, "narration"))


def test_no_message_speaks_of_the_machinery() -> None:
    raw = a_request(
        title=[],
        user_id={},
        language=1,
        max_cost_usd=[],
        voice=5,
        providers=3,
        platform=ProjectState,
        scenes=3,
    )

    for fault in refused(raw):
        assert not any(
            word in fault.message.lower() for word in ("pydantic", "input", "valid", "https", "tuple")
        )
