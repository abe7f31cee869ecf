"""Losses of changelogs, found and accepted: on a real broker, with commits that the tests make."""

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.structs import OffsetAndMetadata

from sceneloom.changelog_notes import Extent, write_note
from sceneloom.operations.losses import WorkersRun, accept_losses, find_losses
from sceneloom.settings import Settings
from sceneloom.topic_admin import ensure_topics
from sceneloom.topics import (
    CREDIT_REQUESTS,
    CREDITS_TABLE,
    JOB_EVENTS,
    JOBS_TABLE,
    app_name,
    changelog_name,
    topic_name,
)
from tests.kafka_fixtures import TestBroker
from tests.stage import settings_for

pytestmark = pytest.mark.kafka


@pytest.fixture
async def settings(broker: TestBroker, unique: str) -> Settings:
    """Topics with three rows on partition 0 of the changelog of jobs, where ten are noted."""
    settings = settings_for(broker.bootstrap, f"{unique}-")
    await ensure_topics(settings)
    changelog = changelog_name(settings, JOBS_TABLE)
    async with AIOKafkaProducer(bootstrap_servers=settings.bootstrap) as producer:
        for _ in range(3):
            await producer.send_and_wait(changelog, b"{}", key=b"k", partition=0)
    async with group(settings) as consumer:
        events = TopicPartition(topic_name(settings, JOB_EVENTS), 0)
        consumer.assign([events])
        await consumer.commit({events: OffsetAndMetadata(5, write_note({changelog: Extent(0, 9)}))})
    return settings


def group(settings: Settings) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=settings.bootstrap, group_id=app_name(settings), enable_auto_commit=False
    )


async def committed(settings: Settings) -> int | None:
    async with group(settings) as consumer:
        events = TopicPartition(topic_name(settings, JOB_EVENTS), 0)
        consumer.assign([events])
        offset: int | None = await consumer.committed(events)
        return offset


async def test_a_loss_is_found_and_gone_once_it_is_accepted_and_the_offsets_stay(settings: Settings) -> None:
    changelog = changelog_name(settings, JOBS_TABLE)
    line = (
        f"the changelog {changelog}[0] has lost rows: "
        "it ends at offset 3, though a row at offset 9 was acknowledged"
    )
    assert await find_losses(settings) == [line]
    assert await find_losses(settings) == [line], "to look changes nothing"
    assert await accept_losses(settings) == [line]
    assert await find_losses(settings) == []
    assert await committed(settings) == 5


@pytest.mark.parametrize("credits_here", ["off", "http"])
async def test_a_loss_is_found_and_accepted_for_tables_and_topics_that_only_the_workers_have(
    settings: Settings, credits_here: str
) -> None:
    of_workers = settings.model_copy(update={"credits": "table"})
    await ensure_topics(of_workers)
    here = settings.model_copy(update={"credits": credits_here})
    if credits_here == "http":
        await ensure_topics(here)
    changelog = changelog_name(settings, CREDITS_TABLE)
    requests = TopicPartition(topic_name(settings, CREDIT_REQUESTS), 0)
    noted = {changelog: Extent(0, 6), changelog_name(settings, JOBS_TABLE): Extent(0, 9)}
    async with group(settings) as consumer:
        consumer.assign([requests])
        await consumer.commit({requests: OffsetAndMetadata(2, write_note(noted))})

    found = await accept_losses(here)

    assert len(found) == 2
    assert f"{changelog}[0] has lost rows" in found[0]
    assert await find_losses(of_workers) == [], "a worker that reads all commits finds nothing lost either"


async def test_a_loss_is_not_accepted_while_a_worker_runs(settings: Settings) -> None:
    async with group(settings) as worker:
        worker.subscribe([topic_name(settings, JOB_EVENTS)])
        while not worker.assignment():
            await worker.getmany(timeout_ms=100)
        with pytest.raises(WorkersRun, match="end all of them"):
            await accept_losses(settings)
    assert len(await find_losses(settings)) == 1


async def test_where_no_row_was_lost_nothing_is_changed(settings: Settings) -> None:
    await accept_losses(settings)
    assert await accept_losses(settings) == []
    assert await committed(settings) == 5
