"""Apache Kafka in a container, by testcontainers: what a test session has where a Docker engine answers."""

from typing import Final

from testcontainers.community.kafka import KafkaContainer

_START_SECONDS: Final = 120
_ONE_BROKER: Final = {
    "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR": "1",
}


class ApacheKafkaContainer(KafkaContainer):
    """`apache/kafka`, or an image with its ways, where testcontainers knows only Confluent's.

    Like that one it waits for a script: clients are told a port that is known once the container runs.
    """

    def __init__(self, image: str) -> None:
        super().__init__(image)
        # Not with_kraft(): it takes the tag for a version of Confluent's.
        self.kraft_enabled = True
        self.with_envs(**_ONE_BROKER)

    def start(self, timeout: int = _START_SECONDS) -> "ApacheKafkaContainer":
        """Start the broker and wait until it serves clients. Raises `TimeoutError` after *timeout* s."""
        super().start(timeout)
        return self

    def tc_start(self) -> None:
        """Let the broker begin, now that its port is known."""
        own = "BROKER://$(hostname -i | cut -d' ' -f1):9092"
        told = f"{self.listener_name}://{self.get_bootstrap_server()},{own}"
        script = f"export KAFKA_ADVERTISED_LISTENERS={told}\nexec /etc/kafka/docker/run\n"
        self.create_file(script.encode(), self.TC_START_SCRIPT)
