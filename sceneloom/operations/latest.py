"""The latest value of each key of a compacted topic, as a reader without a table sees it."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from aiokafka import ConsumerRecord
from pydantic import ValidationError

from sceneloom.client import Reader
from sceneloom.settings import Settings


class Versioned(Protocol):
    """A value that says how new it is."""

    @property
    def version(self) -> int:
        """Grows with each change."""
        ...


V = TypeVar("V", bound=Versioned)


@dataclass(frozen=True, slots=True)
class Latest(Generic[V]):
    """The newest value of each key, and how many keys have a last value that nobody here can read."""

    values: tuple[V, ...]
    unreadable: int


async def read_latest(settings: Settings, topic: str, read: Callable[[bytes], V]) -> Latest[V]:
    """Return what *topic* (without its prefix) holds now. Raises `BrokerUnreachable`, `TopicsMissing`."""
    async with Reader(settings, topic) as reader:
        return await newest(reader.history(), read)


async def newest(records: AsyncIterator[ConsumerRecord], read: Callable[[bytes], V]) -> Latest[V]:
    """Return the value with the highest version of each key.

    The last record is not always the newest: a worker that woke too late may have written an old version
    over a new one. A tombstone removes its key.
    """
    found: dict[bytes, V] = {}
    unreadable: set[bytes] = set()
    async for record in records:
        key = record.key or b""
        unreadable.discard(key)
        if record.value is None:
            found.pop(key, None)
            continue
        try:
            value = read(record.value)
        except ValidationError:
            unreadable.add(key)
            continue
        known = found.get(key)
        if known is None or value.version >= known.version:
            found[key] = value
    return Latest(tuple(found.values()), len(unreadable))
