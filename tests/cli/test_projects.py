import asyncio
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from models.commands import SubmitProject
from models.errors import ErrorCode
from models.events import CommandRefused, ProjectRejected, Receipt
from models.faults import Fault
from models.lifecycle import ProjectState, SceneStatus
from models.snapshot import ProjectSnapshot
from sceneloom.assets.store import open_assets
from sceneloom.cli import following
from sceneloom.cli.outcomes import Outcome
from sceneloom.client import Refusal
from sceneloom.settings import Settings
from sceneloom.topic_admin import ensure_topics
from tests.cli.conftest import Run
from tests.cli.worker_double import answering
from tests.kafka_fixtures import TestBroker
from tests.stage import MOMENT, a_scene, a_snapshot, settings_for, tell_event, tell_state


@pytest.fixture
def settings(broker: TestBroker, unique: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    settings = settings_for(broker.bootstrap, f"{unique}-", data_folder=tmp_path / "data")
    asyncio.run(ensure_topics(settings))
    monkeypatch.setenv("SCENELOOM_BROKER", settings.broker)
    monkeypatch.setenv("SCENELOOM_TOPIC_PREFIX", settings.topic_prefix)
    return settings


@pytest.fixture
def film(tmp_path: Path) -> Path:
    path = tmp_path / "film.yaml"
    path.write_text("title: The keeper\nscenes:\n  - prompt: a lighthouse\n")
    return path


def tell(settings: Settings, snapshot: ProjectSnapshot) -> None:
    asyncio.run(tell_state(settings, snapshot))


def completed(project_id: str, **changes: Any) -> ProjectSnapshot:
    return a_snapshot(
        project_id,
        state=ProjectState.COMPLETED,
        version=9,
        message="Your video is ready.",
        scenes=(a_scene(1, status=SceneStatus.COMPLETED),),
        seconds=4.0,
        receipt=Receipt(bought=2, reused=1),
        **changes,
    )


def failed(project_id: str) -> ProjectSnapshot:
    scene = a_scene(
        1, status=SceneStatus.FAILED, error_code=ErrorCode.MODERATION_REJECTED, message="Change the words."
    )
    return a_snapshot(
        project_id, state=ProjectState.FAILED, version=9, message="Change the words.", scenes=(scene,)
    )


def refused(project_id: str, command_id: str, rule: str, message: str) -> CommandRefused:
    return CommandRefused(
        project_id=project_id,
        command_id=command_id,
        occurred_at=MOMENT,
        rule=rule,
        message=message,
        current_version=9,
    )


def test_submit_publishes_the_request_and_tells_how_to_watch_it(
    run: Run, settings: Settings, film: Path
) -> None:
    with answering(settings, lambda _command: []) as commands:
        told = run("submit", film)
        again = run("submit", "--json", film)
        first, second = commands.get(timeout=30), commands.get(timeout=30)
    project_id = told.stdout.strip()
    assert told.exit_code == Outcome.DONE
    assert f"sceneloom watch {project_id}" in told.stderr
    assert json.loads(again.stdout) == {"project_id": project_id}
    assert isinstance(first, SubmitProject)
    assert first == second, "to submit a file twice is to say the same thing twice"
    assert first.request["title"] == "The keeper"


def test_submit_and_wait_fetches_the_video_and_its_report(
    run: Run, settings: Settings, film: Path, tmp_path: Path
) -> None:
    assets = open_assets(settings.asset_location)
    video = asyncio.run(assets.put(b"a film", media_type="video/mp4"))
    report = asyncio.run(assets.put(b"{}", media_type="application/json"))

    def answer(command: SubmitProject) -> list[ProjectSnapshot | Refusal]:
        project_id = command.project_id
        return [a_snapshot(project_id), completed(project_id, video_url=video, report_url=report)]

    with answering(settings, answer):
        done = run("submit", film, "--wait", "--json", "--project-id", "mine", "--timeout", "60")
    assert done.exit_code == Outcome.DONE, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "project_id": "mine",
        "state": "Completed",
        "video": str(Path("out", "film.mp4")),
        "seconds": 4.0,
        "receipt": {
            "bought": 2,
            "reused": 1,
            "cached": 0,
            "orphaned": 0,
            "fallback": 0,
            "spent_usd": 0.0,
            "saved_usd": 0.0,
        },
    }
    assert (tmp_path / "out" / "film.mp4").read_bytes() == b"a film"
    assert (tmp_path / "out" / "film.report.json").read_bytes() == b"{}"


def test_a_film_in_a_store_that_cannot_be_read_here_is_told_by_its_url(
    run: Run, settings: Settings, film: Path
) -> None:
    elsewhere = f"s3://bucket/assets/ab/{'ab' * 32}.mp4"
    with answering(settings, lambda command: [completed(command.project_id, video_url=elsewhere)]):
        done = run("submit", film, "--wait", "--out", "x/y.mp4")
    assert done.exit_code == Outcome.DONE, done.stderr
    assert f"video    {elsewhere} (4.0 s)" in done.stdout
    assert "receipt  bought 2, reused 1, cached 0, orphaned 0; spent $0.00, saved $0.00" in done.stdout


def test_a_project_that_fails_ends_submit_with_1_and_advice(run: Run, settings: Settings, film: Path) -> None:
    with answering(settings, lambda command: [failed(command.project_id)]):
        ended = run("submit", film, "--wait", "--project-id", "mine")
    assert ended.exit_code == Outcome.FAILED
    assert "failed: Change the words." in ended.stderr
    assert "sceneloom retry mine" in ended.stderr


