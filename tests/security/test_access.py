"""The settings of the connection to Kafka, and that nothing connects without them."""

import ast
import logging
from pathlib import Path
from typing import Any

import pytest
import structlog
from pydantic import ValidationError

from sceneloom.app import create_app
from sceneloom.cli.configuration import load_settings
from sceneloom.cli.outcomes import Stop
from sceneloom.kafka_access import client_options
from sceneloom.logs import configure_logging
from sceneloom.settings import Settings
from tests.security.certificates import Authority

ROOT = Path(__file__).parents[2]
CLIENTS = {"AIOKafkaProducer", "AIOKafkaConsumer", "AIOKafkaClient", "AIOKafkaAdminClient"}
WITH_USER = {"broker_user": "me", "broker_password": "canary-password"}


def calls(file: Path) -> list[tuple[str, ast.Call]]:
    nodes = [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Call)]
    return [(ast.unparse(node.func).rpartition(".")[2], node) for node in nodes]


def test_every_client_of_kafka_is_made_with_the_same_options() -> None:
    made, bare, others = 0, [], set()
    for package in ("sceneloom", "agents", "tables"):
        for file in (ROOT / package).rglob("*.py"):
            for name, call in calls(file):
                if name in CLIENTS:
                    made += 1
                    spread = [ast.unparse(each.value) for each in call.keywords if each.arg is None]
                    if not any(value.startswith("client_options(") for value in spread):
                        bare.append(f"{file.name}:{call.lineno}")
                elif name == "create_conn" or ast.unparse(call.func) == "faust.App":
                    others.add(f"{file.relative_to(ROOT)}: {name}")
    assert bare == []
    assert made >= 7
    assert others == {"sceneloom/kafka_access.py: create_conn", "sceneloom/app.py: App"}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    authority = Authority(tmp_path)
    certificate, key = authority.sign("client")
    _, other_key = authority.sign("other")
    _, locked_key = authority.sign("locked", password=b"canary-passphrase")
    (tmp_path / "empty.pem").write_text("")
    (tmp_path / "text.pem").write_text("a note, and no certificate")
    return {
        "authority": str(authority.file),
        "certificate": str(certificate),
        "key": str(key),
        "other": str(other_key),
        "locked": str(locked_key),
        "empty": str(tmp_path / "empty.pem"),
        "text": str(tmp_path / "text.pem"),
        "nowhere": str(tmp_path / "nowhere.pem"),
        "folder": str(tmp_path),
    }


def test_worker_and_clients_are_given_the_same(files: dict[str, str], tmp_path: Path) -> None:
    settings = Settings(
        _env_file=None,
        broker_security="SASL_SSL",
        broker_mechanism="SCRAM-SHA-256",
        broker_ca_file=files["authority"],
        data_folder=tmp_path,
        **WITH_USER,  # type: ignore[arg-type]  # as above
    )
    ours = client_options(settings)
    theirs = dict(create_app(settings).producer._settings_auth())  # type: ignore[attr-defined]  # the driver's
    for options in (ours, theirs):
        context = options.pop("ssl_context")
        assert (context.check_hostname, len(context.get_ca_certs())) == (True, 1)
    assert ours.pop("bootstrap_servers") == "127.0.0.1:9092"
    assert ours == theirs
    assert ours["sasl_plain_password"] == "canary-password"


