"""Which broker a test session gets."""

import socket
from pathlib import Path

import pytest

from sceneloom.brokers import BrokerUnavailable
from sceneloom.brokers.jars import KAFKA_VERSION
from tests import kafka_fixtures
from tests.kafka_fixtures import TestBroker, find_broker
from tests.test_stack import SERVICES, settled


@pytest.fixture(autouse=True)
def _nothing_is_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SCENELOOM_TEST_BROKER", raising=False)
    monkeypatch.delenv("SCENELOOM_KAFKA_IMAGE", raising=False)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")


def _local_kafka(monkeypatch: pytest.MonkeyPatch) -> TestBroker:
    here = TestBroker("127.0.0.1:1", real=True, why="a double")
    monkeypatch.setattr(kafka_fixtures, "_local_kafka", lambda: (here, lambda: None))
    return here


def test_a_broker_of_ones_own_comes_before_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_TEST_BROKER", "kafka.example:9092")
    monkeypatch.setenv("SCENELOOM_KAFKA_IMAGE", "kafka:mine")

    found, _end = find_broker()

    assert found.url == "kafka://kafka.example:9092"


def test_without_an_engine_kafka_runs_on_the_local_java(monkeypatch: pytest.MonkeyPatch) -> None:
    here = _local_kafka(monkeypatch)

    assert find_broker()[0] is here


def test_an_image_that_was_asked_for_by_name_is_not_silently_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _local_kafka(monkeypatch)
    monkeypatch.setenv("SCENELOOM_KAFKA_IMAGE", "kafka:mine")

    with pytest.raises(BrokerUnavailable, match="no Docker engine listens"):
        find_broker()


def test_an_engine_that_breaks_off_is_named_with_the_image(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kafka_fixtures, "_kafka_container", _broken)
    monkeypatch.setenv("SCENELOOM_KAFKA_IMAGE", "kafka:mine")
    # The path of a socket may have only 107 characters.
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind("engine.sock")
        engine.listen()
        monkeypatch.setenv("DOCKER_HOST", "unix://engine.sock")

        with pytest.raises(BrokerUnavailable, match=r"runs kafka:mine \(OSError: it hung up\)"):
            find_broker()


def _broken(image: str) -> None:
    raise OSError("it hung up")


def test_containers_are_of_the_kafka_of_the_stack() -> None:
    assert settled(SERVICES["kafka"]["image"]) == f"apache/kafka:{KAFKA_VERSION}"
    assert kafka_fixtures._container.__defaults__ == (f"apache/kafka:{KAFKA_VERSION}",)