def test_a_request_that_the_worker_rejects_shows_its_faults(run: Run, settings: Settings, film: Path) -> None:
    def answer(command: SubmitProject) -> list[ProjectSnapshot | Refusal]:
        fault = Fault("scenes[0].prompt", "unspeakable", "scene 1: no")
        return [
            ProjectRejected(
                project_id=command.project_id,
                command_id=command.command_id,
                occurred_at=MOMENT,
                faults=(fault,),
            )
        ]

    with answering(settings, answer):
        ended = run("submit", film, "--wait")
    assert ended.exit_code == Outcome.INVALID
    assert "scenes[0].prompt: scene 1: no" in ended.stderr


def test_a_name_that_is_taken_is_refused_although_its_project_is_completed(
    run: Run, settings: Settings, film: Path
) -> None:
    tell(settings, completed("mine"))

    def answer(command: SubmitProject) -> list[ProjectSnapshot | Refusal]:
        return [
            refused("mine", "somebody else's", "project_exists", "not yours"),
            refused("mine", command.command_id, "project_exists", "this project id is taken"),
        ]

    with answering(settings, answer):
        ended = run("submit", film, "--wait", "--project-id", "mine")
    assert ended.exit_code == Outcome.FAILED
    assert "error: this project id is taken; choose another with --project-id" in ended.stderr


def test_watch_shows_a_project_that_finished_long_ago(run: Run, settings: Settings) -> None:
    tell(settings, completed("film", video_url="file:///film.mp4"))
    shown = run("watch", "film")
    assert shown.exit_code == Outcome.DONE
    assert "film: completed. Your video is ready." in shown.stdout
    assert "video    file:///film.mp4" in shown.stdout


def test_watch_ends_with_1_for_a_project_that_failed(run: Run, settings: Settings) -> None:
    tell(settings, failed("film"))
    shown = run("watch", "film", "--json")
    assert shown.exit_code == Outcome.FAILED
    assert json.loads(shown.stdout)["state"] == "Failed"


def test_watch_stops_with_4_when_its_time_is_over(run: Run, settings: Settings) -> None:
    tell(settings, a_snapshot("film"))
    shown = run("watch", "film", "--timeout", "0.5")
    assert shown.exit_code == Outcome.TIMED_OUT
    assert "film is not done after 0.5 s: the work goes on" in shown.stderr


@pytest.mark.parametrize("command", ["watch", "status", "retry", "cancel"])
def test_a_project_that_nobody_knows_is_told_apart(run: Run, settings: Settings, command: str) -> None:
    ended = run(command, "nobody")
    assert ended.exit_code == Outcome.FAILED
    assert ended.stderr.startswith("error: there is no project nobody yet")


def test_watch_may_wait_for_a_project_that_is_not_there_yet(
    run: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_PATIENCE_SECONDS", 0.05)
    shown = run("watch", "film", "--wait-for-it", "--timeout", "1")
    assert shown.exit_code == Outcome.TIMED_OUT
    assert "no news for a while; is a worker running?" in shown.stdout


def test_ctrl_c_only_stops_watching(settings: Settings) -> None:
    tell(settings, a_snapshot("film"))
    watching = subprocess.Popen(
        [sys.executable, "-u", "-m", "sceneloom", "watch", "film"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout
    assert watching.stdout.readline().startswith("film: making the scenes")
    watching.send_signal(signal.SIGINT)
    _, errors = watching.communicate(timeout=60)
    assert watching.returncode == Outcome.INTERRUPTED
    assert errors == "stopped watching: the work goes on; watch it again with `sceneloom watch film`\n"


def test_status_is_the_latest_snapshot(run: Run, settings: Settings) -> None:
    snapshot = a_snapshot("film", version=4)
    tell(settings, a_snapshot("film", version=3))
    tell(settings, snapshot)
    assert json.loads(run("status", "film", "--json").stdout) == json.loads(snapshot.model_dump_json())
    shown = run("status", "film")
    assert shown.exit_code == Outcome.DONE
    assert shown.stdout.splitlines() == [
        "film: The [bold] keeper",
        "making the scenes. Your scenes are being made.",
        "  scene 1: in progress",
        "receipt  bought 0, reused 0, cached 0, orphaned 0; spent $0.00, saved $0.00",
    ]


def test_without_topics_submit_stores_nothing_and_says_what_to_do(
    run: Run, broker: TestBroker, unique: str, film: Path, tmp_path: Path
) -> None:
    ended = run("submit", film, "--broker", f"kafka://{broker.bootstrap}", "--topic-prefix", f"{unique}-no-")
    assert ended.exit_code == Outcome.UNREACHABLE
    assert "sceneloom topics create" in ended.stderr
    assert not (tmp_path / "data").exists()


def test_whoever_waits_for_a_project_hears_that_it_was_rejected(run: Run, settings: Settings) -> None:
    fault = Fault("title", "required", "title is missing")
    rejected = ProjectRejected(project_id="film", command_id="c", occurred_at=MOMENT, faults=(fault,))
    heard = threading.Event()

    def tell_again_and_again() -> None:
        while not heard.wait(0.5):
            asyncio.run(tell_event(settings, rejected))

    teller = threading.Thread(target=tell_again_and_again)
    teller.start()
    ended = run("watch", "film", "--wait-for-it", "--timeout", "60")
    heard.set()
    teller.join()
    assert ended.exit_code == Outcome.FAILED
    assert "title is missing" in ended.stderr
