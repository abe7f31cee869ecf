"""Which messages were taken already, for as long as they could pass as new."""

from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final

from models.ports import Clock

KEPT: Final = timedelta(minutes=15)
"""Longer than a signed message is believed, from five minutes early to five minutes late."""

MOST: Final = 50_000


class Replays:
    """A bounded memory. What it has forgotten, or lost in a restart, causes one more poll and no harm."""

    def __init__(self, clock: Clock, *, most: int = MOST) -> None:
        self._clock = clock
        self._most = most
        self._until: OrderedDict[str, datetime] = OrderedDict()

    def __contains__(self, message: str) -> bool:
        self._drop_old()
        return message in self._until

    def add(self, message: str) -> None:
        """Remember *message*; the oldest one goes where there are too many."""
        self._until[message] = self._clock.now() + KEPT
        self._until.move_to_end(message)
        while len(self._until) > self._most:
            self._until.popitem(last=False)

    def _drop_old(self) -> None:
        now = self._clock.now()
        while self._until and next(iter(self._until.values())) <= now:
            self._until.popitem(last=False)
