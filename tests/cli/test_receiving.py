import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from sceneloom.brokers.process import free_ports
from sceneloom.cli.outcomes import Outcome
from sceneloom.topic_admin import ensure_topics
from tests.cli.conftest import Run
from tests.gateway.stage import SECRET, a_call, path_of
from tests.kafka_fixtures import TestBroker
from tests.stage import settings_for

ROOT = Path(__file__).parents[2]


def test_a_gateway_without_a_secret_does_not_start(run: Run) -> None:
    refused = run("gateway", "--port", 0)
    assert refused.exit_code == Outcome.INVALID
    assert refused.stderr == "error: SCENELOOM_WEBHOOK_SECRET: set it, the same as for the workers\n"


def test_a_bad_secret_of_a_provider_is_named_and_not_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_WEBHOOK_SECRET", SECRET.get_secret_value())
    monkeypatch.setenv("SCENELOOM_STANDARD_WEBHOOK_SECRET", "whsec_a")
    refused = run("gateway", "--port", 0)
    assert refused.exit_code == Outcome.INVALID
    assert "SCENELOOM_STANDARD_WEBHOOK_SECRET" in refused.stderr
    assert "whsec_a\n" not in refused.stderr


def test_a_gateway_without_a_broker_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_WEBHOOK_SECRET", SECRET.get_secret_value())
    (port,) = free_ports(1)
    ended = run("gateway", "--port", 0, "--broker", f"kafka://127.0.0.1:{port}")
    assert ended.exit_code == Outcome.UNREACHABLE


def test_an_address_that_cannot_be_had_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_WEBHOOK_SECRET", SECRET.get_secret_value())
    ended = run("gateway", "--host", "192.0.2.1", "--port", 1)
    assert ended.exit_code == Outcome.UNREACHABLE
    assert ended.stderr.startswith("error: 192.0.2.1 port 1: ")


@pytest.mark.kafka
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_gateway_answers_until_it_is_told_to_stop(
    number: signal.Signals, broker: TestBroker, unique: str
) -> None:
    asyncio.run(ensure_topics(settings_for(broker.bootstrap, f"{unique}-")))
    command = [sys.executable, "-m", "sceneloom", "gateway", "--port", "0", "--json"]
    command += ["--broker", f"kafka://{broker.bootstrap}", "--topic-prefix", f"{unique}-"]
    environment = {
        **os.environ,
        "SCENELOOM_WEBHOOK_SECRET": SECRET.get_secret_value(),
        "PYTHONPATH": str(ROOT),
    }
    gateway = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert gateway.stdout
    url = json.loads(gateway.stdout.readline())["gateway"]
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        assert client.get("/health").json() == {"status": "ok"}
        answer = client.post(path_of(a_call()), content=b'{"id": "cgt-1"}')
        assert answer.json() == {"status": "taken"}
        assert "server" not in answer.headers
        assert client.post(path_of(a_call(), token="x"), content=b"{}").status_code == 403

    gateway.send_signal(number)
    _, errors = gateway.communicate(timeout=60)
    assert gateway.returncode == Outcome.DONE
    assert errors.endswith("the gateway has stopped\n")
    assert "gateway.hint" in errors
    assert a_call().token(SECRET) not in errors
