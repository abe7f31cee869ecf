from pathlib import Path

import pytest

from models.platforms import spoken_seconds
from models.request import ProjectRequest, Visual
from models.shapes import AspectRatio
from sceneloom.admission import Admission, load
from sceneloom.providers import voices

EXAMPLES = Path(__file__).parent.parent / "examples"
FILES = sorted(path for path in EXAMPLES.iterdir() if path.is_file())


def admitted(path: Path) -> ProjectRequest:
    admission = Admission(voices=voices, known_providers={}, is_stored=lambda _url: False)
    return admission.check(load(path), folder=path.parent)


def test_there_are_examples_in_three_languages_and_three_shapes() -> None:
    requests = [admitted(path) for path in FILES]

    assert {"en", "ru", "fa"} <= {request.language for request in requests}
    assert {request.aspect_ratio for request in requests} == set(AspectRatio)
    assert any(scene.picture for request in requests for scene in request.scenes)
    assert all(path.stat().st_size < 60_000 for path in EXAMPLES.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_example_is_admitted_and_short_enough_to_try(path: Path) -> None:
    request = admitted(path)

    assert sum(spoken_seconds(scene.narration or "") for scene in request.scenes) < 20


def test_the_first_example_is_three_scenes_of_14_to_17_seconds_with_one_clip() -> None:
    request = admitted(EXAMPLES / "lighthouse.yaml")

    assert request.aspect_ratio is AspectRatio.PORTRAIT
    assert [scene.visual for scene in request.scenes] == [Visual.IMAGE, Visual.CLIP, Visual.IMAGE]
    assert 14 <= sum(spoken_seconds(scene.narration or "") for scene in request.scenes) <= 17
