import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sceneloom import app
from sceneloom.brokers.process import free_ports
from sceneloom.cli.outcomes import Outcome
from sceneloom.settings import Settings
from sceneloom.table_folder import require_own
from sceneloom.topic_admin import ensure_topics, list_topics
from tests.cli.conftest import Run
from tests.kafka_fixtures import TestBroker
from tests.stage import settings_for


def started(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-u", "-m", "sceneloom", *(str(each) for each in arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_embedded_broker_says_how_to_use_it_and_stops_cleanly(number: signal.Signals) -> None:
    (port,) = free_ports(1)
    broker = started("broker", "--port", port)
    assert broker.stdout
    assert broker.stdout.readline() == f"export SCENELOOM_BROKER=kafka://127.0.0.1:{port}\n"
    assert broker.stdout.readline() == "export SCENELOOM_EMBEDDED_BROKER=true\n"
    states = asyncio.run(list_topics(Settings(broker=f"kafka://127.0.0.1:{port}")))
    assert all(state.found is None for state in states)
    broker.send_signal(number)
    _, errors = broker.communicate(timeout=30)
    assert broker.returncode == Outcome.DONE
    assert errors.endswith("the broker has stopped\n")


def test_a_port_that_is_taken_is_explained(run: Run) -> None:
    (port,) = free_ports(1)
    first = started("broker", "--port", port, "--json")
    assert first.stdout
    assert json.loads(first.stdout.readline()) == {"broker": f"kafka://127.0.0.1:{port}", "embedded": True}
    second = started("broker", "--port", port)
    _, errors = second.communicate(timeout=30)
    first.terminate()
    first.communicate(timeout=30)
    assert second.returncode == Outcome.UNREACHABLE
    assert errors == f"error: port {port} is taken: choose another, or end what listens there\n"


def test_a_worker_creates_the_topics_and_ends_with_the_code_of_its_app(
    run: Run, broker: TestBroker, unique: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran: list[Settings] = []

    def run_worker(settings: Settings, _outside: object) -> int:
        ran.append(settings)
        return 7

    monkeypatch.setattr(app, "run_worker", run_worker)
    flags = {
        "--broker": f"kafka://{broker.bootstrap}",
        "--topic-prefix": f"{unique}-",
        "--partitions": 3,
        "--store": "rocksdb",
        "--data-folder": tmp_path / "w1",
        "--log-level": "WARNING",
    }
    ended = run("worker", *(part for flag in flags.items() for part in flag))
    assert ended.exit_code == 7
    assert ended.stderr.count("created topic") == 9
    (settings,) = ran
    assert (settings.partitions, settings.store, settings.log_level) == (3, "rocksdb", "WARNING")
    wanted = settings_for(broker.bootstrap, f"{unique}-").model_copy(update={"partitions": 3})
    assert not any(state.faults for state in asyncio.run(list_topics(wanted)))


def test_a_worker_that_cannot_work_creates_no_topics(
    run: Run, broker: TestBroker, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCENELOOM_CLIP_PROVIDER", "runwya")
    places = {"--broker": f"kafka://{broker.bootstrap}", "--topic-prefix": f"{unique}-"}

    refused = run("worker", *(part for place in places.items() for part in place))

    assert refused.exit_code == Outcome.INVALID
    assert "there is no provider runwya; did you mean runway?" in refused.stderr
    found = asyncio.run(list_topics(settings_for(broker.bootstrap, f"{unique}-")))
    assert all(state.found is None for state in found)


def test_a_worker_does_not_start_on_topics_that_are_otherwise(
    run: Run, broker: TestBroker, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "run_worker", lambda *_: pytest.fail("it must not run"))
    places = ("--broker", f"kafka://{broker.bootstrap}", "--topic-prefix", f"{unique}-")
    run("topics", "create", *places, "--partitions", 2)
    refused = run("worker", *places, "--partitions", 3)
    assert refused.exit_code == Outcome.INVALID
    assert "found 2, wanted 3" in refused.stderr


def test_a_tethered_process_ends_when_its_starter_lets_go() -> None:
    code = (
        "import signal, sys, time; from sceneloom.cli.tether import end_with_stdin;"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(33)); end_with_stdin();"
        "print('ready', flush=True); time.sleep(60)"
    )
    reading, writing = os.pipe()
    process = subprocess.Popen([sys.executable, "-c", code], stdin=reading, stdout=subprocess.PIPE, text=True)
    os.close(reading)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    assert process.poll() is None
    os.close(writing)
    process.communicate(timeout=30)
    assert process.returncode == 33


def places(broker: TestBroker, unique: str) -> tuple[str, ...]:
    """Name the topics of a worker, which has made them."""
    settings = settings_for(broker.bootstrap, f"{unique}-")
    asyncio.run(ensure_topics(settings))
    return ("worker", "--broker", settings.broker, "--topic-prefix", f"{unique}-", "--partitions", "4")


def test_a_second_worker_in_the_folder_of_another_is_told_to_take_its_own(
    run: Run, broker: TestBroker, unique: str, tmp_path: Path
) -> None:
    worker = (*places(broker, unique), "--store", "rocksdb", "--data-folder", tmp_path / "data")
    settings = settings_for(broker.bootstrap, f"{unique}-", store="rocksdb", data_folder=tmp_path / "data")
    tables = Path(app.create_app(settings).conf.tabledir)
    tables.mkdir(parents=True)
    with (tables / "in-use").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = run(*worker)
    assert refused.exit_code == Outcome.INVALID
    assert refused.stderr == (
        f"error: another worker keeps its tables in {tables}: give each its own SCENELOOM_DATA_FOLDER "
        "(--data-folder), or end the other one first\n"
    )


@pytest.mark.parametrize("store", ["memory", "rocksdb"])
def test_a_data_folder_that_cannot_be_made_ends_a_worker_with_the_setting_to_change(
    run: Run, broker: TestBroker, unique: str, tmp_path: Path, store: str
) -> None:
    (tmp_path / "file").write_text("")
    worker = (*places(broker, unique), "--store", store, "--data-folder", tmp_path / "file" / "data")
    refused = run(*worker, "--assets", tmp_path / "assets")
    assert refused.exit_code == Outcome.INVALID
    assert f"SCENELOOM_DATA_FOLDER: {tmp_path}/file/data cannot be written: Not a directory" in refused.stderr


def test_a_lock_that_was_looked_for_is_free_again_for_the_worker(tmp_path: Path) -> None:
    require_own(tmp_path)
    require_own(tmp_path)
