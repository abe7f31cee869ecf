"""All that connects to Kafka, on a real one that asks who is there."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from models.commands import SubmitProject
from models.lifecycle import ProjectState
from sceneloom.cli.outcomes import Outcome
from sceneloom.client import send
from sceneloom.gateway.hint_producer import open_hint_producer
from sceneloom.kafka_access import client_options
from sceneloom.topic_admin import BrokerRefuses, ensure_topics, list_topics
from tests.e2e.stage import Stage
from tests.fakes import a_request
from tests.security.certificates import Authority
from tests.security.guarded_kafka import PASSWORD, GuardedKafka, run, settings_of, variables

QUICK_SECONDS = 30.0
"""Far more than a refusal takes, far less than it takes to give up on an endless retry."""


@pytest.mark.parametrize(
    ("security", "others"),
    [
        ("SASL_SSL", {"broker_mechanism": "SCRAM-SHA-512"}),
        ("SASL_SSL", {"broker_mechanism": "SCRAM-SHA-256"}),
        ("SASL_SSL", {"broker_mechanism": "PLAIN"}),
        ("SASL_PLAINTEXT", {}),
    ],
)
async def test_whoever_has_the_password_is_let_in(
    kafka: GuardedKafka, unique: str, security: str, others: dict[str, str]
) -> None:
    settings = settings_of(kafka.settings(security), unique, **others)
    assert all(state.found is None for state in await list_topics(settings))


@pytest.mark.parametrize("password", [None, b"opens the key"])
async def test_whoever_has_a_certificate_is_let_in(
    kafka: GuardedKafka, unique: str, password: bytes | None
) -> None:
    certificate, key = kafka.authority.sign("client", password=password)
    others = {"broker_certificate_file": str(certificate), "broker_key_file": str(key)}
    if password:
        others["broker_key_password"] = password.decode()
    settings = settings_of(kafka.settings("SSL"), unique, **others)
    assert await list_topics(settings)


async def test_a_whole_project_runs_over_an_encrypted_connection_and_the_command_line_shows_it(
    kafka: GuardedKafka, unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(kafka.settings(), unique, assets=str(tmp_path / "assets"))
    await ensure_topics(settings)
    stage = Stage(settings, tmp_path)
    try:
        stage.start_worker(**variables(settings))
        await send(settings, SubmitProject(project_id="guarded", request=a_request(2)))
        snapshot = await stage.until("guarded", lambda found: found.state is ProjectState.COMPLETED)
        assert snapshot.receipt.bought == 5
        async with open_hint_producer(settings) as hints:
            assert await hints.broker_answers()
        for name, value in variables(settings).items():
            monkeypatch.setenv(name, value)
        shown = await asyncio.to_thread(run, "status", "guarded", "--json")
        assert (shown.exit_code, json.loads(shown.stdout)["state"]) == (Outcome.DONE, "Completed")
        lag = await asyncio.to_thread(run, "lag", "--json")
        assert lag.exit_code == Outcome.DONE, lag.output
        doctor = await asyncio.to_thread(run, "doctor", "--json")
        found = {each["check"]: each["verdict"] for each in json.loads(doctor.stdout)}
        names = ("broker", "topics", "workers", "clock")
        assert {name: found[name] for name in names} == dict.fromkeys(names, "ok"), doctor.stdout
    finally:
        stage.end()
    assert PASSWORD not in stage.log() + doctor.output + lag.output + shown.output


WRONG: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "wrong password": (
        "SASL_SSL",
        {"broker_password": "canary-wrong"},
        ("does not know this user with this password", "SCENELOOM_BROKER_PASSWORD"),
    ),
    "no such user": (
        "SASL_SSL",
        {"broker_user": "somebody"},
        ("does not know this user with this password", "SCENELOOM_BROKER_USER"),
    ),
    "system's authorities": (
        "SASL_SSL",
        {"broker_ca_file": ""},
        ("its certificate is not valid for us", "SCENELOOM_BROKER_CA_FILE"),
    ),
    "no certificate of ours": ("SSL", {}, ("SCENELOOM_BROKER_CERTIFICATE_FILE",)),
    "encrypted port, spoken to in the clear": (
        "SASL_SSL",
        {"broker_security": "SASL_PLAINTEXT", "broker_ca_file": ""},
        ("SCENELOOM_BROKER_SECURITY (SASL_PLAINTEXT)",),
    ),
    "port in the clear, spoken to with TLS": (
        "SASL_PLAINTEXT",
        {"broker_security": "SASL_SSL"},
        ("SCENELOOM_BROKER_SECURITY (SASL_SSL)",),
    ),
}


@pytest.mark.parametrize("case", WRONG)
async def test_a_broker_that_refuses_us_is_told_of_at_once_with_what_to_do(
    kafka: GuardedKafka, unique: str, case: str
) -> None:
    security, wrong, words = WRONG[case]
    settings = settings_of(kafka.settings(security) | wrong, unique)
    began = time.monotonic()
    with pytest.raises(BrokerRefuses) as refused:
        await list_topics(settings)
    assert time.monotonic() - began < QUICK_SECONDS
    assert [word for word in ("refuses us", *words) if word not in str(refused.value)] == []
    assert "\n" not in str(refused.value)
    assert not any(secret in str(refused.value) for secret in (PASSWORD, "canary"))


async def test_a_certificate_for_another_host_is_not_taken(
    kafka: GuardedKafka, unique: str, tmp_path: Path
) -> None:
    elsewhere = Authority(tmp_path, "Somebody else")
    settings = settings_of(kafka.settings(broker_ca_file=str(elsewhere.file)), unique)
    with pytest.raises(BrokerRefuses, match="certificate"):
        await list_topics(settings)
    by_name = kafka.settings()["broker"].replace("127.0.0.1", "localhost")
    with pytest.raises(BrokerRefuses, match="localhost"):
        await list_topics(settings_of(kafka.settings(broker=by_name), unique))


def test_worker_and_doctor_end_quickly_where_the_password_is_wrong(
    kafka: GuardedKafka, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(kafka.settings(broker_password="canary-wrong"), unique)
    for name, value in variables(settings).items():
        monkeypatch.setenv(name, value)
    began = time.monotonic()
    for command in (["worker"], ["status", "film"], ["lag"], ["topics", "list"]):
        ended = run(*command)
        assert ended.exit_code == Outcome.UNREACHABLE, ended.output
        assert len(ended.stderr.splitlines()) == 1, ended.stderr
        assert "SCENELOOM_BROKER_PASSWORD" in ended.stderr
        assert "canary" not in ended.output
    doctor = run("doctor", "--json")
    broker = next(each for each in json.loads(doctor.stdout) if each["check"] == "broker")
    assert broker["verdict"] == "fault"
    assert "does not know this user" in broker["found"]
    assert "SCENELOOM_BROKER_PASSWORD" in broker["advice"]
    assert "canary" not in doctor.output
    assert time.monotonic() - began < 5 * QUICK_SECONDS


async def test_the_options_are_enough_for_any_client(kafka: GuardedKafka, unique: str) -> None:
    settings = settings_of(kafka.settings(), unique)
    await ensure_topics(settings)
    async with AIOKafkaProducer(**client_options(settings)) as producer:
        sent = await producer.send_and_wait(f"{unique}-project-requests", b"{}")
    assert sent.offset == 0
