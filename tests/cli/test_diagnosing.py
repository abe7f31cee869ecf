import asyncio
import json
from pathlib import Path

import pytest

from sceneloom.brokers.process import free_ports
from sceneloom.cli.outcomes import Outcome
from sceneloom.settings import Settings
from sceneloom.topic_admin import ensure_topics
from tests.cli.conftest import Run
from tests.kafka_fixtures import TestBroker
from tests.stage import settings_for

CHECKS = [
    *("packages", "settings", "providers", "broker", "topics", "workers", "clock"),
    *("data folder", "asset store", "ffmpeg", "fonts", "voices"),
]


@pytest.fixture
def settings(broker: TestBroker, unique: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    settings = settings_for(broker.bootstrap, f"{unique}-")
    monkeypatch.setenv("SCENELOOM_BROKER", settings.broker)
    monkeypatch.setenv("SCENELOOM_TOPIC_PREFIX", settings.topic_prefix)
    monkeypatch.setenv("SCENELOOM_PARTITIONS", "4")
    return settings


@pytest.mark.kafka
@pytest.mark.media
def test_a_sound_setup_passes_every_check(run: Run, settings: Settings) -> None:
    asyncio.run(ensure_topics(settings))
    shown = run("doctor", "--json")
    assert shown.exit_code == Outcome.DONE, shown.stdout
    found = json.loads(shown.stdout)
    assert [each["check"] for each in found] == CHECKS
    assert {each["check"] for each in found if each["verdict"] != "ok"} == {"workers"}
    assert shown.stderr.splitlines() == [f"looking at: {check}" for check in CHECKS]


@pytest.mark.media
def test_a_broken_setup_names_each_fault_and_what_to_do(
    run: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SCENELOOM_BROKER", f"kafka://127.0.0.1:{port}")
    monkeypatch.setenv("SCENELOOM_ASSETS", str(tmp_path / "file" / "store"))
    monkeypatch.setenv("SCENELOOM_DATA_FOLDER", str(tmp_path / "file" / "data"))
    monkeypatch.setenv("SCENELOOM_FAL_KEY", "geheim")
    monkeypatch.setenv("SCENELOOM_PARTITIONS", "many")
    shown = run("doctor")
    assert shown.exit_code == Outcome.FAILED
    lines = shown.stdout.splitlines()
    faults = [line for line in lines if line.startswith("fault")]
    assert [line[9:21].strip() for line in faults] == [
        *("settings", "providers", "broker", "data folder", "asset store"),
    ]
    for fault, words in zip(
        faults,
        [
            "SCENELOOM_PARTITIONS: many is not a whole number",
            "SCENELOOM_FAL_MODEL",
            f"127.0.0.1:{port}",
            f"{tmp_path}/file/data",
            f"{tmp_path}/file/store",
        ],
        strict=True,
    ):
        assert words in fault
        assert lines[lines.index(fault) + 1].strip().startswith("→ ")
    assert [line.split()[1] for line in lines if line.startswith("warning")] == ["topics", "workers", "clock"]
    assert [line.split()[1] for line in lines if line.startswith("ok")] == [
        *("packages", "ffmpeg", "fonts", "voices"),
    ]
    assert shown.stderr.endswith("5 faults\n")
    assert "geheim" not in shown.stdout + shown.stderr


@pytest.mark.media
def test_missing_topics_are_a_fault(run: Run, settings: Settings) -> None:
    shown = run("doctor", "--json")
    assert shown.exit_code == Outcome.FAILED
    (fault,) = [each for each in json.loads(shown.stdout) if each["verdict"] == "fault"]
    assert fault["check"] == "topics"
    assert f"{settings.topic_prefix}project-requests" in fault["found"]
    assert "sceneloom topics create" in fault["advice"]
