"""What a dead letter says about the message that it is a copy of."""

from collections.abc import Mapping
from typing import Final

from faust.types.tuples import Message

TOPIC: Final = "sceneloom-topic"
PARTITION: Final = "sceneloom-partition"
OFFSET: Final = "sceneloom-offset"
TIMESTAMP: Final = "sceneloom-timestamp"
"""When the message was written, in milliseconds since 1970, as the broker says."""
ERROR: Final = "sceneloom-error"
REASON: Final = "sceneloom-reason"
OMITTED: Final = "sceneloom-omitted"
"""Present where the value could not be copied: its size in bytes."""
REPLAYED: Final = "sceneloom-replayed"
"""On a message that was sent again: the offset of the dead letter that it came from."""

_OF_A_DEATH: Final = frozenset({TOPIC, PARTITION, OFFSET, TIMESTAMP, ERROR, REASON, OMITTED})
OURS: Final = _OF_A_DEATH | {REPLAYED}
"""Every header that is not the message's own."""

_LONGEST_REASON: Final = 2000

Headers = list[tuple[str, bytes]]


def headers_of(message: Message, error: Exception) -> Headers:
    """Return the headers of *message*, less those of an earlier dead letter, and what went wrong with it."""
    raw = message.headers or ()
    original = raw.items() if isinstance(raw, Mapping) else raw
    ours = {
        TOPIC: message.topic,
        PARTITION: message.partition,
        OFFSET: message.offset,
        TIMESTAMP: round((message.timestamp or 0) * 1000),
        ERROR: type(error).__name__,
        REASON: str(error)[:_LONGEST_REASON],
    }
    kept = [(name, value) for name, value in original if name not in _OF_A_DEATH]
    return kept + [(name, str(value).encode(errors="replace")) for name, value in ours.items()]


def omitting(headers: Headers, value: bytes | None) -> Headers:
    """Return *headers* with the size of a *value* that is left out."""
    return [*headers, (OMITTED, str(len(value or b"")).encode())]
