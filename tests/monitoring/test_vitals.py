import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from sceneloom.custody import Phase
from sceneloom.monitoring.vitals import Load, Vitals


class Worker:
    """What the vitals ask: set by the test."""

    def __init__(self) -> None:
        self.phase = Phase.JOINING
        self.failure: str | None = None
        self.load = Load(0, 0, 0, 0, 0)
        self.vitals = Vitals(
            registry=CollectorRegistry(),
            phase=lambda: self.phase,
            failure=lambda: self.failure,
            load=lambda: self.load,
            patience=2.0,
            host="127.0.0.1",
            port=0,
        )

    def is_now(self, **changes: Any) -> None:
        for name, value in changes.items():
            setattr(self, name, value)
        self.vitals.look()

    async def answers(self, path: str) -> tuple[int, dict[str, Any]]:
        return await asyncio.to_thread(ask, self.vitals.url, path)

    async def metric(self, name: str, **labels: str) -> float:
        async with httpx.AsyncClient(base_url=self.vitals.url) as client:
            text = (await client.get("/metrics")).text
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if (sample.name, sample.labels) == (name, labels):
                    return sample.value
        raise AssertionError(f"no {name} {labels} in:\n{text}")


def ask(url: str, path: str) -> tuple[int, dict[str, Any]]:
    with httpx.Client(base_url=url, verify=False) as client:  # noqa: S501 -- plain HTTP: certificates take long to load
        answer = client.get(path)
    return answer.status_code, json.loads(answer.text)


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    worker = Worker()
    async with worker.vitals:
        yield worker


@pytest.mark.parametrize("phase", [Phase.JOINING, Phase.REBALANCING, Phase.RECOVERING])
async def test_a_worker_that_recovers_is_alive_and_not_ready_and_says_what_it_is_at(
    worker: Worker, phase: Phase
) -> None:
    worker.is_now(phase=phase)
    live, alive = await worker.answers("/live")
    ready, _ = await worker.answers("/ready")
    assert (live, alive["state"], ready) == (200, phase, 503)


async def test_a_worker_that_works_is_alive_and_ready(worker: Worker) -> None:
    worker.is_now(phase=Phase.WORKING)
    assert (await worker.answers("/live"))[0] == 200
    assert (await worker.answers("/ready"))[0] == 200
    assert await worker.metric("sceneloom_worker_ready") == 1
    assert await worker.metric("sceneloom_worker_phase", phase="working") == 1
    assert await worker.metric("sceneloom_worker_phase", phase="recovering") == 0


async def test_a_worker_that_stops_in_good_order_is_alive_and_takes_up_nothing(worker: Worker) -> None:
    worker.is_now(phase=Phase.STOPPING)
    assert (await worker.answers("/live"))[0] == 200
    assert (await worker.answers("/ready"))[0] == 503


async def test_a_worker_that_failed_is_neither_and_says_why(worker: Worker) -> None:
    worker.is_now(phase=Phase.WORKING, failure="a commit was not acknowledged")
    for path in ("/live", "/ready"):
        code, facts = await worker.answers(path)
        assert (code, facts) == (503, {"state": "failed", "reason": "a commit was not acknowledged"})


async def test_a_blocked_loop_is_noticed_while_it_is_blocked(worker: Worker) -> None:
    worker.is_now(phase=Phase.WORKING)
    answers: list[tuple[int, dict[str, Any]]] = []
    url = worker.vitals.url

    def probe() -> None:
        deadline = time.monotonic() + 30
        while (not answers or answers[-1][0] == 200) and time.monotonic() < deadline:
            answers.append(ask(url, "/live"))

    prober = threading.Thread(target=probe)
    prober.start()
    prober.join()  # nothing else runs in the loop meanwhile
    assert answers[0][0] == 200
    code, facts = answers[-1]
    assert (code, facts["state"]) == (503, "hangs")
    assert facts["seconds"] >= 2.0
    worker.vitals.look()
    assert (await worker.answers("/live"))[0] == 200


async def test_recovery_is_measured_from_the_start_and_from_each_interruption(worker: Worker) -> None:
    assert await worker.metric("sceneloom_worker_recovery_seconds_count") == 0
    worker.is_now(phase=Phase.RECOVERING)
    worker.is_now(phase=Phase.WORKING)
    worker.is_now(phase=Phase.WORKING)
    assert await worker.metric("sceneloom_worker_recovery_seconds_count") == 1
    worker.is_now(phase=Phase.REBALANCING)
    worker.is_now(phase=Phase.RECOVERING)
    worker.is_now(phase=Phase.WORKING)
    assert await worker.metric("sceneloom_worker_recovery_seconds_count") == 2
    worker.is_now(phase=Phase.STOPPING)
    assert await worker.metric("sceneloom_worker_recovery_seconds_count") == 2


async def test_the_age_of_a_commit_grows_only_while_something_waits_for_it(worker: Worker) -> None:
    worker.is_now(load=Load(2, 5, 1, uncommitted=3, commits=0))
    first = await worker.metric("sceneloom_worker_commit_age_seconds")
    worker.is_now()
    second = await worker.metric("sceneloom_worker_commit_age_seconds")
    assert 0 < first < second
    before = time.monotonic()
    worker.is_now(load=Load(2, 5, 1, uncommitted=1, commits=1))
    third = await worker.metric("sceneloom_worker_commit_age_seconds")
    assert 0 < third < time.monotonic() - before
    worker.is_now(load=Load(2, 5, 1, uncommitted=0, commits=2))
    assert await worker.metric("sceneloom_worker_commit_age_seconds") == 0
    assert await worker.metric("sceneloom_worker_queue_length") == 5
    assert await worker.metric("sceneloom_worker_jobs_in_work") == 1
    assert await worker.metric("sceneloom_worker_partitions") == 2
    assert await worker.metric("sceneloom_worker_commits_total") == 2


async def test_it_looks_by_itself(worker: Worker) -> None:
    worker.phase = Phase.WORKING
    async with asyncio.timeout(10):
        while (await worker.answers("/ready"))[0] != 200:  # noqa: ASYNC110 -- over HTTP
            await asyncio.sleep(0.05)
