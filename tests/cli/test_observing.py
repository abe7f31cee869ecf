import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import httpx
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from models.lifecycle import JobStatus
from sceneloom.cli.outcomes import Outcome
from sceneloom.codec import encode
from sceneloom.settings import Settings
from sceneloom.topic_admin import ensure_topics
from sceneloom.topics import JOBS_TABLE, PROJECT_REQUESTS, app_name, partition_of, topic_name
from tests.cli.conftest import Run
from tests.kafka_fixtures import TestBroker
from tests.monitoring.rows import a_job
from tests.stage import settings_for, write

ROOT = Path(__file__).parents[2]


@pytest.fixture
def settings(broker: TestBroker, unique: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    settings = settings_for(broker.bootstrap, f"{unique}-", commit_seconds=0.5)
    monkeypatch.setenv("SCENELOOM_BROKER", settings.broker)
    monkeypatch.setenv("SCENELOOM_TOPIC_PREFIX", settings.topic_prefix)
    monkeypatch.setenv("SCENELOOM_COMMIT_SECONDS", "0.5")
    asyncio.run(ensure_topics(settings))
    return settings


async def fall_behind(settings: Settings) -> None:
    """Leave three requests, of which the group has committed one, and a job in flight."""
    await leave_a_job(settings)
    await commit_one_of_three(settings)


async def leave_a_job(settings: Settings) -> None:
    changelog = f"{settings.app_id}-{JOBS_TABLE}-changelog"
    await write(settings, changelog, "job", encode(a_job(status=JobStatus.RUNNING)))


async def commit_one_of_three(settings: Settings) -> None:
    """Leave three requests, of which the group has committed one."""
    for _ in range(3):
        await write(settings, PROJECT_REQUESTS, "film-1", b"{}")
    partition = TopicPartition(
        topic_name(settings, PROJECT_REQUESTS), partition_of("film-1", settings.partitions)
    )
    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings.bootstrap, group_id=app_name(settings), enable_auto_commit=False
    )
    consumer.assign([partition])
    await consumer.start()
    try:
        await consumer.commit({partition: 1})
    finally:
        await consumer.stop()


def test_a_group_without_lag_is_ok_and_one_without_members_is_told(run: Run, settings: Settings) -> None:
    shown = run("lag", "--interval", 1)
    assert shown.exit_code == Outcome.DONE
    assert f"group    {app_name(settings)}: OK, after 2 of 10 looks; lag 0, waiting 0\n" in shown.stdout
    assert "members  none: no worker runs" in shown.stdout
    assert "never used" in shown.stdout
    assert "jobs     none" in shown.stdout


def test_commits_that_stand_still_are_exit_code_1_with_the_work_beside_them(
    run: Run, settings: Settings
) -> None:
    asyncio.run(fall_behind(settings))
    shown = run("lag", "--interval", 1)
    assert shown.exit_code == Outcome.FAILED
    row = next(line for line in shown.stdout.splitlines() if "STALLED" in line)
    assert re.search(r"project-requests +\d +1 +3 +2 +[0-9]+ s +nobody +STALLED", row)
    assert "jobs     1 running" in shown.stdout
    assert re.search(r"oldest   \d+\.\d d in flight", shown.stdout)
    assert "0 overdue polls, 0 unknown outcomes, 0 questions to a person, 0 delayed projects" in shown.stdout


def test_json_is_one_object_with_every_partition(run: Run, settings: Settings) -> None:
    asyncio.run(fall_behind(settings))
    shown = run("lag", "--interval", 1, "--json")
    assert shown.exit_code == Outcome.FAILED
    report = json.loads(shown.stdout)
    assert report["group"]["verdict"] == "STALLED"
    assert (report["group"]["lag"], report["group"]["members"]) == (2, [])
    assert len(report["group"]["partitions"]) == 4 * settings.partitions
    (stalled,) = [each for each in report["group"]["partitions"] if each["verdict"] == "STALLED"]
    assert (stalled["committed"], stalled["end"], stalled["lag"], stalled["observations"]) == (1, 3, 2, 2)
    assert report["work"]["jobs"] == {"running": {"ark": 1}}


def test_open_jobs_and_no_worker_are_exit_code_1_though_nothing_waits(run: Run, settings: Settings) -> None:
    asyncio.run(leave_a_job(settings))
    shown = run("lag", "--once")
    assert shown.exit_code == Outcome.FAILED
    assert "jobs are open, and no worker runs" in shown.stdout


@pytest.mark.parametrize("once", [["--once"], ["--interval", "1"]])
def test_requests_that_wait_while_no_worker_is_there_are_exit_code_1_with_what_to_do(
    run: Run, settings: Settings, once: list[str]
) -> None:
    asyncio.run(commit_one_of_three(settings))
    shown = run("lag", *once)
    assert shown.exit_code == Outcome.FAILED
    assert re.search(r"group    \S+: (NO_MEMBERS, after 1|STALLED, after 2) of 10 looks", shown.stdout)
    assert "messages wait, and no worker runs" in shown.stdout
    assert "start one with `sceneloom worker`" in shown.stdout
    told = json.loads(run("lag", *once, "--json").stdout)
    assert "start one with `sceneloom worker`" in told["advice"][0]