def test_nothing_is_asked_of_a_broker_that_asks_for_nothing() -> None:
    settings = Settings(_env_file=None)
    assert client_options(settings)["ssl_context"] is None
    assert create_app(settings).conf.broker_credentials is None


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "SASL without user": (
        {"broker_security": "SASL_SSL", "broker_password": "canary"},
        "BROKER_USER",
        "SCENELOOM_BROKER_SECURITY is SASL_SSL, so this must be set, too",
    ),
    "SASL without password": (
        {"broker_security": "SASL_PLAINTEXT", "broker_user": "me"},
        "BROKER_PASSWORD",
        "SCENELOOM_BROKER_SECURITY is SASL_PLAINTEXT, so this must be set, too",
    ),
    "user without SASL": ({"broker_user": "me"}, "BROKER_USER", "without SASL: choose SASL_SSL"),
    "password without SASL": (
        {"broker_security": "SSL", "broker_password": "canary-password"},
        "BROKER_PASSWORD",
        "without SASL: choose SASL_SSL",
    ),
    "authority without TLS": ({"broker_ca_file": "authority"}, "BROKER_CA_FILE", "without TLS"),
    "authority that is not there": (
        {"broker_security": "SSL", "broker_ca_file": "nowhere"},
        "BROKER_CA_FILE",
        "the file cannot be read: No such file or directory",
    ),
    "a folder": (
        {"broker_security": "SSL", "broker_ca_file": "folder"},
        "BROKER_CA_FILE",
        "the file cannot be read: Is a directory",
    ),
    "empty authority": ({"broker_security": "SSL", "broker_ca_file": "empty"}, "BROKER_CA_FILE", "PEM"),
    "authority of text": ({"broker_security": "SSL", "broker_ca_file": "text"}, "BROKER_CA_FILE", "PEM"),
    "key without certificate": (
        {"broker_security": "SSL", "broker_key_file": "key"},
        "BROKER_CERTIFICATE_FILE",
        "SCENELOOM_BROKER_KEY_FILE is set, so this must be, too",
    ),
    "key of another certificate": (
        {"broker_security": "SSL", "broker_certificate_file": "certificate", "broker_key_file": "other"},
        "BROKER_CERTIFICATE_FILE",
        "do not fit each other (KEY_VALUES_MISMATCH)",
    ),
    "locked key without its password": (
        {"broker_security": "SSL", "broker_certificate_file": "certificate", "broker_key_file": "locked"},
        "BROKER_CERTIFICATE_FILE",
        "do not fit each other",
    ),
    "certificate without any key": (
        {"broker_security": "SSL", "broker_certificate_file": "certificate"},
        "BROKER_CERTIFICATE_FILE",
        "do not fit each other",
    ),
    "no such protocol": ({"broker_security": "TLS"}, "BROKER_SECURITY", "'PLAINTEXT', 'SSL'"),
    "no such mechanism": ({"broker_mechanism": "GSSAPI"}, "BROKER_MECHANISM", "'PLAIN', 'SCRAM-SHA-256'"),
    "user in the address": (
        {"broker": "kafka://me:canary@h:9092"},
        "BROKER",
        "kafka://(hidden)@h:9092 will not do: write kafka://HOST:PORT; the user belongs into",
    ),
    "user in a bare address": ({"broker": "me:can/ary@h:9092"}, "BROKER", "write kafka://HOST:PORT"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_setting_that_cannot_be_is_told_by_its_name_and_its_rule(
    case: str, files: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    values, name, rule = REFUSED[case]
    monkeypatch.chdir(tmp_path)
    for field, value in values.items():
        monkeypatch.setenv(f"SCENELOOM_{field.upper()}", files.get(value, value))
    with pytest.raises(Stop) as stopped:
        load_settings()
    (line,) = str(stopped.value).splitlines()
    assert line.startswith(f"SCENELOOM_{name}: ")
    assert rule in line
    assert "canary" not in line


def test_the_password_is_in_no_print_of_the_settings_and_their_faults() -> None:
    settings = Settings(_env_file=None, broker_security="SASL_SSL", **WITH_USER)  # type: ignore[arg-type]  # as written
    assert "canary" not in repr(settings) + str(settings.model_dump_json())
    with pytest.raises(ValidationError) as refused:
        Settings(_env_file=None, broker_security="SSL", **WITH_USER)  # type: ignore[arg-type]  # as above
    assert "canary" not in str(refused.value)


def test_a_broker_that_is_away_does_not_flood_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    before, structured = (logging.root.handlers[:], logging.root.level), structlog.get_config()
    try:
        configure_logging(Settings(_env_file=None))
        for node in (1, 1, 1, 2, 1):
            logging.getLogger("aiokafka").error("Unable connect to node with id %s: away", node)
            logging.getLogger("sceneloom").error("ours")
    finally:
        logging.root.handlers[:], logging.root.level = before
        structlog.configure(**structured)  # else loggers of later tests are kept as they are set up here
    told = capsys.readouterr().err
    assert [told.count(f"node with id {node}") for node in (1, 2)] == [1, 1]
    assert told.count("ours") == 5
