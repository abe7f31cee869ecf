"""Dead letters: what lies on their topic, and which of them are wanted."""

import contextlib
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

from aiokafka import ConsumerRecord

from models.commands import SubmitProject
from sceneloom.client import Reader
from sceneloom.codec import Unreadable
from sceneloom.dead_letters import (
    ERROR,
    OFFSET,
    OMITTED,
    OURS,
    PARTITION,
    REASON,
    REPLAYED,
    TIMESTAMP,
    TOPIC,
    Headers,
)
from sceneloom.operations.rereading import reread
from sceneloom.settings import Settings
from sceneloom.topics import DEAD_LETTERS


@dataclass(frozen=True, kw_only=True, slots=True)
class Letter:
    """A dead letter: the message as it was, where it came from, and why it is here.

    What its headers do not tell is empty or None: anybody may write to the topic.
    """

    partition: int
    offset: int
    died_at: datetime
    key: bytes | None
    value: bytes | None
    headers: Headers
    """The message's own, without ours."""
    topic: str
    origin_partition: int | None
    origin_offset: int | None
    written_at: datetime | None
    error: str
    reason: str
    size: int
    """Bytes of the value that lies here."""
    omitted: int | None
    """Bytes of a value that could not be copied."""
    replay_of: str | None
    """The letter that this message was replayed from before it died again."""
    unreadable: str = ""
    """Why workers of this release could not read the message; empty where they could, or nobody looked."""
    is_submit: bool = False
    """Whether the message is a request, which makes its project; false where nobody looked."""

    @property
    def name(self) -> str:
        """How the letter is called: its offset, after its partition where there are several."""
        return f"{self.partition}:{self.offset}" if self.partition else str(self.offset)


class LetterMissing(Exception):
    """There is no such dead letter; the message says which there are."""


def letter_in(record: ConsumerRecord) -> Letter:
    """Return the dead letter that *record* is."""
    ours = {name: (value or b"").decode(errors="replace") for name, value in record.headers if name in OURS}
    return Letter(
        partition=record.partition,
        offset=record.offset,
        died_at=_moment(record.timestamp),
        key=record.key,
        value=record.value,
        headers=[(name, value) for name, value in record.headers if name not in OURS],
        topic=ours.get(TOPIC, ""),
        origin_partition=_number(ours.get(PARTITION)),
        origin_offset=_number(ours.get(OFFSET)),
        written_at=_moment(written) if (written := _number(ours.get(TIMESTAMP))) else None,
        error=ours.get(ERROR, ""),
        reason=ours.get(REASON, ""),
        size=len(record.value or b""),
        omitted=_number(ours.get(OMITTED)),
        replay_of=ours.get(REPLAYED),
    )


def judged(letter: Letter, settings: Settings) -> Letter:
    """Return *letter*, which has its value, with what the workers of this release would say of it."""
    if letter.omitted is not None:
        return letter
    try:
        message = reread(letter.topic, letter.key, letter.value, settings)
    except Unreadable as error:
        return replace(letter, unreadable=str(error))
    return replace(letter, is_submit=isinstance(message, SubmitProject))


async def letters(settings: Settings) -> AsyncGenerator[Letter]:
    """Yield all dead letters, the oldest first of each partition; close it where you stop before the end.

    None of them is `judged`. Raises `BrokerUnreachable` and `TopicsMissing`.
    """
    async with Reader(settings, DEAD_LETTERS) as reader:
        async for record in reader.history():
            yield letter_in(record)


async def envelopes(settings: Settings) -> list[Letter]:
    """Return all dead letters, judged, without their values, which may be large. Raises as `letters` does."""
    found = [replace(judged(letter, settings), value=None) async for letter in letters(settings)]
    return sorted(found, key=_place)


async def find(settings: Settings, name: str) -> Letter:
    """Return the letter called *name*, judged. Raises as `letters` does, and `LetterMissing`."""
    others: list[Letter] = []
    async with contextlib.aclosing(letters(settings)) as there:
        async for letter in there:
            if letter.name == _plain(name):
                return judged(letter, settings)
            others.append(replace(letter, value=None))
    raise _missing(name, sorted(others, key=_place))


def named(among: Sequence[Letter], names: Iterable[str]) -> list[Letter]:
    """Return the letters called *names*: OFFSET or PARTITION:OFFSET, each once. Raises `LetterMissing`."""
    known = {letter.name: letter for letter in among}
    found: dict[str, Letter] = {}
    for name in names:
        if _plain(name) not in known:
            raise _missing(name, among)
        found[_plain(name)] = known[_plain(name)]
    return list(found.values())


def _plain(name: str) -> str:
    """Return *name* as `Letter.name` writes it."""
    return name.removeprefix("0:")


def _place(letter: Letter) -> tuple[int, int]:
    return letter.partition, letter.offset


def _missing(name: str, among: Sequence[Letter]) -> LetterMissing:
    there = f"there are {among[0].name} to {among[-1].name}" if among else "there is none"
    return LetterMissing(f"there is no dead letter {name}: {there}; `sceneloom dead-letters list`")


@dataclass(frozen=True, kw_only=True, slots=True)
class LetterFilter:
    """Which letters are wanted: those that meet everything that is named.

    Texts are patterns, in which `*` stands for anything.
    """

    topic: str | None = None
    error: str | None = None
    reason: str | None = None
    key: str | None = None
    before: int | None = None
    after: int | None = None
    older_than: timedelta | None = None

    def wants(self, letter: Letter, now: datetime, *, prefix: str = "") -> bool:
        """Tell whether *letter* is wanted; a topic may be named with or without *prefix*."""
        key = (letter.key or b"").decode(errors="replace")
        return (
            (self.topic is None or any(fnmatchcase(letter.topic, f"{p}{self.topic}") for p in ("", prefix)))
            and (self.error is None or fnmatchcase(letter.error, self.error))
            and (self.reason is None or fnmatchcase(letter.reason, self.reason))
            and (self.key is None or fnmatchcase(key, self.key))
            and (self.before is None or letter.offset < self.before)
            and (self.after is None or letter.offset > self.after)
            and (self.older_than is None or now - letter.died_at > self.older_than)
        )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None


def _moment(milliseconds: int) -> datetime:
    """Return the time that is so many milliseconds after 1970; what no calendar holds is its end."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.max.replace(tzinfo=UTC)
