from datetime import date
from typing import Any

import pytest
from pydantic import ValidationError

from models.shapes import AspectRatio
from models.work import ClipRequest, ImageRequest, JobKind, JobRequest, SpeechRequest
from sceneloom.providers.catalogue import Model, entries, gone, misfits, read_entry
from sceneloom.providers.services import services

EVERY_MODEL = [(entry, model) for entry in entries().values() for model in entry.models]
each_model = pytest.mark.parametrize(
    ("entry", "model"), EVERY_MODEL, ids=[f"{entry.name}-{model.name}" for entry, model in EVERY_MODEL]
)


def a_clip(**changes: Any) -> ClipRequest:
    wishes = {"prompt": "a fox", "aspect_ratio": AspectRatio.PORTRAIT, "duration_seconds": 5.0}
    return ClipRequest.model_validate(wishes | changes)


def a_model(**facts: Any) -> Model:
    return Model.model_validate({"name": "clips-1", "kind": "clip", **facts})


def told(model: Model, request: JobRequest) -> dict[str, str]:
    return {misfit.field: misfit.text for misfit in misfits(model, request)}


@each_model
def test_what_is_ordered_without_a_choice_is_something_that_the_model_makes(entry: Any, model: Model) -> None:
    assert not model.resolutions or model.resolution in model.resolutions
    for prices in (model.usd_per_second, model.usd_each):
        assert set(prices) <= {*model.resolutions, "any"}


@each_model
def test_a_model_that_goes_names_what_comes_after_it(entry: Any, model: Model) -> None:
    if model.retires_on:
        named = model.replaced_by.split()[0]
        assert named in entries() or entry.model(named, model.kind)


@each_model
def test_the_models_of_clips_make_at_least_one_of_our_shapes(entry: Any, model: Model) -> None:
    assert not model.ratios or set(model.ratios) & set(AspectRatio)


def test_every_service_of_the_catalogue_has_an_adapter_for_all_that_it_makes() -> None:
    ours = {name: set(service.adapters) for name, service in services().items() if name in entries()}
    assert ours == {name: set(entry.kinds) for name, entry in entries().items()}


def test_the_usual_model_of_a_service_is_not_the_one_that_goes_first() -> None:
    for entry in entries().values():
        for kind in entry.kinds:
            usual = entry.model(entry.usual_model(kind), kind)
            dates = [model.retires_on or date.max for model in entry.models if model.kind is kind]
            assert usual is None or (usual.retires_on or date.max) == max(dates)


def test_what_is_gone_names_services_that_are_there() -> None:
    for name, past in gone().items():
        assert set(past.instead) <= set(services())
        assert name not in services()
        assert past.instead[0] in past.told


def test_a_whole_name_is_found_before_a_pattern() -> None:
    ark = entries()["ark"]
    assert ark.model("dreamina-seedance-2-0-260128", JobKind.CLIP) is ark.models[0]
    mini = ark.model("doubao-seedance-2-0-mini-260615", JobKind.CLIP)
    assert mini is not None
    assert mini.resolutions == ("480p", "720p")
    assert ark.model("something-new", JobKind.CLIP) is None
    assert ark.model("dreamina-seedance-2-0-260128", JobKind.IMAGE) is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ('name = "Acme 1"', "name"),
        ('name = "acme"\ncolour = "red"', "colour"),
        ('name = "acme"\n[[models]]\nname = "x"\nkind = "opera"', "kind"),
        ('name = "acme"\n[capabilities]\nwebhook = "pigeon"', "webhook"),
    ],
)
def test_a_wrong_entry_names_what_is_wrong(wrong: str, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        read_entry(f'title = "Acme"\ndocs = ""\nurl = "https://acme.example"\n{wrong}')


# -- limits --------------------------------------------------------------------------------------------------


def test_what_a_model_makes_is_no_misfit() -> None:
    model = a_model(seconds="4-15", ratios=["9:16"], prompt_characters=5)
    assert told(model, a_clip()) == {}
    assert told(a_model(), a_clip(duration_seconds=1.25, first_frame_url="https://x.example/a.png")) == {}


@pytest.mark.parametrize(
    ("made", "asked", "nearest"),
    [
        ([5, 10], 7.0, 5.0),
        ([5, 10], 7.5, 10.0),
        ("4-15", 1.5, 4.0),
        ("4-15", 4.2, 4.0),
        ([4, 6, 8], 5.0, 6.0),
    ],
)
def test_another_length_is_told_with_the_nearest(made: Any, asked: float, nearest: float) -> None:
    (misfit,) = misfits(a_model(seconds=made), a_clip(duration_seconds=asked))
    assert misfit.field == "duration_seconds"
    assert misfit.nearest == a_clip(duration_seconds=nearest)


def test_lengths_are_written_as_people_do() -> None:
    assert told(a_model(seconds="4-15"), a_clip(duration_seconds=2.5)) == {
        "duration_seconds": "is 2.5; clips-1 makes 4 to 15 whole seconds"
    }
    assert told(a_model(seconds=[4, 6, 8]), a_clip())["duration_seconds"].endswith("4, 6 or 8 seconds")


def test_a_first_frame_changes_what_is_possible() -> None:
    model = a_model(
        seconds=[5, 10], seconds_with_picture=[5], ratios=["16:9"], ratios_with_picture=["16:9", "1:1"]
    )
    square = {"aspect_ratio": AspectRatio.SQUARE, "duration_seconds": 10.0}
    assert set(told(model, a_clip(**square))) == {"aspect_ratio"}
    assert set(told(model, a_clip(**square, first_frame_url="https://x.example/a.png"))) == {
        "duration_seconds"
    }


def test_a_first_frame_that_is_needed_or_not_possible_is_told() -> None:
    assert set(told(a_model(first_frame="required"), a_clip())) == {"picture"}
    framed = a_clip(first_frame_url="https://x.example/a.png")
    assert set(told(a_model(first_frame="none"), framed)) == {"picture"}


def test_a_prompt_that_is_too_long_is_told_with_both_lengths() -> None:
    model = a_model(prompt_characters=4)
    assert told(model, a_clip()) == {"prompt": "has 5 characters; clips-1 takes 4: shorten it"}
    assert set(told(model, ImageRequest(prompt="a fox", width=8, height=8))) == {"prompt"}
    assert set(told(model, SpeechRequest(text="a fox", language="en"))) == {"narration"}
    own = ImageRequest(prompt="a fox", width=8, height=8, picture_url="https://x.example/a.png")
    assert told(model, own) == {}
