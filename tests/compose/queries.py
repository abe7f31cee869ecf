"""What the dashboards and the alert rules ask Prometheus."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

_MONITORING: Final = Path(__file__).parents[2] / "monitoring"
_METRIC: Final = re.compile(r"\b(?:sceneloom|kafka|process)_[a-z_]+")
_RANGE: Final = "1m"
"""Four scrapes, as Grafana chooses it."""


class Query(NamedTuple):
    """An expression, and where it stands."""

    where: str
    expression: str


def dashboards() -> Iterator[Path]:
    """Yield the files that Grafana reads."""
    return iter(sorted((_MONITORING / "grafana" / "dashboards").glob("*.json")))


def panels(dashboard: Path) -> Iterator[dict[str, Any]]:
    """Yield the panels of a dashboard that ask something."""
    for panel in json.loads(dashboard.read_text("utf-8"))["panels"]:
        if panel["type"] != "row":
            yield panel


def panel_queries() -> Iterator[Query]:
    """Yield every query of every dashboard, as Grafana would send it."""
    for dashboard in dashboards():
        for panel in panels(dashboard):
            for target in panel["targets"]:
                expression = target["expr"].replace("$__rate_interval", _RANGE)
                yield Query(f"{dashboard.stem}, {panel['title']}", expression)


def alert_queries() -> Iterator[Query]:
    """Yield the expression of every alert."""
    for group in yaml.safe_load((_MONITORING / "alerts.yml").read_text("utf-8"))["groups"]:
        for rule in group["rules"]:
            yield Query(rule["alert"], rule["expr"])


def metrics_in(expression: str) -> set[str]:
    """Return the metrics that an expression asks for."""
    return set(_METRIC.findall(expression))
