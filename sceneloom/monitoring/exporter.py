"""`sceneloom monitor`: the group, its verdicts and the work as Prometheus metrics."""

import asyncio
import time
from collections.abc import Iterator
from typing import Final

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from models.lifecycle import JobStatus, ProjectState
from models.ports import Clock
from sceneloom.monitoring.report import GroupReport, PartitionReport, Report
from sceneloom.monitoring.serving import Page, Pages, Serving, health_page, metrics_page
from sceneloom.monitoring.verdicts import Verdict
from sceneloom.monitoring.watch import SWITCHED_OFF, Blindness, Watch
from sceneloom.monitoring.work import WorkCounts
from sceneloom.settings import Settings
from sceneloom.topic_admin import BrokerUnreachable

_STALE_LOOKS: Final = 3
"""After so many intervals without a look what was seen counts as unknown."""

_log = structlog.get_logger(__name__)


class Monitor(Collector):
    """Looks every `interval` seconds, and tells Prometheus what it saw last; nothing while it cannot look."""

    def __init__(self, settings: Settings, *, interval: float, clock: Clock) -> None:
        self._settings = settings
        self._interval = interval
        self._clock = clock
        self._report: Report | None = None
        self._trouble = "it has not looked yet"
        self._looked_at = time.monotonic()
        self._registry = CollectorRegistry()
        self._registry.register(self)

    @property
    def pages(self) -> Pages:
        """What is served over HTTP."""
        return {"/metrics": lambda: metrics_page(self._registry), "/ready": self._ready}

    async def run(self) -> None:
        """Look for ever, through every outage of the broker."""
        while True:
            try:
                async with Watch(self._settings, clock=self._clock) as watch:
                    async for seen in watch.looks(self._interval):
                        self._take(seen)
            except BrokerUnreachable as error:
                self._lose(str(error))
            await asyncio.sleep(self._interval)

    def _take(self, seen: Report | Blindness) -> None:
        if not isinstance(seen, Report):
            self._lose(str(seen))
            return
        if self._trouble:
            _log.info("monitor.sees", group=seen.group.group, verdict=seen.group.verdict)
        if seen.unseen and (self._report is None or seen.unseen != self._report.unseen):
            _log.warning("monitor.unseen", topics=", ".join(seen.unseen), reason=SWITCHED_OFF)
        self._report, self._trouble, self._looked_at = seen, "", time.monotonic()

    def _lose(self, trouble: str) -> None:
        if trouble != self._trouble:
            _log.warning("monitor.blind", reason=trouble)
        self._report, self._trouble = None, trouble

    def _current(self) -> Report | None:
        age = time.monotonic() - self._looked_at
        return self._report if age < _STALE_LOOKS * self._interval else None

    def _ready(self) -> Page:
        report = self._current()
        if report is None:
            return health_page(healthy=False, reason=self._trouble or "it has not looked for too long")
        return health_page(healthy=True, verdict=report.group.verdict)

    def collect(self) -> Iterator[Metric]:
        """Yield what was seen last; only that the broker is away where it is."""
        report = self._current()
        yield GaugeMetricFamily(
            "sceneloom_broker_up",
            "1 while the broker tells how the group stands; else nothing but this is told.",
            value=float(report is not None),
        )
        if report is not None:
            yield from _group_metrics(report.group)
            if report.work is not None:
                yield from _work_metrics(report.work)


def _group_metrics(group: GroupReport) -> Iterator[Metric]:
    yield from _partition_metrics(group)
    name = [group.group]
    for metric, text, value in (
        ("kafka_consumergroup_lag_sum", "Sum of the lag of all partitions.", group.lag),
        ("kafka_consumergroup_members", "Members of the group: workers that run.", len(group.members)),
        (
            "kafka_consumergroup_group_lag_seconds",
            "How long the oldest message that waits has waited.",
            group.lag_seconds,
        ),
    ):
        family = GaugeMetricFamily(metric, text, labels=["consumergroup"])
        family.add_metric(name, value)
        yield family
    verdict = GaugeMetricFamily(
        "sceneloom_group_verdict",
        f"The verdict on the group: {_legend()}.",
        labels=["consumergroup", "verdict"],
    )
    verdict.add_metric([*name, group.verdict], group.verdict.rank)
    yield verdict
    yield GaugeMetricFamily(
        "sceneloom_dead_letters", "Dead letters that the topic still holds.", value=group.dead_letters
    )


