"""Weighs a raw request before anything else reads it: its row must stay far below Kafka's megabyte."""

import json
from collections.abc import Iterator
from typing import Final

from models.faults import Fault
from models.spelling import is_list, is_mapping

MOST_BYTES: Final = 300_000
MOST_DEPTH: Final = 8


def weight_fault(raw: object) -> Fault | None:
    """Say what makes *raw* too heavy as compact JSON; looks at no more of it than the limits allow."""
    weight, waiting = 0, [(raw, 1)]
    while waiting:
        value, depth = waiting.pop()
        if depth > MOST_DEPTH:
            return Fault("", "too_deep", f"the request is nested more than {MOST_DEPTH} levels deep")
        weight += _own_bytes(value)
        if weight > MOST_BYTES:
            return Fault(
                "",
                "too_large",
                f"the request is larger than {MOST_BYTES // 1000} kB; make several videos of it",
            )
        waiting.extend((part, depth + 1) for part in _parts(value))
    return None


def _own_bytes(value: object) -> int:
    if isinstance(value, str):
        return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")) + 1
    if isinstance(value, int):
        return value.bit_length() // 3 + 2
    return 8 if isinstance(value, float) else 3


def _parts(value: object) -> Iterator[object]:
    if is_mapping(value):
        yield from value.keys()
        yield from value.values()
    elif is_list(value):
        yield from value
