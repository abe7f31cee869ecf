"""A worker of the next release, as far as one can have it today: it writes more than today's worker knows.

python -m tests.stored.next_release      settings as for tests.e2e.house

Each row, each message between agents and each entry in the asset store has one more field in each of its
objects. It keeps the rules for authors (docs/operations.md): no word and no type that today nobody reads.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson

from sceneloom import codec, publisher
from sceneloom.app import create_app, run
from sceneloom.assets.store import ObjectAssets
from sceneloom.settings import Settings
from tests.e2e import house
from tests.stored.later import FIELD, with_fields

_Keep = Callable[[ObjectAssets, str, Mapping[str, object]], Awaitable[Any]]


def encode(message: Any) -> bytes:
    """Return *message* as the next release writes it."""
    return orjson.dumps(with_fields(message))


def _with_more(keep: _Keep) -> _Keep:
    async def kept(assets: ObjectAssets, key: str, entry: Mapping[str, object]) -> Any:
        return await keep(assets, key, {**entry, FIELD: True})

    return kept


def become_next() -> None:
    """Make the code in this process that of the next release."""
    for module in (codec, publisher):
        module.encode = encode  # type: ignore[attr-defined]  # the name that they use
    for keep in (ObjectAssets.remember, ObjectAssets.claim):
        setattr(ObjectAssets, keep.__name__, _with_more(keep))


if __name__ == "__main__":
    become_next()
    chosen = Settings()
    sys.exit(run(create_app(chosen, house.outside(chosen)), chosen))
