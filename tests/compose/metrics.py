"""Asks the stack's Prometheus what the dashboards and the alert rules ask it."""

import json
import math
from typing import Any, Final
from urllib.parse import urlencode

from tests.compose.engine import StackFailed
from tests.compose.queries import Query, alert_queries, metrics_in, panel_queries
from tests.compose.stack import Stack

_API: Final = "http://prometheus:9090/api/v1"
_STEP: Final = 15


def targets(stack: Stack) -> dict[str, str]:
    """Return the health of each process that Prometheus asks, by its address."""
    (answer,) = stack.ask(f"{_API}/targets")
    return {
        each["labels"]["instance"]: each["health"] for each in json.loads(answer)["data"]["activeTargets"]
    }


def unhealthy_rules(stack: Stack) -> list[str]:
    """Return the alert rules that Prometheus cannot evaluate. Raises `StackFailed` where it misses some."""
    (answer,) = stack.ask(f"{_API}/rules")
    rules = [rule for group in json.loads(answer)["data"]["groups"] for rule in group["rules"]]
    missing = {query.where for query in alert_queries()} - {rule["name"] for rule in rules}
    if missing:
        raise StackFailed(f"Prometheus does not know the rules {', '.join(sorted(missing))}")
    return [f"{rule['name']}: {rule['lastError']}" for rule in rules if rule["health"] == "err"]


def firing(stack: Stack) -> list[str]:
    """Return the alerts that fire now."""
    (answer,) = stack.ask(f"{_API}/alerts")
    return [
        each["labels"]["alertname"]
        for each in json.loads(answer)["data"]["alerts"]
        if each["state"] == "firing"
    ]


def without_data(stack: Stack, since: float, now: float) -> tuple[int, list[Query]]:
    """Return how many queries were asked, and those that never had a number in that time.

    Of an alert its metrics are asked for: that it is silent is good.
    """
    asked = list(panel_queries())
    for alert in alert_queries():
        asked += [Query(f"alert {alert.where}", metric) for metric in sorted(metrics_in(alert.expression))]
    span = {"start": since, "end": now, "step": _STEP}
    urls = [f"{_API}/query_range?{urlencode({'query': each.expression} | span)}" for each in asked]
    answers = [json.loads(answer) for answer in stack.ask(*urls)]
    return len(asked), [
        query for query, answer in zip(asked, answers, strict=True) if not _has_numbers(answer)
    ]


def _has_numbers(answer: dict[str, Any]) -> bool:
    series = answer["data"]["result"]
    return any(not math.isnan(float(value)) for each in series for _at, value in each["values"])
