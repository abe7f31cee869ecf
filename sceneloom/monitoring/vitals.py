"""A worker's own health: what it is at, whether its loop still turns, and how long its work takes.

It is told over HTTP from a thread of its own, from the first moment of the worker to its last: a worker that
recovers is alive and not ready, one that failed or hangs is neither.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from mode import Service
from prometheus_client import CollectorRegistry, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sceneloom.custody import Phase
from sceneloom.monitoring.serving import Page, Serving, health_page, metrics_page

_TICK_SECONDS: Final = 0.5
RECOVERY_BUCKETS: Final = (0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600)


class Load(NamedTuple):
    """What the worker has to do right now."""

    partitions: int
    waiting: int
    """Open jobs in the queue of the runner, those in work included."""
    in_work: int
    """Jobs that are due: in a call, a poll or a render, or waiting for their place among those."""
    uncommitted: int
    """Messages that were handed out and are not committed."""
    commits: int
    """How often offsets were committed since the start."""


class Vitals(Service, Collector):
    """Watches one worker, and serves `/metrics`, `/live` and `/ready` while it runs.

    `phase`, `failure` and `load` are asked in the loop, twice a second; the answers over HTTP are given from
    what they said last. A loop that has not turned for `patience` seconds counts as dead.
    """

    def __init__(
        self,
        *,
        registry: CollectorRegistry,
        phase: Callable[[], Phase],
        failure: Callable[[], str | None],
        load: Callable[[], Load],
        patience: float,
        host: str,
        port: int,
    ) -> None:
        super().__init__()
        self._registry = registry
        self._ask_phase, self._ask_failure, self._ask_load = phase, failure, load
        self._patience = patience
        self._phase, self._phase_since = Phase.JOINING, time.monotonic()
        self._interrupted_at: float | None = time.monotonic()
        self._failure: str | None = None
        self._load = Load(0, 0, 0, 0, 0)
        self._commit_seen = time.monotonic()
        self._beat = time.monotonic()
        self._recovery = Histogram(
            "sceneloom_worker_recovery_seconds",
            "From the start, or from the begin of a rebalance, until the worker works.",
            registry=registry,
            buckets=RECOVERY_BUCKETS,
        )
        registry.register(self)
        ProcessCollector(registry=registry)
        pages = {"/metrics": lambda: metrics_page(registry), "/live": self._live, "/ready": self._ready}
        self._serving = Serving(pages, host=host, port=port, option="SCENELOOM_METRICS_PORT")

    @property
    def url(self) -> str:
        """Where it is told, without a path."""
        return self._serving.url

    async def on_start(self) -> None:
        """Begin to answer, before the worker connects to anything. Raises `PortTaken`."""
        self.look()
        self.exit_stack.enter_context(self._serving)

    @Service.task
    async def _watch(self) -> None:
        while not self.should_stop:
            self.look()
            await asyncio.sleep(_TICK_SECONDS)

    def look(self) -> None:
        """Take note of how the worker is now."""
        now = self._beat = time.monotonic()
        self._failure = self._ask_failure()
        load = self._ask_load()
        if load.commits != self._load.commits or not load.uncommitted:
            self._commit_seen = now
        self._load = load
        phase = self._ask_phase()
        if phase is self._phase:
            return
        if phase is Phase.WORKING and self._interrupted_at is not None:
            self._recovery.observe(now - self._interrupted_at)
            self._interrupted_at = None
        elif phase is not Phase.STOPPING and self._interrupted_at is None:
            self._interrupted_at = now
        self._phase, self._phase_since = phase, now

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges, as of the last look."""
        now = time.monotonic()
        phases = GaugeMetricFamily(
            "sceneloom_worker_phase", "1 for what the worker is at, 0 for the rest.", labels=["phase"]
        )
        for phase in Phase:
            phases.add_metric([phase], float(phase is self._phase))
        yield phases
        for name, text, value in (
            ("ready", "1 while the worker takes up work.", float(self._is_ready())),
            ("loop_silence_seconds", "How long the event loop has not turned.", now - self._beat),
            (
                "commit_age_seconds",
                "How long messages have waited for a commit; 0 where all are committed.",
                now - self._commit_seen if self._load.uncommitted else 0.0,
            ),
            ("partitions", "Partitions that the worker works on.", self._load.partitions),
            ("queue_length", "Open jobs of this worker.", self._load.waiting),
            (
                "jobs_in_work",
                "Jobs in a call, a poll or a render, or waiting for their place.",
                self._load.in_work,
            ),
            ("uncommitted_messages", "Messages handed out and not committed.", self._load.uncommitted),
        ):
            yield GaugeMetricFamily(f"sceneloom_worker_{name}", text, value=value)
        yield CounterMetricFamily(
            "sceneloom_worker_commits", "Commits of offsets since the start.", value=self._load.commits
        )

    def _hangs(self) -> bool:
        return time.monotonic() - self._beat > self._patience

    def _is_ready(self) -> bool:
        return self._phase is Phase.WORKING and self._failure is None and not self._hangs()

    def _live(self) -> Page:
        return self._health(healthy=self._failure is None and not self._hangs())

    def _ready(self) -> Page:
        return self._health(healthy=self._is_ready())

    def _health(self, *, healthy: bool) -> Page:
        now = time.monotonic()
        if self._failure is not None:
            return health_page(healthy=False, state="failed", reason=self._failure)
        if self._hangs():
            return health_page(healthy=False, state="hangs", seconds=round(now - self._beat, 1))
        seconds = round(now - self._phase_since, 1)
        return health_page(healthy=healthy, state=self._phase, seconds=seconds)
