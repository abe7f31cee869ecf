"""Runs a broker in the foreground."""

import signal
import threading
from pathlib import Path
from typing import Final

from sceneloom.brokers import Broker, BrokerUnavailable
from sceneloom.brokers.embedded import EmbeddedBroker
from sceneloom.brokers.kafka import KafkaBroker
from sceneloom.brokers.process import live_brokers
from sceneloom.cli import console

_CHECK_SECONDS: Final = 2.0
_MISSED_CHECKS: Final = 5


def host(kafka: Path | None, *, port: int, nodes: int, as_json: bool) -> None:
    """Run a broker until Ctrl-C or SIGTERM. Raises `BrokerUnavailable` where it cannot start, or ends."""
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    broker: Broker = KafkaBroker(kafka, port=port, nodes=nodes) if kafka else EmbeddedBroker(port=port)
    if kafka:
        console.note("starting Apache Kafka; the very first start downloads 44 MB")
    broker.start()
    try:
        _announce(broker, embedded=kafka is None, as_json=as_json)
        missed = 0
        while not stopping.wait(_CHECK_SECONDS):
            missed = 0 if live_brokers(port) else missed + 1
            if missed >= _MISSED_CHECKS:
                raise BrokerUnavailable("the broker has ended by itself; start it again")
    finally:
        broker.stop()
    console.note("the broker has stopped")


def _announce(broker: Broker, *, embedded: bool, as_json: bool) -> None:
    url = f"kafka://{broker.bootstrap}"
    if as_json:
        console.say_json({"broker": url, "embedded": embedded})
        return
    console.note("the broker runs; Ctrl-C stops it" + (", and it forgets everything" if embedded else ""))
    console.note("in the other terminals:")
    console.say(f"export SCENELOOM_BROKER={url}")
    if embedded:
        console.say("export SCENELOOM_EMBEDDED_BROKER=true")
