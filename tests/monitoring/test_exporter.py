import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest
import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from models.events import Receipt
from models.lifecycle import JobStatus, SubmitState
from models.work import Source
from sceneloom.brokers.embedded import EmbeddedBroker
from sceneloom.clock import SystemClock
from sceneloom.codec import encode
from sceneloom.monitoring.exporter import Monitor
from sceneloom.monitoring.group import Look
from sceneloom.monitoring.report import Histories, Report
from sceneloom.monitoring.serving import PortTaken, Serving
from sceneloom.monitoring.verdicts import Observation
from sceneloom.settings import Settings
from sceneloom.topic_admin import ensure_topics
from sceneloom.topics import DEAD_LETTERS, JOBS_TABLE, PROJECT_REQUESTS, app_name, topic_name
from tests.fakes import START, MovedClock
from tests.kafka_fixtures import TestBroker
from tests.monitoring.rows import a_job
from tests.stage import a_scene, a_snapshot, settings_for, tell_state, write

Samples = Mapping[str, float]


def named(name: str, **labels: str) -> str:
    """Return the name of a sample with its labels in order, as `name{a="1",b="2"}`."""
    told = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    return f"{name}{{{told}}}" if told else name


class Exporter:
    """A monitor that runs, and is scraped over HTTP."""

    def __init__(self, url: str) -> None:
        self._client = httpx.AsyncClient(base_url=url)

    async def samples(self) -> Samples:
        """Return each sample under its `named` name."""
        answer = await self._client.get("/metrics")
        assert answer.status_code == 200
        found = {}
        for family in text_string_to_metric_families(answer.text):
            for sample in family.samples:
                found[named(sample.name, **sample.labels)] = sample.value
        return found

    async def until(self, met: Callable[[Samples], bool]) -> Samples:
        samples: Samples = {}
        with suppress(TimeoutError):
            async with asyncio.timeout(60):
                while not met(samples := await self.samples()):  # noqa: ASYNC110 -- over HTTP
                    await asyncio.sleep(0.1)
        assert met(samples), samples
        return samples

    async def ready(self) -> tuple[int, Any]:
        answer = await self._client.get("/ready")
        return answer.status_code, json.loads(answer.text)


@asynccontextmanager
async def exporting(settings: Settings) -> AsyncIterator[Exporter]:
    monitor = Monitor(settings, interval=0.3, clock=SystemClock())
    with Serving(monitor.pages, host="127.0.0.1", port=0, option="--port") as serving:
        running = asyncio.ensure_future(monitor.run())
        exporter = Exporter(serving.url)
        try:
            yield exporter
        finally:
            await exporter._client.aclose()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def is_up(samples: Samples) -> bool:
    return samples.get("sceneloom_broker_up") == 1


def changelog(settings: Settings) -> str:
    return f"{settings.app_id}-{JOBS_TABLE}-changelog"


async def test_lag_and_work_are_scraped_as_dashboards_know_them(broker: TestBroker, unique: str) -> None:
    settings = settings_for(broker.bootstrap, f"{unique}-")
    await ensure_topics(settings)
    group, topic = app_name(settings), topic_name(settings, PROJECT_REQUESTS)
    for _ in range(3):
        await write(settings, PROJECT_REQUESTS, "film-1", b"{}")
    await write(settings, DEAD_LETTERS, "film-1", b"?")
    unclear = a_job(status=JobStatus.RUNNING, submit=SubmitState.UNKNOWN)
    bought = a_job("film-2", status=JobStatus.SUCCEEDED, source=Source.MADE)
    await write(settings, changelog(settings), "film-1", encode(unclear))
    await write(settings, changelog(settings), "film-2", encode(bought))
    await tell_state(
        settings, a_snapshot("film-1", scenes=(a_scene(delayed=True),), receipt=Receipt(saved_usd=0.5))
    )
    consumer = AIOKafkaConsumer(
        topic, bootstrap_servers=broker.bootstrap, group_id=group, enable_auto_commit=False
    )
    await consumer.start()
    try:
        counts = await consumer.end_offsets(list(consumer.assignment()))
        used = next(partition for partition, end in counts.items() if end)
        await consumer.commit({used: 1})
        async with exporting(settings) as exporter:
            samples = await exporter.until(lambda found: is_up(found) and "sceneloom_overdue_polls" in found)
            assert await exporter.ready() == (200, {"verdict": "STALLED"})
            await assert_follows(settings, exporter)
    finally:
        await consumer.stop()
    place = {"consumergroup": group, "topic": topic, "partition": str(used.partition)}
    unused = place | {"partition": str((used.partition + 1) % settings.partitions)}
    assert samples[named("kafka_consumergroup_lag", **place)] == 2
    assert samples[named("kafka_consumergroup_current_offset", **place)] == 1
    assert named("kafka_consumergroup_lag", **unused) not in samples, "no commit is not a lag of 0"
    assert samples[named("kafka_consumergroup_lag_sum", consumergroup=group)] == 2
    assert samples[named("kafka_consumergroup_members", consumergroup=group)] == 1
    assert samples[named("kafka_consumergroup_group_lag_seconds", consumergroup=group)] >= 0
    assert samples[named("sceneloom_jobs", status="running", provider="ark")] == 1
    assert samples[named("sceneloom_jobs", status="succeeded", provider="ark")] == 1
    assert samples[named("sceneloom_jobs", status="failed", provider="ark")] == 0
    assert samples['sceneloom_projects{state="GeneratingScenes"}'] == 1
    assert samples["sceneloom_oldest_job_seconds"] > 0
    assert samples["sceneloom_unknown_outcomes"] == 1
    assert samples["sceneloom_delayed_projects"] == 1
    assert (samples["sceneloom_spent_usd"], samples["sceneloom_orphaned_usd"]) == (0.3, 0)
    assert samples["sceneloom_saved_usd"] == 0.5
    assert samples["sceneloom_dead_letters"] == 1


