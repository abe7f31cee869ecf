"""What the tests of alerts and dashboards share: the names of all metrics that there are."""

import re

import pytest
from aiokafka import TopicPartition
from prometheus_client import CollectorRegistry

from sceneloom.custody import Phase
from sceneloom.monitoring.exporter import Monitor
from sceneloom.monitoring.group import Look
from sceneloom.monitoring.report import Histories, Report
from sceneloom.monitoring.stages import StageTimes
from sceneloom.monitoring.verdicts import Observation
from sceneloom.monitoring.vitals import Load, Vitals
from sceneloom.monitoring.work import WorkBook
from sceneloom.settings import Settings
from tests.fakes import START, MovedClock, Outbox
from tests.monitoring.rows import a_job

METRIC = re.compile(r"\b(?:sceneloom|kafka)_[a-z_]+")


@pytest.fixture(scope="module")
def told() -> set[str]:
    """The names of all metrics that a monitor and a worker tell."""
    clock = MovedClock()
    monitor = Monitor(Settings(), interval=1000.0, clock=clock)
    seen = {TopicPartition("t", 0): Observation(at=START, committed=1, begin=0, end=2)}
    book = WorkBook()
    book.put_job(b"a", a_job())
    monitor._report = Report(group=Histories("g").add(Look("Stable", (), seen, 0)), work=book.counts(START))
    registry = CollectorRegistry()
    StageTimes(Outbox(), job=lambda _id: None, registry=registry)
    Vitals(
        registry=registry,
        phase=lambda: Phase.WORKING,
        failure=lambda: None,
        load=lambda: Load(0, 0, 0, 0, 0),
        patience=1.0,
        host="127.0.0.1",
        port=0,
    )
    families = [*monitor.collect(), *registry.collect()]
    names = {f"{family.name}_total" if family.type == "counter" else family.name for family in families}
    return {name for name in names if METRIC.fullmatch(name)}
