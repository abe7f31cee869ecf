"""A real worker, asked over HTTP from its start to its end."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from models.commands import SubmitProject
from sceneloom.brokers.process import free_ports
from sceneloom.client import send
from sceneloom.settings import Settings
from tests.fakes import a_request
from tests.kafka_fixtures import TestBroker
from tests.stage import settings_for

pytestmark = pytest.mark.kafka


@pytest.fixture
def settings(broker: TestBroker, unique: str) -> Settings:
    (port,) = free_ports(1)
    return settings_for(broker.bootstrap, f"{unique}-", metrics_port=port)


@pytest.fixture
def worker(settings: Settings, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    variables = {
        "SCENELOOM_BROKER": settings.broker,
        "SCENELOOM_TOPIC_PREFIX": settings.topic_prefix,
        "SCENELOOM_PARTITIONS": str(settings.partitions),
        "SCENELOOM_METRICS_PORT": str(settings.metrics_port),
        "SCENELOOM_DATA_FOLDER": str(tmp_path),
    }
    with (tmp_path / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "sceneloom", "worker"],
            env={**os.environ, **variables},
            stdout=log,
            stderr=log,
        )
    yield process
    process.kill()
    process.wait()


class Probe:
    """Asks a worker, and remembers every state that it told."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self.states: list[str] = []

    def ready(self) -> bool:
        try:
            answer = self._client.get("/ready")
        except httpx.TransportError:
            return False  # it does not listen yet, or any more
        self.states.append(answer.json()["state"])
        return answer.status_code == 200

    def until_ready(self) -> None:
        deadline = time.monotonic() + 90
        while not self.ready():
            assert time.monotonic() < deadline, self.states
            time.sleep(0.05)

    def metrics(self) -> str:
        return self._client.get("/metrics").text

    def until_told(self, metric: str) -> str:
        deadline = time.monotonic() + 90
        while metric not in (told := self.metrics()):
            assert time.monotonic() < deadline, told
            time.sleep(0.1)
        return told


@pytest.mark.usefixtures("worker")
def test_a_worker_tells_when_it_joins_when_it_is_ready_and_how_long_its_work_took(
    settings: Settings,
) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{settings.metrics_port}") as client:
        probe = Probe(client)
        probe.until_ready()
        assert probe.states[0] == "joining"
        assert probe.states[-1] == "working"
        assert client.get("/live").status_code == 200
        command = SubmitProject(project_id="film-1", command_id="c1", request=a_request(1, narrated=False))
        asyncio.run(send(settings, command))
        told = probe.until_told(
            'sceneloom_job_seconds_count{kind="image",outcome="made",provider="storyboard"} 1.0'
        )
    assert "sceneloom_worker_recovery_seconds_count 1.0" in told
    assert f"sceneloom_worker_partitions {settings.partitions}.0" in told


def test_a_worker_that_is_frozen_answers_nothing_and_one_that_ends_stops_answering(
    worker: "subprocess.Popen[bytes]", settings: Settings
) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{settings.metrics_port}", timeout=1.0) as client:
        probe = Probe(client)
        probe.until_ready()
        worker.send_signal(signal.SIGSTOP)
        with pytest.raises(httpx.TimeoutException):
            client.get("/live")
        worker.send_signal(signal.SIGCONT)
        assert client.get("/live").status_code == 200
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=60) == 0
        with pytest.raises(httpx.ConnectError):
            client.get("/live")
