from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image
from pydantic import SecretStr

from models.faults import Fault, RequestRefused
from models.request import ProviderKind
from sceneloom.accounts import Account
from sceneloom.admission import Admission, Voices, load
from sceneloom.outside import connect
from sceneloom.providers import voices as offline_voices
from sceneloom.settings import Settings

STORED = "file:///store/assets/"


class FakeVoice(NamedTuple):
    letters: str


class FakeVoices:
    """Two voices: `plain` speaks the letters a to z in `en`, `kyr` those of Russian in `ru`."""

    def voice_for(self, language: str, voice: str | None = None) -> FakeVoice:
        known = {
            "en": ("plain", "abcdefghijklmnopqrstuvwxyz"),
            "ru": ("kyr", "абвгдежзийклмнопрстуфхцчшщъыьэюя"),
        }
        if language not in known:
            raise ValueError(f"no voice speaks {language}")
        name, letters = known[language]
        if voice not in {None, name}:
            raise ValueError(f"no voice {voice}; there is {name}")
        return FakeVoice(letters)

    def unspeakable(self, text: str, voice: FakeVoice) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(
                letter for letter in text if letter.isalpha() and letter.lower() not in voice.letters
            )
        )

    def has_words(self, text: str) -> bool:
        return any(letter.isalnum() for letter in text)


def an_admission(voices: Voices | None = None) -> Admission:
    return Admission(
        voices=voices or FakeVoices(),
        known_providers={"image": ["storyboard", "paint"], "speech": ["offline"], "clip": ["motion"]},
        is_stored=lambda url: url.startswith(STORED),
    )


def a_request(**changes: Any) -> dict[str, Any]:
    return {"title": "Sea", "scenes": [{"prompt": "waves", "narration": "The sea is calm."}]} | changes


def faults(raw: object, folder: Path | None = None, voices: Voices | None = None) -> tuple[Fault, ...]:
    with pytest.raises(RequestRefused) as refusal:
        an_admission(voices).check(raw, folder=folder)
    return refusal.value.faults


def rules(raw: object, folder: Path | None = None) -> dict[str, str]:
    return {fault.path: fault.rule for fault in faults(raw, folder)}


def test_a_good_request_is_admitted() -> None:
    request = an_admission().check(a_request(voice="plain", providers={"image": "paint"}), folder=None)

    assert request.title == "Sea"
    assert request.providers == {ProviderKind.IMAGE: "paint"}


def test_faults_of_the_words_and_of_the_world_are_told_together(tmp_path: Path) -> None:
    raw = a_request(
        title="",
        providers={"image": "pain"},
        scenes=[
            {"prompt": "", "narration": "Москва"},
            {"prompt": "x", "picture": "no.png", "narration": "!!!"},
            {"prompt": "x", "duration_seconds": 99, "narration": "ok"},
        ],
    )

    assert rules(raw, tmp_path) == {
        "title": "blank",
        "providers.image": "unknown_provider",
        "scenes[0].prompt": "blank",
        "scenes[0].narration": "unspeakable",
        "scenes[1].picture": "missing_file",
        "scenes[1].narration": "nothing_to_speak",
        "scenes[2].duration_seconds": "out_of_range",
    }


def test_letters_that_the_voice_cannot_speak_are_shown_with_what_to_do() -> None:
    (fault,) = faults(a_request(scenes=[{"prompt": "x"}, {"prompt": "y", "narration": "Go to Москва"}]))

    assert fault.path == "scenes[1].narration"
    assert fault.message.startswith(
        "scene 2: narration holds letters that the voice for en cannot speak: М о с к"
    )
    assert "change language" in fault.message


def test_many_letters_are_not_all_shown() -> None:
    (fault,) = faults(a_request(scenes=[{"prompt": "x", "narration": "абвгдежзийклмн"}]))

    assert "а б в г д е ж з …" in fault.message


def test_an_unknown_language_is_one_fault_however_many_scenes_there_are() -> None:
    scenes = [{"prompt": "x", "narration": "word"}] * 3

    assert rules(a_request(language="xx", voice="plain", scenes=scenes)) == {"language": "unknown_language"}


def test_an_unknown_voice_is_told_with_what_there_is() -> None:
    (fault,) = faults(a_request(voice="bass"))

    assert (fault.path, fault.rule) == ("voice", "unknown_voice")
    assert "there is plain" in fault.message


