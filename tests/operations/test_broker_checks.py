import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import GroupCoordinatorNotAvailableError

from sceneloom.brokers.process import free_ports
from sceneloom.clock import SystemClock
from sceneloom.operations.broker_checks import ClockCheck, _group, broker, judged, topics, workers
from sceneloom.operations.examination import Verdict
from sceneloom.settings import Settings
from sceneloom.topic_admin import _create, _wait_for_leaders, administration, ensure_topics
from sceneloom.topics import (
    CREDIT_REQUESTS,
    JOBS_TABLE,
    PROJECT_REQUESTS,
    TopicSpec,
    app_name,
    changelog_name,
    topic_name,
)
from tests.kafka_fixtures import TestBroker
from tests.stage import settings_for

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.fixture
def settings(broker: TestBroker, unique: str) -> Settings:
    return settings_for(broker.bootstrap, f"{unique}-")


@pytest.mark.kafka
async def test_a_broker_that_answers_tells_which_kafka_it_speaks_like(settings: Settings) -> None:
    (finding,) = await broker(settings)
    assert finding.verdict is Verdict.OK
    assert "the protocol of Kafka 4." in finding.found


async def test_every_server_that_does_not_answer_is_named(settings: Settings) -> None:
    one, two = free_ports(2)
    nobody = settings.model_copy(update={"broker": f"kafka://127.0.0.1:{one},127.0.0.1:{two}"})
    found = await broker(nobody)
    assert [each.verdict for each in found] == [Verdict.FAULT] * 2
    assert [f"127.0.0.1:{one}" in found[0].found, f"127.0.0.1:{two}" in found[1].found] == [True, True]
    some = settings.model_copy(update={"broker": f"{settings.broker},127.0.0.1:{one}"})
    (warned,) = await broker(some)
    assert (warned.verdict, f"127.0.0.1:{one}" in warned.found) == (Verdict.WARNING, True)


async def test_a_name_that_no_server_has_is_a_fault(settings: Settings) -> None:
    (finding,) = await broker(settings.model_copy(update={"broker": "kafka://no-such-host.invalid:9092"}))
    assert finding.verdict is Verdict.FAULT
    assert "SCENELOOM_BROKER" in finding.advice


async def test_missing_and_other_topics_are_named(settings: Settings) -> None:
    (finding,) = await topics(settings)
    assert finding.verdict is Verdict.FAULT
    assert topic_name(settings, PROJECT_REQUESTS) in finding.found
    assert "sceneloom topics create" in finding.advice
    await ensure_topics(settings)
    assert [each.verdict for each in await topics(settings)] == [Verdict.OK]
    (alike,) = await topics(settings.model_copy(update={"partitions": 6}))
    assert alike.found.startswith("partitions: found 4, wanted 6: ")
    assert alike.found.count(settings.topic_prefix) == 8, "the dead letters have one, always"
    assert "SCENELOOM_PARTITIONS" in alike.advice


async def test_each_kind_of_fault_of_topics_is_told_once_with_its_own_cure(settings: Settings) -> None:
    await ensure_topics(settings)
    both = await topics(settings.model_copy(update={"partitions": 6, "replication": 3}))
    found = {each.found: each.advice for each in both}
    assert len(found) == 2
    assert "SCENELOOM_REPLICATION" in found["replication: found 1, wanted 3: all 9 topics"]


@pytest.mark.kafka
async def test_topics_of_credits_that_are_off_here_are_a_warning(settings: Settings) -> None:
    with_credits = settings.model_copy(update={"credits": "table"})
    await ensure_topics(with_credits)
    fine, unseen = await topics(settings)
    assert (fine.verdict, unseen.verdict) == (Verdict.OK, Verdict.WARNING)
    assert topic_name(settings, CREDIT_REQUESTS) in unseen.found
    assert unseen.advice.startswith("SCENELOOM_CREDITS is off here; set it as the workers have it")
    assert [each.verdict for each in await topics(with_credits)] == [Verdict.OK]


@pytest.mark.kafka
async def test_a_changelog_that_is_not_compacted_is_a_fault_of_its_own(settings: Settings) -> None:
    changelog = changelog_name(settings, JOBS_TABLE)
    async with administration(settings) as admin:
        wrong = [TopicSpec(changelog, settings.partitions, 1, {"cleanup.policy": "delete"})]
        await _create(admin, wrong)
        await _wait_for_leaders(admin, wrong)
    missing, finding = await topics(settings)
    assert changelog not in missing.found
    assert finding.found == f"cleanup.policy: found delete, wanted compact: {changelog}"
    assert "loses rows" in finding.advice