def test_requests_that_nobody_ever_read_are_exit_code_1(run: Run, settings: Settings) -> None:
    asyncio.run(write(settings, PROJECT_REQUESTS, "film-1", b"{}"))
    shown = run("lag", "--once")
    assert shown.exit_code == Outcome.FAILED
    assert re.search(r"none +1 +1 unread +\d+ s +nobody +NO_COMMITS", shown.stdout)
    assert re.search(r"group    \S+: NO_MEMBERS, after 1 of 10 looks; lag 0, waiting 1\n", shown.stdout)
    assert "start one with `sceneloom worker`" in shown.stdout


def test_topics_whose_lag_is_not_seen_because_credits_are_off_here_are_told(
    run: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(ensure_topics(settings.model_copy(update={"credits": "table"})))
    shown = run("lag", "--once")
    assert "credit-requests" in shown.stdout
    assert "SCENELOOM_CREDITS is off here; set it as the workers have it" in " ".join(shown.stdout.split())
    told = json.loads(run("lag", "--once", "--json").stdout)
    assert told["unseen"] == [f"{settings.topic_prefix}credit-{each}" for each in ("requests", "results")]
    monkeypatch.setenv("SCENELOOM_CREDITS", "table")
    assert json.loads(run("lag", "--once", "--json").stdout)["unseen"] == []


def test_without_a_broker_or_without_topics_the_exit_code_is_3(
    run: Run, broker: TestBroker, unique: str
) -> None:
    away = run("lag", "--broker", "kafka://127.0.0.1:1")
    assert away.exit_code == Outcome.UNREACHABLE
    assert "no Kafka broker answers at 127.0.0.1:1" in away.stderr
    for option in ("--once", "--watch"):
        bare = run("lag", option, "--broker", f"kafka://{broker.bootstrap}", "--topic-prefix", f"{unique}-")
        assert bare.exit_code == Outcome.UNREACHABLE
        assert f"{unique}-project-" in bare.stderr


def test_watch_and_once_exclude_each_other(run: Run) -> None:
    refused = run("lag", "--watch", "--once")
    assert refused.exit_code == Outcome.INVALID
    assert "--watch and --once exclude each other" in refused.stderr


@contextmanager
def started(*arguments: str) -> Iterator[tuple["subprocess.Popen[str]", IO[str]]]:
    """Run the program until the block is left; yield it, and what it writes."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "sceneloom", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout
    with process:
        try:
            yield process, process.stdout
        finally:
            process.kill()


def interrupted(process: "subprocess.Popen[str]") -> int:
    process.send_signal(signal.SIGINT)
    last, _ = process.communicate(timeout=60)
    assert "Traceback" not in last, last
    return process.returncode


@pytest.mark.timeout(100)
def test_watching_looks_again_and_again_until_ctrl_c(settings: Settings) -> None:
    asyncio.run(fall_behind(settings))
    with started("lag", "--watch", "--json", "--interval", "1") as (watching, output):
        first, second = (json.loads(output.readline()) for _ in range(2))
        assert first["group"]["verdict"] == "NO_MEMBERS"
        assert "start one with `sceneloom worker`" in first["advice"][0]
        assert second["group"]["verdict"] == "STALLED"
        assert interrupted(watching) == Outcome.INTERRUPTED


@pytest.mark.timeout(100)
def test_the_monitor_serves_until_ctrl_c(settings: Settings) -> None:
    asyncio.run(fall_behind(settings))
    with started("monitor", "--port", "0", "--interval", "1") as (monitor, output):
        url = next(
            found[0] for line in output if (found := re.search(r"http://127\.0\.0\.1:\d+/metrics", line))
        )
        behind = f'kafka_consumergroup_lag_sum{{consumergroup="{app_name(settings)}"}} 2.0'
        while behind not in (scraped := httpx.get(url, timeout=30).text):
            assert "sceneloom_broker_up" in scraped
        assert interrupted(monitor) == Outcome.INTERRUPTED


def test_a_port_that_is_taken_ends_monitor_and_worker_with_the_option_to_change(
    run: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        monitor = run("monitor", "--port", port)
        monkeypatch.setenv("SCENELOOM_METRICS_PORT", str(port))
        worker = run("worker", "--partitions", settings.partitions)
    assert monitor.exit_code == worker.exit_code == Outcome.INVALID
    assert f"cannot listen on 127.0.0.1:{port}" in monitor.stderr
    assert "set --port" in monitor.stderr
    assert "set SCENELOOM_METRICS_PORT" in worker.stderr