def test_a_language_that_cannot_be_read_says_nothing_about_the_narration() -> None:
    scenes = [{"prompt": "x", "narration": "Москва"}]

    assert rules(a_request(language=7, scenes=scenes)) == {"language": "wrong_type"}
    assert rules(a_request(voice=7, scenes=scenes)) == {"voice": "wrong_type"}


def test_a_provider_that_nobody_knows_is_told_by_its_name() -> None:
    (found,) = faults(a_request(providers={"image": "storybord"}))

    assert found.message.endswith("'storybord', and there is no provider storybord")


def test_a_video_job_is_admitted_where_its_model_is_a_provider() -> None:
    job = {"user_id": "u", "model": "motion", "prompt": "x", "aspect_ratio": "9:16", "duration_seconds": 5}

    assert an_admission().check(job, folder=None).providers == {ProviderKind.CLIP: "motion"}
    assert rules(job | {"model": "hollywood"}) == {"model": "unknown_provider"}


def test_over_a_topic_a_picture_is_an_address_or_stored_already() -> None:
    scenes = [
        {"prompt": "x", "picture": "https://example.org/a.png"},
        {"prompt": "x", "picture": f"{STORED}ab/abcd.png"},
    ]

    assert (
        an_admission().check(a_request(scenes=scenes), folder=None).scenes[1].picture == scenes[1]["picture"]
    )
    assert rules(a_request(scenes=[{"prompt": "x", "picture": "a.png"}])) == {
        "scenes[0].picture": "local_file"
    }
    assert rules(a_request(scenes=[{"prompt": "x", "picture": "file:///etc/passwd"}])) == {
        "scenes[0].picture": "local_file"
    }


def test_from_a_file_a_picture_lies_beside_it(tmp_path: Path) -> None:
    Image.new("RGB", (400, 300), "navy").save(tmp_path / "sea.png")
    raw = a_request(scenes=[{"prompt": "x", "picture": "sea.png"}])

    assert an_admission().check(raw, folder=tmp_path).scenes[0].picture == "sea.png"


def test_a_broken_picture_of_many_scenes_is_a_fault_of_each(tmp_path: Path) -> None:
    (tmp_path / "page.png").write_text("<html>")

    assert rules(a_request(scenes=[{"prompt": "x", "picture": "page.png"}] * 3), tmp_path) == {
        f"scenes[{index}].picture": "not_an_image" for index in range(3)
    }


def test_loading_belongs_to_admission(tmp_path: Path) -> None:
    path = tmp_path / "film.yaml"
    path.write_text("title: Sea\naspect_ratio: 16:9\nscenes: [{prompt: waves}]")

    assert an_admission().check(load(path), folder=tmp_path).aspect_ratio.value == "16:9"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"language": "ru", "scenes": [{"prompt": "x", "narration": "Тихое море."}]}, {}),
        ({"language": "fa", "scenes": [{"prompt": "x", "narration": "دریا آرام است."}]}, {}),
        ({"scenes": [{"prompt": "x", "narration": "海很平静"}]}, {"scenes[0].narration": "unspeakable"}),
        ({"scenes": [{"prompt": "x", "narration": "🎉 …!"}]}, {"scenes[0].narration": "nothing_to_speak"}),
        ({"language": "tlh"}, {"language": "unknown_language"}),
        ({"voice": "caruso"}, {"voice": "unknown_voice"}),
    ],
)
def test_the_offline_voices_decide_in_the_same_way(changes: dict[str, Any], expected: dict[str, str]) -> None:
    admission = an_admission(offline_voices)

    try:
        admission.check(a_request(**changes), folder=None)
        found = {}
    except RequestRefused as refusal:
        found = {fault.path: fault.rule for fault in refusal.faults}

    assert found == expected


# -- what the model can do -----------------------------------------------------------------------------------


def a_paid_admission() -> Any:
    key = SecretStr("k-123456")
    accounts = {"runway": Account(key=key), "elevenlabs": Account(key=key, voice="v-1")}
    chosen = Settings.model_construct(assets="memory://", accounts=accounts)
    return connect(chosen).admission


