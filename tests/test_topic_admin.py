import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from aiokafka.errors import UnsupportedVersionError

from sceneloom import topic_admin
from sceneloom.brokers.process import free_ports
from sceneloom.settings import Settings
from sceneloom.topic_admin import (
    BrokerUnreachable,
    Found,
    TopicMismatch,
    TopicsMissing,
    TopicsRefused,
    TopicState,
    ensure_topics,
    list_topics,
    partition_counts,
)
from sceneloom.topics import PROJECT_STATES, TopicSpec, topic_name, topic_specs
from tests.kafka_fixtures import TestBroker
from tests.stage import settings_for


@pytest.fixture
def settings(broker: TestBroker, unique: str) -> Settings:
    return settings_for(broker.bootstrap, f"{unique}-")


async def test_every_topic_exists_as_wanted_after_the_first_call(settings: Settings) -> None:
    before = await ensure_topics(settings)
    assert all(state.found is None for state in before)
    after = await list_topics(settings)
    assert [state.spec.name for state in after] == [spec.name for spec in topic_specs(settings)]
    for state in after:
        assert state.found == Found(
            state.spec.partitions, state.spec.replication, state.spec.config["cleanup.policy"]
        )


async def test_a_second_call_creates_nothing(settings: Settings) -> None:
    await ensure_topics(settings)
    assert all(state.found is not None for state in await ensure_topics(settings))


async def test_two_workers_that_start_at_once_do_not_disturb_each_other(settings: Settings) -> None:
    await asyncio.gather(ensure_topics(settings), ensure_topics(settings), ensure_topics(settings))
    assert not any(state.faults or state.found is None for state in await list_topics(settings))


async def test_other_partitions_are_an_error_that_names_topic_found_and_wanted(settings: Settings) -> None:
    await ensure_topics(settings)
    with pytest.raises(TopicMismatch) as refused:
        await ensure_topics(settings.model_copy(update={"partitions": 6}))
    assert f"{topic_name(settings, PROJECT_STATES)}: partitions: found 4, wanted 6" in str(refused.value)
    assert "dead-letters" not in str(refused.value), "it has one partition whatever the settings say"


async def test_another_cleanup_policy_is_an_error_and_nothing_else_is_created(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic_name(settings, PROJECT_STATES)
    wrong = [TopicSpec(name, settings.partitions, 1, {"cleanup.policy": "delete"})]
    with monkeypatch.context() as patch:
        patch.setattr(topic_admin, "topic_specs", lambda _settings: iter(wrong))
        await ensure_topics(settings)
    with pytest.raises(TopicMismatch, match=f"{name}: cleanup.policy: found delete, wanted compact"):
        await ensure_topics(settings)
    there = [state.spec.name for state in await list_topics(settings) if state.found]
    assert there == [name]


@pytest.mark.kafka
async def test_more_copies_than_brokers_are_refused_with_advice(settings: Settings) -> None:
    with pytest.raises(TopicsRefused, match="SCENELOOM_REPLICATION must not exceed the number of brokers"):
        await ensure_topics(settings.model_copy(update={"replication": 9}))


async def test_topics_that_are_missing_are_named_and_not_created(settings: Settings) -> None:
    with pytest.raises(TopicsMissing, match=f"no topic {settings.topic_prefix}x.*sceneloom topics create"):
        await partition_counts(settings, [f"{settings.topic_prefix}x"])
    with pytest.raises(TopicsMissing):
        await partition_counts(settings, [f"{settings.topic_prefix}x"])


@pytest.mark.kafka
async def test_topics_that_need_not_be_there_are_counted_where_they_are(settings: Settings) -> None:
    await ensure_topics(settings)
    there, missing = topic_name(settings, PROJECT_STATES), f"{settings.topic_prefix}x"
    assert await partition_counts(settings, (), if_there=[missing, there]) == {there: settings.partitions}


async def test_where_nobody_listens_the_error_says_what_to_do() -> None:
    (port,) = free_ports(1)
    with pytest.raises(BrokerUnreachable) as refused:
        await ensure_topics(Settings(broker=f"kafka://127.0.0.1:{port}"))
    assert str(refused.value) == (
        f"no Kafka broker answers at 127.0.0.1:{port}: "
        "start one with `sceneloom broker`, or set SCENELOOM_BROKER"
    )


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port where connections are accepted and nothing is ever said."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


async def test_a_port_that_never_answers_is_given_up_in_time(
    deaf_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_admin, "ANSWER_SECONDS", 0.3)
    async with asyncio.timeout(3):
        with pytest.raises(BrokerUnreachable):
            await ensure_topics(Settings(broker=f"kafka://127.0.0.1:{deaf_port}"))


class _Silent:
    """An admin client whose broker does not know DescribeConfigs."""

    async def describe_configs(self, _resources: list[Any]) -> list[Any]:
        raise UnsupportedVersionError


async def test_a_broker_that_does_not_tell_its_policies_is_not_blamed_for_them() -> None:
    assert await topic_admin._policies(_Silent(), ["t"]) == {}
    spec = TopicSpec("t", 4, 1, {"cleanup.policy": "compact"})
    assert TopicState(spec, Found(4, 1, None)).faults == ()


@pytest.mark.parametrize(
    ("topics", "said"),
    [
        (["a"], "there is no topic a at k:1: create it with "),
        (["a", "b"], "there are no topics a, b at k:1: create them with "),
    ],
)
def test_topics_that_are_missing_are_told_as_one_or_as_several(topics: list[str], said: str) -> None:
    assert str(TopicsMissing(topics, ["k:1"])).startswith(said)
