import pytest

from models.checks import parse_request
from models.faults import RequestRefused
from models.platforms import Platform
from models.request import ProviderKind, SceneRequest, Visual
from models.video_job import video_job_id
from tests.models.requests import a_job, a_request, a_scene, rules, the_fault


def test_a_video_job_is_a_project_of_one_clip_scene() -> None:
    request = parse_request(a_job(id="job-1"))

    assert request.scenes == (
        SceneRequest(prompt="waves on a beach", visual=Visual.CLIP, duration_seconds=6),
    )
    assert request.title == "waves on a beach"
    assert request.user_id == "ann"
    assert request.aspect_ratio.value == "16:9"
    assert request.platform is Platform.YOUTUBE
    assert request.providers == {ProviderKind.CLIP: "motion"}
    assert video_job_id(a_job(id="job-1")) == "job-1"
    assert video_job_id(a_job()) is None


def test_a_video_job_may_be_written_in_camel_case() -> None:
    raw = {"userId": "ann", "model": "motion", "prompt": "waves on a beach", "aspectRatio": "16:9"}

    assert parse_request(raw | {"durationSeconds": 6}) == parse_request(a_job())


def test_a_whole_contract_that_is_queued_and_empty_is_a_request() -> None:
    raw = a_job(status="queued", provider_task_id=None, output_url=None, errorCode=None)

    assert parse_request(raw) == parse_request(a_job())


def test_faults_of_a_video_job_are_named_as_its_author_wrote_it() -> None:
    raw = a_job(prompt=" ", duration_seconds=50, model="a/b", id="a b", outputUrl="x", zoom=2)

    assert rules(raw) == {
        "prompt": "blank",
        "duration_seconds": "out_of_range",
        "model": "bad_name",
        "id": "bad_name",
        "output_url": "unknown_key",
        "zoom": "unknown_key",
    }
    assert (
        the_fault(a_job(duration_seconds=50)).message
        == "duration_seconds is 50; a clip lasts 1 to 10 seconds"
    )
    assert the_fault(a_job(model=5)).message.startswith("model is a number")


@pytest.mark.parametrize("key", ["user_id", "prompt", "aspect_ratio", "duration_seconds"])
def test_a_video_job_must_say_all_that_the_contract_requires(key: str) -> None:
    raw = a_job()
    del raw[key]

    assert rules(raw) == {key: "required"}


def test_a_long_prompt_gives_a_short_title_of_whole_words() -> None:
    title = parse_request(a_job(prompt="waves " * 50)).title

    assert title == "waves " * 9 + "waves…"


def test_a_request_with_scenes_is_no_video_job() -> None:
    assert rules(a_request(model="motion", scenes=[a_scene()])) == {"model": "unknown_key"}


def test_an_id_that_cannot_name_a_project_is_refused() -> None:
    with pytest.raises(RequestRefused, match="id is 'a/b'"):
        video_job_id(a_job(id="a/b"))
    with pytest.raises(RequestRefused):
        video_job_id(a_job(id=7))
