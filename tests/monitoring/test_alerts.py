"""The alerts: sound, linked to a page that explains them, and about metrics that are really told."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.monitoring.conftest import METRIC

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "monitoring" / "alerts.yml"
PAGE = (ROOT / "docs" / "monitoring.md").read_text("utf-8")


def alerts() -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load(ALERTS.read_text("utf-8"))["groups"]:
        yield from group["rules"]


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
