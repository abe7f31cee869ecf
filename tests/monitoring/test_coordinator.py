"""What a probe makes of a coordinator that refuses, has moved, or died."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import DescribeGroupsRequest
from aiokafka.protocol.commit import OffsetFetchRequest, OffsetFetchResponse_v3
from aiokafka.protocol.coordination import FindCoordinatorRequest, FindCoordinatorResponse_v1

from sceneloom.brokers import BrokerUnavailable
from sceneloom.brokers.kafka import KafkaBroker
from sceneloom.monitoring import group
from sceneloom.monitoring.group import GroupUnreadable
from sceneloom.monitoring.verdicts import Verdict
from tests.kafka_fixtures import TestBroker
from tests.monitoring.bench import Bench, Consumer

pytestmark = pytest.mark.kafka

COORDINATOR_NOT_AVAILABLE = 15
NOT_COORDINATOR = 16
TOPIC_AUTHORIZATION_FAILED = 29
GROUP_AUTHORIZATION_FAILED = 30


class Refusing:
    """A client that gives these answers before the real ones, each to the first request of its kind."""

    def __init__(self, client: Any, answers: dict[type, list[Any]]) -> None:
        self._client = client
        self._answers = answers
        self.asked: list[type] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def send(self, node: int, request: Any) -> Any:
        self.asked.append(type(request))
        answers = self._answers.get(type(request))
        return answers.pop(0) if answers else await self._client.send(node, request)


def refuse(bench: Bench, kind: type, *answers: Any) -> Refusing:
    refusing = Refusing(bench.probe._client, {kind: list(answers)})
    bench.probe._client = refusing
    return refusing


@pytest.fixture
async def bench(broker: TestBroker, unique: str) -> AsyncIterator[Bench]:
    async with Bench(broker.bootstrap, unique) as bench:
        await bench.create_topic()
        await bench.produce(3)
        async with Consumer(bench) as consumer:
            await consumer.read(2)
        yield bench


async def test_a_coordinator_that_has_moved_is_looked_for_again_and_is_not_a_group_without_commits(
    bench: Bench,
) -> None:
    moved = OffsetFetchResponse_v3(0, [], NOT_COORDINATOR)
    refusing = refuse(bench, OffsetFetchRequest, moved)
    assert (await bench.partition()).committed == 2
    assert refusing.asked.count(FindCoordinatorRequest) == 2


async def test_a_coordinator_that_is_not_there_yet_is_waited_for(bench: Bench) -> None:
    absent = FindCoordinatorResponse_v1(0, COORDINATOR_NOT_AVAILABLE, None, -1, "", -1)
    refuse(bench, FindCoordinatorRequest, absent, absent)
    assert (await bench.partition()).committed == 2


async def test_members_that_another_coordinator_knows_are_not_an_empty_group(bench: Bench) -> None:
    async with Consumer(bench):
        known = await bench.probe._client.send(
            await bench.probe._coordinator(), DescribeGroupsRequest([bench.group])
        )
        elsewhere = type(known)(0, [(NOT_COORDINATOR, bench.group, "", "", "", [], *known.groups[0][6:])])
        refuse(bench, DescribeGroupsRequest, elsewhere)
        assert len((await bench.look()).members) == 1


async def test_a_group_that_may_not_be_read_is_an_error_that_says_so(bench: Bench) -> None:
    refuse(bench, OffsetFetchRequest, OffsetFetchResponse_v3(0, [], GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(GroupUnreadable, match=f"about group {bench.group}.*GroupAuthorizationFailed"):
        await bench.look()


async def test_one_partition_that_may_not_be_read_is_an_error_that_names_it(bench: Bench) -> None:
    commits = [(bench.topic, [(0, -1, "", TOPIC_AUTHORIZATION_FAILED)])]
    refuse(bench, OffsetFetchRequest, OffsetFetchResponse_v3(0, commits, 0))
    with pytest.raises(GroupUnreadable, match=rf"TopicAuthorizationFailed.*{bench.topic}\[0\]"):
        await bench.look()


async def test_a_coordinator_that_stays_away_is_given_up_with_what_the_broker_said(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "_PATIENCE_SECONDS", 1.0)
    absent = FindCoordinatorResponse_v1(0, COORDINATOR_NOT_AVAILABLE, None, -1, "", -1)
    refuse(bench, FindCoordinatorRequest, *[absent] * 100)
    with pytest.raises(GroupUnreadable, match="GroupCoordinatorNotAvailable"):
        await bench.look()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KafkaBroker]:
    kafka = KafkaBroker(tmp_path / "cluster", nodes=3)
    try:
        kafka.start()
    except BrokerUnavailable as exc:
        pytest.skip(f"no cluster of three: {exc}")
    yield kafka
    kafka.kill()


async def test_the_commits_are_still_known_when_the_coordinator_was_killed(
    cluster: KafkaBroker, unique: str
) -> None:
    async with Bench(cluster.bootstrap, unique) as bench:
        await bench.create_topic(replicas=3)
        await bench.produce(3)
        async with Consumer(bench) as consumer:
            await consumer.read(2)
        assert (await bench.partition()).committed == 2
        coordinator = await coordinator_of(bench)

        cluster.kill(node=coordinator - 1)
        after = await bench.partition()

        assert (after.committed, after.lag) == (2, 1)
        assert after.verdict is Verdict.STALLED
        assert await coordinator_of(bench) != coordinator


async def coordinator_of(bench: Bench) -> int:
    admin = AIOKafkaAdminClient(bootstrap_servers=bench.bootstrap)
    await admin.start()
    try:
        return int(await admin.find_coordinator(bench.group))
    finally:
        await admin.close()
