"""What the scenarios stand on: real Kafka, of one node or three, with a wire that can be cut."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from sceneloom.brokers.kafka import KafkaBroker
from sceneloom.brokers.process import HOST, free_ports
from tests.faults.proxy import Wire

NODES: Final = 3


class WiredKafka(KafkaBroker):
    """A Kafka whose nodes have a second door each: what enters there is sent on over a `Wire`."""

    def __init__(self, folder: Path, *, nodes: int) -> None:
        super().__init__(folder, nodes=nodes)
        self._doors = free_ports(nodes)
        self._wired = free_ports(nodes)
        self._count = nodes

    @property
    def wired(self) -> str:
        """Where clients connect whose network can be cut."""
        return ",".join(f"{HOST}:{port}" for port in self._wired)

    def wires(self) -> list[Wire]:
        """Return a wire to each node, not yet laid."""
        return [Wire(door, port=port) for door, port in zip(self._doors, self._wired, strict=True)]

    def _properties(self, node: int) -> dict[str, str]:
        plain = super()._properties(node)
        protocols = plain["listener.security.protocol.map"]
        return plain | {
            "listeners": f"{plain['listeners']},WIRED://{HOST}:{self._doors[node]}",
            "advertised.listeners": f"{plain['advertised.listeners']},WIRED://{HOST}:{self._wired[node]}",
            "listener.security.protocol.map": f"{protocols},WIRED:PLAINTEXT",
            "group.min.session.timeout.ms": "1000",
        }


class Ground:
    """Starts each cluster when it is first needed, and ends all of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clusters: dict[int, WiredKafka] = {}

    async def cluster(self, nodes: int) -> WiredKafka:
        """Return the running cluster of so many nodes."""
        if nodes not in self._clusters:
            kafka = WiredKafka(self._folder / f"kafka-{nodes}", nodes=nodes)
            await asyncio.to_thread(kafka.start)
            self._clusters[nodes] = kafka
        return self._clusters[nodes]

    async def renew(self, nodes: int) -> None:
        """End the cluster, so that the next scenario gets a fresh one."""
        kafka = self._clusters.pop(nodes, None)
        if kafka is not None:
            await asyncio.to_thread(kafka.kill)
            shutil.rmtree(self._folder / f"kafka-{nodes}", ignore_errors=True)

    async def close(self) -> None:
        """End everything."""
        for nodes in list(self._clusters):
            await self.renew(nodes)


@contextlib.asynccontextmanager
async def laid(wires: list[Wire]) -> AsyncIterator[list[Wire]]:
    """Lay *wires*, and take them away at the end."""
    async with contextlib.AsyncExitStack() as stack:
        for wire in wires:
            await stack.enter_async_context(wire)
        yield wires


def options_of(kafka: KafkaBroker) -> dict[str, Any]:
    """Return the settings of those who work on *kafka*."""
    return {"broker": f"kafka://{kafka.bootstrap}"}
