import asyncio
import os
from pathlib import Path

import pytest

from models.commands import RequestScene, Want
from models.job_events import JobSucceeded
from models.work import ImageRequest, Output, Source, SpeechRequest
from sceneloom import demo as demo_module
from sceneloom.brokers.process import live_brokers
from sceneloom.codec import encode
from sceneloom.demo import Crash, Demo, NoExample, WorkerDied, example, prove, running
from sceneloom.settings import Settings
from sceneloom.topic_admin import ensure_topics
from sceneloom.topics import JOB_EVENTS, SCENE_REQUESTS
from tests.kafka_fixtures import TestBroker
from tests.stage import MOMENT, settings_for, write


def made(kind: str, source: Source = Source.MADE, url: str = "file:///x") -> JobSucceeded:
    return JobSucceeded(
        event_id=f"e-{kind}",
        project_id="film",
        job_id=f"film/scene-001/{kind}",
        attempt=1,
        occurred_at=MOMENT,
        output=Output(url=url, media_type="image/png"),
        source=source,
    )


@pytest.fixture
async def settings(broker: TestBroker, unique: str) -> Settings:
    settings = settings_for(broker.bootstrap, f"{unique}-")
    await ensure_topics(settings)
    request = RequestScene(
        project_id="film",
        scene_id="scene-001",
        attempt=1,
        user_id="u",
        wants=(
            Want(request=ImageRequest(prompt="sea", width=8, height=8)),
            Want(request=SpeechRequest(text="sea", language="en")),
        ),
    )
    await write(settings, SCENE_REQUESTS, "film", encode(request))
    return settings


IMAGE, SPEECH = "film/scene-001/image", "film/scene-001/speech"


async def test_a_proof_tells_what_was_kept_and_what_was_started_again(settings: Settings) -> None:
    for event in (made("image"), made("speech")):
        await write(settings, JOB_EVENTS, "film", encode(event))
    proof = await prove(settings, "film", Crash(1, frozenset({IMAGE}), frozenset({SPEECH})))
    assert (proof.assets, proof.kept, proof.started_again, proof.made_twice) == (2, 1, 1, ())


async def test_a_proof_names_an_asset_that_was_made_twice(settings: Settings) -> None:
    again = (made("image", url="file:///y"), made("speech"), made("speech", Source.CACHED))
    for event in (made("image"), made("speech"), *again):
        await write(settings, JOB_EVENTS, "film", encode(event))
    proof = await prove(settings, "film", Crash(1, frozenset({IMAGE}), frozenset({SPEECH})))
    assert proof.made_twice == (IMAGE,)


def test_the_example_is_found_beside_the_program() -> None:
    assert example().name == "lighthouse.yaml"
    assert example().is_file()


def test_without_the_example_the_user_is_asked_for_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(demo_module, "__file__", str(tmp_path / "sceneloom" / "demo.py"))
    with pytest.raises(NoExample, match="sceneloom demo FILE"):
        example()


SLEEPS = "print('asleep', flush=True); import time; time.sleep(300)"
WITH_A_CHILD = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEPS!r}]); {SLEEPS}"


def let_workers_run(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(demo_module, "_WORKER", ("-c", code))


async def until_all_sleep(demo: Demo, processes: int) -> None:
    async with asyncio.timeout(30):
        while demo.last_lines().count("asleep") < processes:  # noqa: ASYNC110 -- a log file calls nobody
            await asyncio.sleep(0.05)


def lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


async def test_nothing_of_any_worker_is_left_when_the_demo_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_workers_run(monkeypatch, WITH_A_CHILD)
    async with running(tmp_path) as demo:
        await until_all_sleep(demo, 2)
        killed = demo.kill_worker()
        assert lives(killed), "only the worker was killed, not its children"
        demo.start_worker()
        await until_all_sleep(demo, 4)
        groups = list(demo._groups)
        assert len(groups) == 2
    async with asyncio.timeout(10):
        while any(lives(group) for group in groups):  # noqa: ASYNC110 -- the kernel reaps when it does
            await asyncio.sleep(0.05)
    assert not await asyncio.to_thread(_answers, demo.settings)


def _answers(settings: Settings) -> bool:
    return live_brokers(int(settings.bootstrap[0].rpartition(":")[2])) > 0


async def test_a_worker_that_dies_by_itself_is_told_with_the_end_of_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_workers_run(monkeypatch, "import sys; print('no voice'); sys.exit(9)")
    async with running(tmp_path) as demo, asyncio.timeout(30):
        with pytest.raises(WorkerDied, match=r"(?s)exit code 9; .*worker\.log ends with:\nno voice"):
            await demo.guard()


async def test_a_worker_sees_the_settings_of_the_demo_and_not_those_of_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCENELOOM_TOPIC_PREFIX", "mine-")
    monkeypatch.setenv("SCENELOOM_PARTITIONS", "17")
    let_workers_run(
        monkeypatch,
        "from sceneloom.settings import Settings; s = Settings(); "
        "print('settings', s.topic_prefix, s.partitions, s.broker); " + SLEEPS,
    )
    async with running(tmp_path) as demo:
        await until_all_sleep(demo, 1)
        assert f"settings  {demo.settings.partitions} {demo.settings.broker}" in demo.last_lines()
        assert demo.settings.topic_prefix == ""