async def member(settings: Settings) -> AIOKafkaConsumer:
    consumer = AIOKafkaConsumer(
        topic_name(settings, PROJECT_REQUESTS),
        bootstrap_servers=settings.bootstrap,
        group_id=app_name(settings),
    )
    await consumer.start()
    return consumer


@pytest.mark.kafka
async def test_the_workers_of_the_group_are_counted(settings: Settings) -> None:
    await ensure_topics(settings)
    (finding,) = await workers(settings)
    assert (finding.verdict, finding.advice) == (Verdict.WARNING, "start one with `sceneloom worker`")
    consumer = await member(settings)
    try:
        (finding,) = await workers(settings)
        assert finding.verdict is Verdict.OK
        assert finding.found.startswith("1 worker in the group")
    finally:
        await consumer.stop()


@pytest.mark.kafka
async def test_more_workers_than_partitions_are_a_warning(settings: Settings) -> None:
    await ensure_topics(settings)
    two = [asyncio.ensure_future(member(settings)) for _ in range(2)]
    try:
        await asyncio.gather(*two)
        (finding,) = await workers(settings.model_copy(update={"partitions": 1}))
    finally:
        for consumer in two:
            await (await consumer).stop()
    assert finding.verdict is Verdict.WARNING
    assert "2 workers for 1 partitions: 1 do nothing" in finding.found


def a_group(*hosts: str, code: int = 0) -> Any:
    members = [{"client_host": f"/{host}", "client_id": "x"} for host in hosts]
    found = {"error_code": code, "state": "Stable", "members": members}
    return SimpleNamespace(to_object=lambda: {"groups": [found]})


async def test_a_group_whose_coordinator_is_not_there_yet_is_asked_again() -> None:
    answers: list[Any] = [GroupCoordinatorNotAvailableError(), a_group(code=14), a_group("10.0.0.1")]

    async def describe(_groups: list[str]) -> list[Any]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return [answer]

    admin: Any = SimpleNamespace(describe_consumer_groups=describe)
    assert len((await _group(admin, "g"))["members"]) == 1
    assert answers == []


async def test_workers_on_two_machines_with_a_folder_as_asset_store_are_warned_of(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def describe(_admin: Any, _group: str) -> Any:
        return a_group("10.0.0.1", "10.0.0.2").to_object()["groups"][0]

    monkeypatch.setattr("sceneloom.operations.broker_checks._group", describe)
    (finding,) = await workers(settings)
    assert finding.verdict is Verdict.WARNING
    assert "10.0.0.1, 10.0.0.2" in finding.found
    (shared,) = await workers(settings.model_copy(update={"assets": "s3://films"}))
    assert shared.verdict is Verdict.OK


@pytest.mark.kafka
async def test_the_broker_is_asked_for_the_time_and_the_topic_for_that_is_removed(settings: Settings) -> None:
    (finding,) = await ClockCheck(SystemClock())(settings)
    assert finding.verdict is Verdict.OK
    assert "less than 2 s apart" in finding.found
    async with administration(settings) as admin:
        assert not [name for name in await admin.list_topics() if name.startswith(settings.topic_prefix)]


class FastClock(SystemClock):
    """Goes ten minutes before the time."""

    def now(self) -> datetime:
        return super().now() + timedelta(minutes=10)


@pytest.mark.kafka
async def test_a_clock_that_is_wrong_is_a_fault(settings: Settings) -> None:
    (finding,) = await ClockCheck(FastClock())(settings)
    assert finding.verdict is Verdict.FAULT
    assert "s ahead of the broker's" in finding.found


@pytest.mark.parametrize(
    ("seconds", "verdict", "words"),
    [
        (0, Verdict.OK, "less than 2 s apart"),
        (2.9, Verdict.OK, "less than 2 s apart"),
        (-2, Verdict.OK, "less than 2 s apart"),
        (30, Verdict.WARNING, "29 s behind"),
        (-30, Verdict.WARNING, "30 s ahead of"),
        (90, Verdict.FAULT, "89 s behind"),
    ],
)
def test_clocks_are_judged_by_what_lies_outside_of_the_round_trip(
    seconds: float, verdict: Verdict, words: str
) -> None:
    finding = judged(NOON, NOON + timedelta(seconds=seconds), NOON + timedelta(seconds=1))
    assert finding.verdict is verdict
    assert words in finding.found
