import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from sceneloom.brokers import Broker, BrokerUnavailable
from sceneloom.brokers.jars import java_command, kafka_jars
from sceneloom.brokers.kafka import KafkaBroker
from sceneloom.brokers.process import free_ports, live_brokers


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaBroker]:
    try:
        java_command()
        kafka_jars()
    except BrokerUnavailable as exc:
        pytest.skip(str(exc))
    broker = KafkaBroker(tmp_path / "kafka")
    yield broker
    broker.stop()


async def put_and_count(broker: Broker) -> int:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        await producer.send_and_wait("kept", b"1")
    async with AIOKafkaConsumer(bootstrap_servers=broker.bootstrap) as consumer:
        partition = TopicPartition("kept", 0)
        return int((await consumer.end_offsets([partition]))[partition])


@pytest.mark.kafka
async def test_it_keeps_its_data_and_its_port_through_a_kill(kafka: KafkaBroker, tmp_path: Path) -> None:
    async with kafka:
        assert isinstance(kafka, Broker)
        bootstrap = kafka.bootstrap
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        await admin.create_topics([NewTopic("kept", 1, 1)])
        await admin.close()
        assert await put_and_count(kafka) == 1
        kafka.kill()
        assert live_brokers(int(bootstrap.rpartition(":")[2])) == 0
        async with KafkaBroker(tmp_path / "kafka") as again:
            assert again.bootstrap == bootstrap
            assert await put_and_count(again) == 2


def test_the_size_of_a_cluster_is_kept_too(tmp_path: Path) -> None:
    one = KafkaBroker(tmp_path)
    one._ports = one._choose_ports()
    with pytest.raises(BrokerUnavailable, match="a cluster of 1 nodes, not 3"):
        KafkaBroker(tmp_path, nodes=3)._choose_ports()


def test_a_cluster_takes_ports_in_a_row_from_the_first_one(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    cluster = KafkaBroker(tmp_path, port=port, nodes=3)
    cluster._ports = cluster._choose_ports()
    assert (
        cluster.url == f"kafka://127.0.0.1:{port};kafka://127.0.0.1:{port + 1};kafka://127.0.0.1:{port + 2}"
    )
    voters = cluster._properties(0)["controller.quorum.voters"]
    assert voters == f"1@127.0.0.1:{port + 3},2@127.0.0.1:{port + 4},3@127.0.0.1:{port + 5}"


def test_a_folder_in_use_is_refused_and_the_broker_on_it_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "kafka"
    folder.mkdir()
    holder = KafkaBroker(folder)
    holder._hold_folder()

    with pytest.raises(BrokerUnavailable, match="already runs"):
        KafkaBroker(folder).start()

    assert [each.name for each in folder.iterdir()] == ["in-use.lock"]
    holder._release_folder()
    next_one = KafkaBroker(folder)
    next_one._hold_folder()
    next_one._release_folder()


@pytest.mark.kafka
async def test_it_starts_whatever_its_random_id_looks_like(
    kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    like_an_option = uuid.UUID(bytes=b"\xf8" * 16)
    first, usual = iter([like_an_option]), uuid.uuid4
    monkeypatch.setattr(uuid, "uuid4", lambda: next(first, None) or usual())

    async with kafka:
        assert live_brokers(int(kafka.bootstrap.rpartition(":")[2])) == 1
