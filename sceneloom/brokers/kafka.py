"""Apache Kafka on the local Java: the real broker, from Maven Central, without Docker.

One node, or several as a KRaft cluster on loopback, each broker and controller in one. The folder keeps
the data, the ports and the logs; the jars (44 MB) are downloaded once for all folders.
"""

import base64
import fcntl
import json
import signal
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from sceneloom.brokers import BrokerUnavailable
from sceneloom.brokers.jars import java_command, kafka_jars
from sceneloom.brokers.process import HOST, BrokerProcess, Startable, free_ports, require_free

_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 30.0
_LAST_STOP_SECONDS: Final = 5.0
_FORMAT: Final = "kafka.tools.StorageTool"
_SERVER: Final = "kafka.Kafka"

_LIGHT_JVM: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

_SETTINGS: Final = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "auto.create.topics.enable": "false",
    # A node that was killed is forgotten, and can come back, after this instead of 9 s.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "log.cleaner.dedupe.buffer.size": "2097152",
}


class KafkaBroker(Startable):
    """Apache Kafka with its data in *folder*; ports *port*, *port* + 1 … (brokers, then controllers).

    Without *port*, free ones are chosen at the first start and kept with the data.
    """

    _format_options: Sequence[str] = ()

    def __init__(
        self, folder: Path, *, port: int | None = None, nodes: int = 1, jars: Path | None = None
    ) -> None:
        self._folder = folder.absolute()
        self._jars = jars
        self._nodes = range(nodes)
        self._port = port
        self._ports: list[int] = []
        self._running: dict[int, BrokerProcess] = {}
        self._lock: IO[str] | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients connect: `127.0.0.1:PORT`, one for each node, divided by commas."""
        return ",".join(f"{HOST}:{port}" for port in self._broker_ports())

    @property
    def url(self) -> str:
        """The same places as Faust writes them: `kafka://127.0.0.1:PORT;kafka://…`."""
        return ";".join(f"kafka://{HOST}:{port}" for port in self._broker_ports())

    def start(self, *, node: int | None = None) -> None:
        """Start all nodes, or only *node* (from 0), and wait until clients are served.

        Raises `BrokerUnavailable`.
        """
        self._hold_folder()
        chosen = [each for each in self._chosen(node) if each not in self._running]
        try:
            java, jars = java_command(), kafka_jars(self._jars)
            self._ports = self._ports or self._choose_ports()
            for each in chosen:
                require_free(self._ports[each])
                self._format(each, java, jars)
        except BrokerUnavailable:
            self._release_folder()
            raise
        try:
            for each in chosen:
                self._running[each] = self._launch(each, java, jars)
            expected = len(self._running)
            for each in chosen:
                self._running[each].wait_ready(self._ports[each], brokers=expected, seconds=_START_SECONDS)
        except BrokerUnavailable:
            self.kill(node=node)
            raise

    def _hold_folder(self) -> None:
        """Keep the folder to ourselves while a node runs: two brokers would spoil each other's files."""
        if self._lock is not None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = (self._folder / "in-use.lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            lock.close()
            raise BrokerUnavailable(
                f"a broker already runs on {self._folder}: use it, stop it, or name another folder"
            ) from exc
        self._lock = lock

    def _release_folder(self) -> None:
        if self._lock is not None and not self._running:
            self._lock.close()
            self._lock = None

    def stop(self, *, node: int | None = None) -> None:
        """End all nodes, or only *node*, in good order (SIGTERM); the data stays."""
        ending = [self._running.pop(each) for each in self._chosen(node) if each in self._running]
        for process in ending:
            process.signal(signal.SIGTERM)
        for process in ending:
            # The last nodes have no majority left to take leave of, and would wait for one.
            process.end(seconds=_STOP_SECONDS if process is ending[0] else _LAST_STOP_SECONDS)
        self._release_folder()

    def kill(self, *, node: int | None = None) -> None:
        """End all nodes, or only *node*, with SIGKILL; the data stays, and `start` goes on with it."""
        for each in self._chosen(node):
            if process := self._running.pop(each, None):
                process.kill()
        self._release_folder()

    def signal(self, number: int, *, node: int | None = None) -> None:
        """Send a signal such as SIGSTOP or SIGCONT to all nodes or only *node*."""
        for each in self._chosen(node):
            if process := self._running.get(each):
                process.signal(number)

    def _chosen(self, node: int | None) -> Sequence[int]:
        return self._nodes if node is None else [node]

    def _broker_ports(self) -> list[int]:
        if not self._ports:
            raise BrokerUnavailable("Kafka's ports are chosen at the first start: start it first")
        return self._ports[: len(self._nodes)]

    def _choose_ports(self) -> list[int]:
        """Return the ports of all brokers, then of all controllers."""
        count = 2 * len(self._nodes)
        kept = self._folder / "ports.json"
        if self._port is not None:
            ports = [self._port + each for each in range(count)]
        elif kept.exists():
            ports = list(json.loads(kept.read_text()))
        else:
            ports = free_ports(count)
        if len(ports) != count:
            raise BrokerUnavailable(
                f"{self._folder} holds a cluster of {len(ports) // 2} nodes, not {len(self._nodes)}: "
                "use another folder"
            )
        self._folder.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(ports))
        return ports

    def _node_folder(self, node: int) -> Path:
        return self._folder / f"node-{node}"

    def _format(self, node: int, java: str, jars: Path) -> None:
        folder = self._node_folder(node)
        folder.mkdir(parents=True, exist_ok=True)
        properties = folder / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in self._properties(node).items()))
        if (folder / "data" / "meta.properties").exists():
            return
        command = [
            java,
            "-cp",
            f"{jars}/*",
            _FORMAT,
            "format",
            "-t",
            self._cluster_id(),
            "-c",
            str(properties),
            *self._format_options,
        ]
        process = BrokerProcess(command, log=folder / "format.log")
        if process.wait_ended(seconds=_START_SECONDS) != 0:
            raise BrokerUnavailable(f"Kafka cannot format {folder}:\n{process.last_lines()}")

    def _properties(self, node: int) -> dict[str, str]:
        count = len(self._nodes)
        broker, controller = self._ports[node], self._ports[count + node]
        voters = ",".join(f"{each + 1}@{HOST}:{self._ports[count + each]}" for each in self._nodes)
        return _SETTINGS | {
            "node.id": str(node + 1),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{HOST}:{broker},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{broker}",
            "log.dirs": str(self._node_folder(node) / "data"),
            "offsets.topic.replication.factor": str(count),
            "transaction.state.log.replication.factor": str(count),
            "transaction.state.log.min.isr": str(count // 2 + 1),
            "min.insync.replicas": str(count // 2 + 1),
        }

    def _cluster_id(self) -> str:
        kept = self._folder / "cluster-id"
        if not kept.exists():
            kept.write_text(_cluster_id())
        return kept.read_text()

    def _launch(self, node: int, java: str, jars: Path) -> BrokerProcess:
        folder = self._node_folder(node)
        command = [java, "-Xmx512m" if len(self._nodes) == 1 else "-Xmx384m", *_LIGHT_JVM]
        command += ["-Dorg.slf4j.simpleLogger.showDateTime=true"]
        command += ["-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS"]
        command += ["-cp", f"{jars}/*", _SERVER, str(folder / "server.properties")]
        return BrokerProcess(command, log=folder / "server.log")


def _cluster_id() -> str:
    """Return an id as Kafka makes them: never with a dash in front, which its tools take for an option."""
    while (name := base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()).startswith("-"):
        pass
    return name