def paid_faults(**changes: Any) -> dict[str, str]:
    scenes = changes.pop("scenes", [{"prompt": "waves", "visual": "clip", "duration_seconds": 4.2}])
    try:
        a_paid_admission().check(a_request(scenes=scenes, **changes), folder=None)
    except RequestRefused as refused:
        return {fault.path: fault.message for fault in refused.faults}
    return {}


def test_a_length_that_the_model_does_not_make_is_told_with_the_nearest_and_its_price() -> None:
    assert paid_faults(providers={"clip": "runway"}) == {
        "scenes[0].duration_seconds": "scene 1: duration_seconds is 4.2; gen4.5 makes 2 to 10 whole seconds; "
        "the nearest is 4, for $0.48"
    }
    assert paid_faults() == {}


def test_a_ratio_that_the_model_does_not_make_is_told_once_for_all_scenes() -> None:
    scenes = [{"prompt": "waves", "visual": "clip"}] * 3
    assert paid_faults(providers={"clip": "runway"}, scenes=scenes, aspect_ratio="1:1") == {
        "aspect_ratio": "aspect_ratio is 1:1; gen4.5 makes 16:9 or 9:16; the nearest is 16:9, for $0.60"
    }
    framed = [{"prompt": "waves", "visual": "clip", "picture": "https://x.example/a.png"}]
    assert paid_faults(providers={"clip": "runway"}, scenes=framed, aspect_ratio="1:1") == {}


def test_the_price_of_the_nearest_ratio_is_that_of_a_length_which_is_made() -> None:
    scenes = [{"prompt": "waves", "visual": "clip", "duration_seconds": 4.2}]
    found = paid_faults(providers={"clip": "runway"}, scenes=scenes, aspect_ratio="1:1")
    assert [message.partition("the nearest is ")[2] for message in found.values()] == [
        "16:9, for $0.48",
        "4, for $0.48",
    ]


def test_a_prompt_that_the_model_does_not_take_is_told_for_its_scene() -> None:
    scenes = [{"prompt": "a", "visual": "clip"}, {"prompt": "a" * 1001, "visual": "clip"}]
    assert set(paid_faults(providers={"clip": "runway"}, scenes=scenes)) == {"scenes[1].prompt"}


def test_what_cannot_be_read_is_no_fault_of_the_model_too() -> None:
    scenes = [{"prompt": "a", "visual": "clip", "duration_seconds": "five"}]
    (path,) = paid_faults(providers={"clip": "runway"}, scenes=scenes)
    assert path == "scenes[0].duration_seconds"


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"clip": "sora"}, "was shut down on 2026-09-24; use ark, runway or google"),
        ({"clip": "kling"}, "kling is not set up: set SCENELOOM_KLING_KEY"),
        ({"image": "runway"}, "runway makes clip, not image"),
        ({"image": "storybord"}, "did you mean storyboard?"),
        ({"clip": "runwya"}, "there is no provider runwya; did you mean runway?"),
        ({"clip": "klng"}, "did you mean kling? Set SCENELOOM_KLING_KEY, too"),
        ({"clip": "hollywood"}, "there is motion, runway"),
    ],
)
def test_a_provider_that_is_not_there_is_told_with_what_to_do(chosen: dict[str, str], said: str) -> None:
    (message,) = paid_faults(providers=chosen).values()
    assert message.endswith(said)
    scenes = [
        {"prompt": "waves", "visual": "clip", "duration_seconds": 5, "providers": chosen},
        {"prompt": "waves"},
    ]
    (of_scene,) = paid_faults(scenes=scenes).values()
    assert of_scene.endswith(said)


def test_the_voices_of_a_service_are_not_measured_by_ours() -> None:
    scenes = [{"prompt": "x", "narration": "Qo' DISovbogh"}, {"prompt": "y", "narration": "海很平静"}]
    wishes = {"language": "tlh", "voice": "their-voice", "scenes": scenes}

    assert paid_faults(providers={"speech": "elevenlabs"}, **wishes) == {}
    assert set(paid_faults(**wishes)) == {"language"}


def test_words_are_needed_whoever_speaks_them() -> None:
    scenes = [{"prompt": "x", "narration": "!!!"}]

    assert set(paid_faults(providers={"speech": "elevenlabs"}, scenes=scenes)) == {"scenes[0].narration"}
