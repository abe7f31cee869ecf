import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from sceneloom.testing.fake_provider import TEST_KEY, Ledger, Options, run
from tests.testing.fake_provider.stage import TASKS, playing

PROGRAM = """
import json, sys
from pathlib import Path
from sceneloom.testing.fake_provider import Options, run
options = json.loads(sys.argv[1])
for name in ("scenario", "ledger"):
    options[name] = Path(options[name]) if name in options else None
sys.exit(run(Options(**options)))
"""
BODY = {"model": "seedance", "content": [{"type": "text", "text": "a fox"}]}
HEADERS = {"Authorization": f"Bearer {TEST_KEY}"}


@contextmanager
def serving(**options: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-c", PROGRAM, json.dumps({"port": 0, **options})]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().removeprefix("Fake provider at ").strip()
        finally:
            process.kill()


def create(url: str) -> httpx.Response:
    return httpx.post(url + TASKS, json=BODY, headers=HEADERS, trust_env=False)


def test_a_process_serves_until_it_is_interrupted_and_sums_up() -> None:
    with serving() as (process, url):
        assert create(url).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        said = process.stdout.read()
        assert process.wait(10) == 0
    assert "tasks submit 200 cgt-" in said
    assert said.splitlines()[-1] == "1 jobs accepted, $0.15 billed"
    assert TEST_KEY not in said


async def test_the_ledger_survives_kill_9_and_is_continued(tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("defaults: {fault: disconnect, accepted: true}\n")
    with serving(ledger=str(file), scenario=str(scenario)) as (process, url):
        with pytest.raises(httpx.TransportError):
            create(url)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    assert Ledger.read(file).billed_usd(prompt="a fox") == 0.15
    async with playing(ledger_file=file) as clients:
        await clients.created("a wolf")
        assert clients.provider.ledger.billed_usd() == 0.30


def test_a_clock_at_speed_0_moves_when_it_is_told(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("defaults: {running: 3600}\n")
    with serving(scenario=str(scenario), speed=0, quiet=True) as (_, url):
        task = f"{url}{TASKS}/{create(url).json()['id']}"
        assert httpx.get(task, headers=HEADERS, trust_env=False).json()["status"] == "running"
        httpx.post(f"{url}/_advance", json={"seconds": 3600}, trust_env=False)
        assert httpx.get(task, headers=HEADERS, trust_env=False).json()["status"] == "succeeded"


def test_a_bad_scenario_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("rulez: []\n")
    assert run(Options(scenario=scenario, port=0)) == 2
    assert "rulez: there is no such key; did you mean rules?" in capsys.readouterr().err


def test_a_taken_port_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert run(Options(port=taken.getsockname()[1])) == 1
    assert "cannot start" in capsys.readouterr().err
