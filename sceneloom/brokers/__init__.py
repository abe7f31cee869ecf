"""Kafka brokers that run on this machine, for a first look, for tests and for work without a cluster."""

from typing import Protocol, runtime_checkable


class BrokerUnavailable(Exception):
    """No broker can run here or it ended; the message says why and what to do about it."""


@runtime_checkable
class Broker(Protocol):
    """A broker that we start and stop; both calls block and belong in `asyncio.to_thread` inside a loop."""

    @property
    def bootstrap(self) -> str:
        """Where clients connect: `HOST:PORT`, several divided by commas."""
        ...

    @property
    def url(self) -> str:
        """The same place as Faust writes it: `kafka://HOST:PORT`, several divided by semicolons."""
        ...

    def start(self) -> None:
        """Return when the broker answers. Raises `BrokerUnavailable`."""
        ...

    def stop(self) -> None:
        """Return when the broker has ended; a broker that is not running stays so."""
        ...
