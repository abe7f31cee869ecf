"""A Kafka that asks who is there, for all tests of this folder, and the program as they run it."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sceneloom.brokers import BrokerUnavailable
from tests.kafka_fixtures import TestBroker, refuse_or_skip
from tests.security.guarded_kafka import GuardedKafka


@pytest.fixture(scope="session")
def kafka() -> Iterator[GuardedKafka]:
    folder = Path(tempfile.mkdtemp(prefix="sceneloom-test-guarded-"))
    kafka = GuardedKafka(folder)
    try:
        try:
            kafka.start()
        except BrokerUnavailable as exc:
            refuse_or_skip(TestBroker("", real=False, why=str(exc)))
        yield kafka
    finally:
        kafka.stop()
        shutil.rmtree(folder, ignore_errors=True)
