"""Hints on a real broker."""

import pytest

from models.job_events import PollNow
from sceneloom.client import Reader, job_event_in
from sceneloom.gateway.errors import NotNow
from sceneloom.gateway.hint_producer import open_hint_producer
from sceneloom.topic_admin import BrokerUnreachable, TopicsMissing, ensure_topics
from sceneloom.topics import JOB_EVENTS, partition_of
from tests.agents.test_hints import a_hint
from tests.kafka_fixtures import TestBroker
from tests.runner.test_runner import accepted
from tests.stage import settings_for


@pytest.mark.kafka
async def test_a_hint_is_on_the_topic_in_the_partition_of_its_project(
    broker: TestBroker, unique: str
) -> None:
    settings = settings_for(broker.bootstrap, f"{unique}-")
    await ensure_topics(settings)
    hint: PollNow = a_hint(accepted())
    async with open_hint_producer(settings) as producer:
        assert await producer.broker_answers()
        await producer.publish(hint)

    async with Reader(settings, JOB_EVENTS) as reader:
        (record,) = [record async for record in reader.history()]
    assert job_event_in(record) == hint
    assert record.partition == partition_of(hint.project_id, settings.partitions)


@pytest.mark.kafka
async def test_a_broker_that_stops_answering_is_noticed(
    broker: TestBroker, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(broker.bootstrap, f"{unique}-")
    await ensure_topics(settings)
    async with open_hint_producer(settings) as producer:
        connections = producer._producer.client._conns

        async def unreachable(*_: object, **__: object) -> None:
            return None

        monkeypatch.setattr(producer._producer.client, "_get_conn", unreachable)
        for connection in list(connections.values()):
            connection.close()
        assert not await producer.broker_answers()
        with pytest.raises(NotNow):
            await producer.publish(a_hint(accepted()))


@pytest.mark.kafka
async def test_topics_that_are_missing_are_told_at_the_start(broker: TestBroker, unique: str) -> None:
    with pytest.raises(TopicsMissing):
        async with open_hint_producer(settings_for(broker.bootstrap, f"{unique}-")):
            pass


async def test_a_broker_that_is_not_there_is_told_at_the_start() -> None:
    with pytest.raises(BrokerUnreachable):
        async with open_hint_producer(settings_for("127.0.0.1:1", "t-")):
            pass