def _partition_metrics(group: GroupReport) -> Iterator[Metric]:
    labels = ["consumergroup", "topic", "partition"]
    lag = GaugeMetricFamily(
        "kafka_consumergroup_lag", "Offsets not committed yet; none without a commit.", labels=labels
    )
    waiting = GaugeMetricFamily(
        "sceneloom_partition_waiting",
        "Messages that wait: the lag without marks of transactions, and all there is without a commit.",
        labels=labels,
    )
    offset = GaugeMetricFamily(
        "kafka_consumergroup_current_offset", "The committed offset; none without a commit.", labels=labels
    )
    expired = GaugeMetricFamily(
        "sceneloom_partition_expired", "Offsets deleted by retention before they were read.", labels=labels
    )
    verdict = GaugeMetricFamily(
        "sceneloom_partition_verdict",
        f"The verdict on a partition: {_legend()}.",
        labels=[*labels, "verdict"],
    )
    for each in group.partitions:
        place = _place(group, each)
        if each.lag is not None and each.committed is not None:
            lag.add_metric(place, each.lag)
            offset.add_metric(place, each.committed)
        waiting.add_metric(place, each.waiting)
        expired.add_metric(place, each.expired)
        verdict.add_metric([*place, each.verdict], each.verdict.rank)
    yield from (lag, waiting, offset, expired, verdict)


def _place(group: GroupReport, partition: PartitionReport) -> list[str]:
    return [group.group, partition.topic, str(partition.partition)]


def _work_metrics(work: WorkCounts) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("sceneloom_jobs", "Jobs by status and provider.", labels=["status", "provider"])
    providers = {provider for found in work.jobs.values() for provider in found}
    for provider in sorted(providers):
        for status in JobStatus:
            jobs.add_metric([status, provider], work.jobs.get(status, {}).get(provider, 0))
    yield jobs
    projects = GaugeMetricFamily("sceneloom_projects", "Projects by state.", labels=["state"])
    for state in ProjectState:
        projects.add_metric([state], work.projects.get(state, 0))
    yield projects
    for name, text, value in (
        ("oldest_job_seconds", "Age of the oldest job that is not finished.", work.oldest_seconds or 0.0),
        ("overdue_polls", "Jobs that should have been polled by now.", work.overdue),
        ("unknown_outcomes", "Jobs of which nobody knows whether they were accepted.", work.unknown),
        ("open_questions", "Jobs that wait until a person decides.", work.questions),
        (
            "delayed_projects",
            "Open projects with a scene that takes longer than usual.",
            work.delayed_projects,
        ),
        ("spent_usd", "What all jobs have cost, orphans included, in US dollars.", work.spent_usd),
        ("saved_usd", "What kept work and caches have saved, in US dollars.", work.saved_usd),
        ("orphaned_usd", "The part of the cost that bought nothing, in US dollars.", work.orphaned_usd),
        ("unreadable_rows", "Rows of jobs and projects that this release cannot read.", work.unreadable),
    ):
        yield GaugeMetricFamily(f"sceneloom_{name}", text, value=value)


def _legend() -> str:
    return ", ".join(f"{verdict.rank} {verdict}" for verdict in Verdict)


async def serve(settings: Settings, *, host: str, port: int, interval: float, clock: Clock) -> None:
    """Run the exporter until it is cancelled. Raises `PortTaken`."""
    monitor = Monitor(settings, interval=interval, clock=clock)
    with Serving(monitor.pages, host=host, port=port, option="--port") as serving:
        _log.info("monitor.serves", url=f"{serving.url}/metrics")
        await monitor.run()
