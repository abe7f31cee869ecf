"""The latest value of each key of a compacted topic, as a reader without a table sees it."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

from aiokafka import ConsumerRecord
from pydantic import ValidationError

from sceneloom.client import Reader
from sceneloom.codec import version_of
from sceneloom.settings import Settings

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Latest(Generic[V]):
    """The newest value of each key, and how many keys have a last value that nobody here can read."""

    values: tuple[V, ...]
    written_at: tuple[datetime, ...]
    """When each of the values was written, in their order."""
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
    rows: dict[bytes, tuple[int, bytes, int]] = {}
    broken: set[bytes] = set()
    async for record in records:
        key = record.key or b""
        broken.discard(key)
        if record.value is None:
            rows.pop(key, None)
            continue
        try:
            version = version_of(record.value)
        except (ValueError, TypeError, KeyError):
            broken.add(key)
            continue
        if key not in rows or version >= rows[key][0]:
            rows[key] = version, record.value, record.timestamp
    values, written_at = [], []
    # Only the newest are read as a whole: until it is compacted, a topic holds every version.
    for key, (_, row, timestamp) in rows.items():
        try:
            values.append(read(row))
        except ValidationError:
            broken.add(key)
        else:
            written_at.append(datetime.fromtimestamp(timestamp / 1000, UTC))
    return Latest(tuple(values), tuple(written_at), len(broken))
