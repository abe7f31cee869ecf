import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sceneloom.assets.store import open_assets
from sceneloom.cli import requests
from sceneloom.cli.outcomes import Outcome, Stop
from sceneloom.cli.requests import prepared
from sceneloom.settings import Settings
from tests.cli.conftest import Run

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def _topics_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async def there(_settings: Settings, topics: list[str]) -> dict[str, int]:
        return dict.fromkeys(topics, 4)

    monkeypatch.setattr(requests, "partition_counts", there)


def written(folder: Path, name: str = "film.json", **changes: Any) -> Path:
    path = folder / name
    request = {"title": "The keeper", "scenes": [{"prompt": "a lighthouse"}]} | changes
    path.write_text(json.dumps(request), encoding="utf-8")
    return path


async def test_the_same_file_is_the_same_command(tmp_path: Path) -> None:
    first = await prepared(written(tmp_path), Settings(), None)
    assert first == await prepared(written(tmp_path), Settings(), None)
    assert first.project_id.startswith("the-keeper-")
    assert first.command_id


async def test_another_content_is_another_project(tmp_path: Path) -> None:
    first = await prepared(written(tmp_path), Settings(), None)
    other = await prepared(written(tmp_path, user_id="somebody"), Settings(), None)
    assert first.project_id != other.project_id


@pytest.mark.parametrize(
    ("title", "language", "start"),
    [
        ("Смотритель", "ru", "film-"),
        ("فانوس", "fa", "film-"),
        ("Café № 5!", "en", "cafe-no-5-"),
        ("x" * 90, "en", "x" * 40),
    ],
)
async def test_a_project_is_named_after_its_title_or_its_file(
    tmp_path: Path, title: str, language: str, start: str
) -> None:
    command = await prepared(written(tmp_path, title=title, language=language), Settings(), None)
    assert command.project_id.startswith(start)


async def test_a_chosen_name_is_kept_and_that_of_a_video_job_too(tmp_path: Path) -> None:
    assert (await prepared(written(tmp_path), Settings(), "mine")).project_id == "mine"
    job = tmp_path / "job.json"
    job.write_text(
        '{"id": "job-7", "userId": "u", "model": "motion", "prompt": "sea", "aspectRatio": "1:1",'
        ' "durationSeconds": 4}'
    )
    command = await prepared(job, Settings(), None)
    assert command.project_id == "job-7"
    assert command.request["scenes"][0]["visual"] == "clip"


async def test_a_local_picture_is_stored_and_its_url_takes_its_place(tmp_path: Path) -> None:
    Image.new("RGB", (300, 300), "navy").save(tmp_path / "sea.png")
    path = written(tmp_path, scenes=[{"prompt": "the sea", "picture": "sea.png"}])
    command = await prepared(path, Settings(assets=str(tmp_path / "assets")), None)
    url = command.request["scenes"][0]["picture"]
    assert url.startswith((tmp_path / "assets").as_uri())
    assert url.endswith(".png")
    stored = await open_assets(str(tmp_path / "assets")).get(url)
    assert stored == (tmp_path / "sea.png").read_bytes()


async def test_a_faulty_file_stores_nothing(tmp_path: Path) -> None:
    Image.new("RGB", (300, 300), "navy").save(tmp_path / "sea.png")
    path = written(tmp_path, scenes=[{"prompt": "", "picture": "sea.png"}])
    with pytest.raises(Stop) as refused:
        await prepared(path, Settings(assets=str(tmp_path / "assets")), None)
    assert refused.value.outcome is Outcome.INVALID
    assert "scenes[0].prompt: scene 1: prompt is empty" in str(refused.value)
    assert not (tmp_path / "assets").exists()


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.iterdir() if path.is_file()))
def test_every_example_is_valid(run: Run, name: str) -> None:
    shown = run("validate", EXAMPLES / name)
    assert shown.stderr == ""
    assert shown.exit_code == 0
    assert " is fine: " in shown.stdout


def test_validate_shows_all_faults_with_their_paths_and_leaves_nothing_behind(
    run: Run, tmp_path: Path
) -> None:
    path = written(tmp_path, titel="x", scenes=[{"prompt": ""}, {"prompt": "y", "picture": "no.png"}])
    refused = run("validate", path)
    assert refused.exit_code == Outcome.INVALID
    assert refused.stdout == ""
    assert refused.stderr.splitlines() == [
        f"error: {path} has 3 faults:",
        "  titel: there is no key 'titel'; did you mean title?",
        "  scenes[0].prompt: scene 1: prompt is empty; say in words what the scene shows",
        f"  scenes[1].picture: scene 2: picture is 'no.png', and there is no such file in {str(tmp_path)!r}",
    ]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["film.json"]


def test_validate_gives_scripts_the_faults_as_json(run: Run, tmp_path: Path) -> None:
    refused = run("validate", "--json", written(tmp_path, scenes=[]))
    assert refused.exit_code == Outcome.INVALID
    verdict = json.loads(refused.stdout)
    assert verdict["valid"] is False
    assert [fault["path"] for fault in verdict["faults"]] == ["scenes"]
    fine = run("validate", "--json", written(tmp_path))
    assert json.loads(fine.stdout) == {"valid": True, "faults": []}


def test_a_file_that_is_not_there_is_invalid_input(run: Run) -> None:
    refused = run("validate", "nowhere.yaml")
    assert refused.exit_code == Outcome.INVALID
    assert "there is no file 'nowhere.yaml'" in refused.stderr
