"""The alerts: sound, linked to a page that explains them, and about metrics that are really told."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
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

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "monitoring" / "alerts.yml"
PAGE = (ROOT / "docs" / "monitoring.md").read_text("utf-8")
METRIC = re.compile(r"\b(?:sceneloom|kafka)_[a-z_]+")


def alerts() -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load(ALERTS.read_text("utf-8"))["groups"]:
        yield from group["rules"]


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


@pytest.mark.parametrize("alert", list(alerts()), ids=lambda alert: alert["alert"])
def test_an_alert_is_about_metrics_that_are_told_and_leads_to_its_explanation(
    alert: dict[str, Any], told: set[str]
) -> None:
    assert set(METRIC.findall(alert["expr"])) <= told
    assert alert["labels"]["severity"] in {"warning", "critical"}
    page, _, anchor = alert["annotations"]["runbook_url"].partition("#")
    assert page == "docs/monitoring.md"
    assert anchor == alert["alert"].lower()
    assert f"\n### {alert['alert']}\n" in PAGE
    assert alert["annotations"]["summary"]


def test_the_page_explains_no_alert_that_is_not_there() -> None:
    assert set(re.findall(r"^### (Sceneloom\w+)$", PAGE, re.MULTILINE)) == {
        each["alert"] for each in alerts()
    }


def test_the_page_names_every_metric_and_no_other(told: set[str]) -> None:
    named = {name for name in METRIC.findall(PAGE) if not name.endswith("_")}
    assert named == told


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not there; on Debian it comes with the package prometheus")
    return found


def test_promtool_finds_no_fault_in_the_rules(promtool: str) -> None:
    checked = subprocess.run(
        [promtool, "check", "rules", str(ALERTS)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(list(alerts()))} rules found" in checked.stdout


def test_the_alerts_fire_when_they_should_and_not_when_all_is_well(promtool: str) -> None:
    tests = Path(__file__).parent / "alerts_test.yml"
    checked = subprocess.run(
        [promtool, "test", "rules", tests.name], cwd=tests.parent, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    every = {each["alert"] for each in alerts()}
    assert every <= set(re.findall(r'alertname="(\w+)"', tests.read_text("utf-8"))), "each is seen to fire"