async def assert_follows(settings: Settings, exporter: Exporter) -> None:
    failed = a_job(
        status=JobStatus.FAILED, submit=SubmitState.UNKNOWN, error_code="submit_unknown", version=2
    )
    await write(settings, changelog(settings), "film-1", encode(failed))
    samples = await exporter.until(lambda found: found.get("sceneloom_orphaned_usd") == 0.3)
    assert samples["sceneloom_unknown_outcomes"] == 0
    assert samples[named("sceneloom_jobs", status="running", provider="ark")] == 0


async def test_an_outage_takes_back_what_was_told_and_the_monitor_comes_back_by_itself(unique: str) -> None:
    with EmbeddedBroker() as broker:
        settings = settings_for(broker.bootstrap, f"{unique}-")
        await ensure_topics(settings)
        port = int(broker.bootstrap.rpartition(":")[2])
        async with exporting(settings) as exporter:
            seen = await exporter.until(lambda found: is_up(found) and len(found) > 20)
            assert "sceneloom_dead_letters" in seen
            await asyncio.to_thread(broker.stop)

            blind = await exporter.until(lambda found: not is_up(found))
            assert blind == {"sceneloom_broker_up": 0.0}
            status, reason = await exporter.ready()
            assert status == 503
            assert reason["reason"]

            with EmbeddedBroker(port=port):
                await exporter.until(lambda _found: True)
                await ensure_topics(settings)
                await exporter.until(is_up)


async def test_a_monitor_that_starts_before_the_broker_says_where_it_looks() -> None:
    settings = settings_for("127.0.0.1:1", "t-")
    async with exporting(settings) as exporter:
        await exporter.until(lambda found: found == {"sceneloom_broker_up": 0.0})
        async with asyncio.timeout(30):
            while "127.0.0.1:1" not in (await exporter.ready())[1]["reason"]:  # noqa: ASYNC110 -- over HTTP
                await asyncio.sleep(0.1)


async def test_without_topics_the_monitor_is_blind_and_says_which_are_missing(
    broker: TestBroker, unique: str
) -> None:
    settings = settings_for(broker.bootstrap, f"{unique}-")
    async with exporting(settings) as exporter:
        async with asyncio.timeout(30):
            while "project-requests" not in (await exporter.ready())[1]["reason"]:  # noqa: ASYNC110 -- over HTTP
                await asyncio.sleep(0.1)
        assert await exporter.samples() == {"sceneloom_broker_up": 0.0}


async def test_what_is_too_old_is_not_told() -> None:
    monitor = Monitor(settings_for("127.0.0.1:1", "t-"), interval=0.01, clock=SystemClock())
    monitor._report, monitor._trouble = object(), ""  # type: ignore[assignment]  # never looked into
    await asyncio.sleep(0.05)
    assert [family.samples[0].value for family in monitor.collect()] == [0.0]


def test_topics_that_are_not_looked_at_are_told_once() -> None:
    seen = {TopicPartition("t", 0): Observation(at=START, committed=1, begin=0, end=1)}
    group = Histories("g").add(Look("Stable", (), seen, 0))
    report = Report(group=group, work=None, unseen=("credit-requests",))
    monitor = Monitor(Settings(), interval=1000.0, clock=MovedClock())
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            monitor._take(report)
    told = [each for each in logs if each["event"] == "monitor.unseen"]
    assert [each["topics"] for each in told] == ["credit-requests"]
    assert "SCENELOOM_CREDITS" in told[0]["reason"]


def test_a_port_that_is_taken_is_named_with_the_option_that_changes_it() -> None:
    with (
        Serving({}, host="127.0.0.1", port=0, option="--port") as first,
        pytest.raises(PortTaken, match=r"cannot listen on 127.0.0.1:.*set --port"),
        Serving({}, host="127.0.0.1", port=int(first.url.rpartition(":")[2]), option="--port"),
    ):
        pass


def test_a_page_that_is_not_there_names_those_that_are() -> None:
    with Serving({"/here": lambda: None}, host="::1", port=0, option="") as serving:  # type: ignore[dict-item, return-value]
        answer = httpx.get(f"{serving.url}/elsewhere")
    assert (answer.status_code, answer.text) == (404, "there is: /here\n")
