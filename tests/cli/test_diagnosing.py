import asyncio
import itertools
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from models.errors import ErrorCode, ProviderFailure
from sceneloom.brokers.process import free_ports
from sceneloom.cli.outcomes import Outcome
from sceneloom.clock import SystemClock
from sceneloom.providers.speech import OfflineSpeech
from sceneloom.rendering import typefaces
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


def told(lines: list[str], verdict: str) -> dict[str, list[str]]:
    """Return what was found with that verdict, by check, each followed by what to do."""
    found: dict[str, list[str]] = {}
    for line, after in itertools.pairwise([*lines, ""]):
        if line.startswith(verdict):
            advice = after.strip()
            assert verdict == "ok" or advice.startswith("→ "), f"nothing says what to do about: {line}"
            found.setdefault(line[9:21].strip(), []).append(f"{line[22:]} {advice}")
    return found


@pytest.fixture
def broken_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A machine on which nothing is as it should be: folders, keys, ffmpeg, fonts and voices.

    Yields the file that is in the way of the folders.
    """
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    no_ffmpeg = tmp_path / "ffmpeg"
    no_ffmpeg.write_text("#!/bin/sh\nexit 1\n")
    no_ffmpeg.chmod(0o755)
    no_font = tmp_path / "no-font.ttf"
    no_font.write_text("no font")

    async def mute(*_: Any, **__: Any) -> Any:
        raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, "no model")

    monkeypatch.setenv("SCENELOOM_ASSETS", str(in_the_way / "store"))
    monkeypatch.setenv("SCENELOOM_DATA_FOLDER", str(in_the_way / "data"))
    monkeypatch.setenv("SCENELOOM_FAL_KEY", "geheim")
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(no_ffmpeg))
    monkeypatch.setattr(typefaces, "_CAPTION_FONT", no_font)
    monkeypatch.setattr(OfflineSpeech, "speak", mute)
    typefaces.caption_fonts.cache_clear()
    yield in_the_way
    typefaces.caption_fonts.cache_clear()


def test_a_broken_setup_names_each_fault_and_what_to_do(
    run: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch, broken_machine: Path
) -> None:
    (port,) = free_ports(1)
    monkeypatch.setenv("SCENELOOM_BROKER", f"kafka://127.0.0.1:{port}")
    monkeypatch.setenv("SCENELOOM_PARTITIONS", "many")
    shown = run("doctor")
    assert shown.exit_code == Outcome.FAILED
    lines = shown.stdout.splitlines()
    faults = told(lines, "fault")
    words = {
        "settings": ["SCENELOOM_PARTITIONS: many is not a whole number", "correct it"],
        "providers": ["fal cannot work as it is set up", "SCENELOOM_FAL_MODEL", "unset SCENELOOM_FAL_KEY"],
        "broker": [f"127.0.0.1:{port} does not answer", "`sceneloom broker`", "SCENELOOM_BROKER"],
        "data folder": [f"{broken_machine}/data cannot be written", "SCENELOOM_DATA_FOLDER"],
        "asset store": [f"{broken_machine}/store", "SCENELOOM_ASSETS"],
        "ffmpeg": [f"{broken_machine.parent}/ffmpeg", "IMAGEIO_FFMPEG_EXE"],
        "fonts": ["the caption fonts cannot be read", "manimgx-fonts"],
        "voices": ["the voice for 'en' does not speak", "hibari-tts"],
    }
    assert list(faults) == list(words)
    for check, expected in words.items():
        assert all(word in faults[check][0] for word in expected), faults[check]
    assert {check: len(found) for check, found in faults.items() if len(found) > 1} == {"voices": 2}
    assert list(told(lines, "warning")) == ["topics", "workers", "clock"]
    assert all("repair broker first" in found[0] for found in told(lines, "warning").values())
    assert list(told(lines, "ok")) == ["packages"]
    assert shown.stderr.endswith("9 faults\n")
    assert "geheim" not in shown.stdout + shown.stderr


@pytest.mark.kafka
def test_a_broken_setup_on_a_broker_that_answers_names_topics_and_clock_once_each(
    run: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch, broken_machine: Path
) -> None:
    asyncio.run(ensure_topics(settings))
    right = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda self: right(self) + timedelta(minutes=10))
    monkeypatch.setenv("SCENELOOM_PARTITIONS", "6")
    monkeypatch.setenv("SCENELOOM_REPLICATION", "3")
    shown = run("doctor")
    assert shown.exit_code == Outcome.FAILED
    lines = shown.stdout.splitlines()
    faults = told(lines, "fault")
    assert list(faults) == [
        *("providers", "topics", "clock", "data folder", "asset store", "ffmpeg", "fonts", "voices"),
    ]
    partitions, replication = faults["topics"]
    assert partitions.startswith("partitions: found 4, wanted 6: ")
    assert "set SCENELOOM_PARTITIONS" in partitions
    assert replication.startswith("replication: found 1, wanted 3: all 9 topics")
    (clock,) = faults["clock"]
    assert "s ahead of the broker's" in clock
    assert "NTP" in clock
    assert list(told(lines, "warning")) == ["workers"]


@pytest.mark.media
def test_missing_topics_are_a_fault(run: Run, settings: Settings) -> None:
    shown = run("doctor", "--json")
    assert shown.exit_code == Outcome.FAILED
    (fault,) = [each for each in json.loads(shown.stdout) if each["verdict"] == "fault"]
    assert fault["check"] == "topics"
    assert f"{settings.topic_prefix}project-requests" in fault["found"]
    assert "sceneloom topics create" in fault["advice"]
