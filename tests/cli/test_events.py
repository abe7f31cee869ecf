import asyncio
import json
import signal
import subprocess
import sys

import pytest

from models.events import ProjectRejected, SceneCompleted
from models.faults import Fault
from models.work import Assets, Tally
from sceneloom.cli.outcomes import Outcome
from sceneloom.publisher import cloud_event
from sceneloom.settings import Settings
from sceneloom.topic_admin import ensure_topics
from sceneloom.topics import PROJECT_EVENTS
from tests.cli.conftest import Run
from tests.kafka_fixtures import TestBroker
from tests.stage import MOMENT, a_completion, settings_for, tell_event, write


@pytest.fixture
def settings(broker: TestBroker, unique: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    settings = settings_for(broker.bootstrap, f"{unique}-")
    monkeypatch.setenv("SCENELOOM_BROKER", settings.broker)
    monkeypatch.setenv("SCENELOOM_TOPIC_PREFIX", settings.topic_prefix)
    asyncio.run(_tell_some(settings))
    return settings


async def _tell_some(settings: Settings) -> None:
    await ensure_topics(settings)
    scene = SceneCompleted(
        project_id="film-1",
        version=5,
        occurred_at=MOMENT,
        scene_id="scene-001",
        attempt=1,
        assets=Assets(),
        tally=Tally(),
    )
    value, headers = cloud_event(scene)
    await write(settings, PROJECT_EVENTS, "film-1", value, headers)
    await write(settings, PROJECT_EVENTS, "film-1", b"garbage")
    await tell_event(settings, a_completion("film-1"))
    await tell_event(
        settings,
        ProjectRejected(
            project_id="film-2",
            command_id="c",
            occurred_at=MOMENT,
            faults=(Fault("title", "required", "title is missing"),),
        ),
    )


def test_the_completion_events_are_shown_by_default(run: Run, settings: Settings) -> None:
    shown = run("events")
    assert shown.exit_code == Outcome.DONE
    assert sorted(shown.stdout.splitlines()) == [
        "2026-03-04T05:06:07  ProjectCompleted  film-1  file:///film.mp4",
        "2026-03-04T05:06:07  ProjectRejected  film-2  title is missing",
    ]


def test_all_events_of_one_project_as_cloudevents(run: Run, settings: Settings) -> None:
    shown = run("events", "--all", "--project", "film-1", "--json")
    events = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [event["type"] for event in events] == ["SceneCompleted", "ProjectCompleted"]
    assert {event["subject"] for event in events} == {"film-1"}
    assert {event["specversion"] for event in events} == {"1.0"}
    assert events[1]["id"] == a_completion("film-1").event_id


def test_following_goes_on_with_what_comes_until_ctrl_c(settings: Settings) -> None:
    following = subprocess.Popen(
        [sys.executable, "-u", "-m", "sceneloom", "events", "--follow", "--project", "film-1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert following.stdout
    assert "ProjectCompleted  film-1" in following.stdout.readline()
    asyncio.run(tell_event(settings, a_completion("film-1", version=30)))
    assert "ProjectCompleted  film-1" in following.stdout.readline()
    following.send_signal(signal.SIGINT)
    _, errors = following.communicate(timeout=60)
    assert following.returncode == Outcome.INTERRUPTED
    assert "Traceback" not in errors


def test_the_events_of_a_project_that_nobody_has_heard_of_are_an_error_and_no_empty_list(
    run: Run, settings: Settings
) -> None:
    shown = run("events", "--project", "NOSUCH", "--json")
    assert (shown.exit_code, shown.stdout) == (Outcome.FAILED, "")
    assert "there is no project NOSUCH yet" in shown.stderr
    rejected = run("events", "--project", "film-2")
    assert (rejected.exit_code, len(rejected.stdout.splitlines())) == (Outcome.DONE, 1)
