"""One broker for the whole test session, and names of its own for each test.

The broker is `SCENELOOM_TEST_BROKER` (`HOST:PORT`) if set; else a container of the image
`SCENELOOM_KAFKA_IMAGE` if set, and of nothing else; else a container where a Docker engine answers and has
or can pull `apache/kafka`; else Apache Kafka on the local Java; else the embedded broker, on which the
tests marked `kafka` are skipped. Under `CI` that is a failure instead, unless `SCENELOOM_ALLOW_NO_KAFKA=1`.
"""

import os
import shutil
import socket
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sceneloom.brokers import BrokerUnavailable
from sceneloom.brokers.embedded import EmbeddedBroker
from sceneloom.brokers.jars import KAFKA_VERSION
from sceneloom.brokers.kafka import KafkaBroker

if TYPE_CHECKING:
    from tests.kafka_container import ApacheKafkaContainer


@dataclass(frozen=True)
class TestBroker:
    """The session's broker: where it is, and whether it is a real Apache Kafka."""

    __test__ = False

    bootstrap: str
    real: bool
    why: str

    @property
    def url(self) -> str:
        """The same place as Faust writes it."""
        return ";".join(f"kafka://{address}" for address in self.bootstrap.split(","))


Found = tuple[TestBroker, Callable[[], None]]


def find_broker() -> Found:
    """Start the first broker of the list that works; returns it and what ends it.

    Raises `BrokerUnavailable` where an image was asked for by name and cannot be run.
    """
    if given := os.environ.get("SCENELOOM_TEST_BROKER"):
        return TestBroker(given, real=True, why="SCENELOOM_TEST_BROKER"), lambda: None
    if image := os.environ.get("SCENELOOM_KAFKA_IMAGE"):
        return _container(image)
    reasons: list[str] = []
    for attempt in (_container, _local_kafka):
        try:
            return attempt()
        except BrokerUnavailable as exc:
            reasons.append(str(exc))
    embedded = EmbeddedBroker()
    embedded.start()
    why = "no real Kafka: " + "; ".join(reasons)
    return TestBroker(embedded.bootstrap, real=False, why=why), embedded.stop


def _container(image: str = f"apache/kafka:{KAFKA_VERSION}") -> Found:
    if not _docker_listens():
        raise BrokerUnavailable("no Docker engine listens")
    container = None
    try:
        container = _kafka_container(image)
        container.start()
        bootstrap = container.get_bootstrap_server()
    except Exception as exc:
        if container is not None:
            container.stop()
        said = ": ".join([type(exc).__name__, *str(exc).strip().splitlines()[-1:]])
        raise BrokerUnavailable(f"no Docker engine that runs {image} ({said})") from exc
    return TestBroker(bootstrap, real=True, why=f"Docker, {image}"), container.stop


def _docker_listens() -> bool:
    """Look before the client does: one that finds no engine leaves its socket open."""
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not host.startswith("unix://"):
        return True
    with socket.socket(socket.AF_UNIX) as engine:
        return engine.connect_ex(host.removeprefix("unix://")) == 0


def _kafka_container(image: str) -> "ApacheKafkaContainer":
    # Only where an engine may answer: the library looks for one when it is loaded.
    from tests.kafka_container import ApacheKafkaContainer  # noqa: PLC0415 -- see above

    return ApacheKafkaContainer(image)


def _local_kafka() -> Found:
    folder = Path(tempfile.mkdtemp(prefix="sceneloom-test-kafka-"))
    kafka = KafkaBroker(folder)

    def end() -> None:
        kafka.stop()
        shutil.rmtree(folder, ignore_errors=True)

    try:
        kafka.start()
    except BrokerUnavailable:
        end()
        raise
    return TestBroker(kafka.bootstrap, real=True, why="Apache Kafka on the local Java"), end


@pytest.fixture(scope="session")
def broker() -> Iterator[TestBroker]:
    """The session's broker."""
    found, end = find_broker()
    try:
        yield found
    finally:
        end()


@pytest.fixture
def unique() -> str:
    """A prefix that no other test has, for topics and app ids."""
    return f"t{uuid.uuid4().hex[:10]}"


@pytest.fixture(autouse=True)
def _needs_real_kafka(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("kafka") is None:
        return
    found: TestBroker = request.getfixturevalue("broker")
    refuse_or_skip(found)


def refuse_or_skip(found: TestBroker) -> None:
    """Skip the running test on a broker that is not Kafka; fail it where Kafka is a must."""
    if found.real:
        return
    if os.environ.get("CI") and os.environ.get("SCENELOOM_ALLOW_NO_KAFKA") != "1":
        pytest.fail(f"{found.why}; under CI this test must not be skipped", pytrace=False)
    pytest.skip(found.why)
