"""Sends dead letters back to where they died, each once, and marks what was sent."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from models.credits import GrantConflict
from models.errors import UnknownProject
from sceneloom.client import Reader
from sceneloom.dead_letters import REPLAYED
from sceneloom.kafka_access import ANSWER_SECONDS, client_options
from sceneloom.monitoring.watch import SWITCHED_OFF, inputs, switched_off
from sceneloom.operations.letters import Letter, letters
from sceneloom.operations.projects import read_projects
from sceneloom.operations.rereading import topic_of_workers
from sceneloom.settings import Settings
from sceneloom.topic_admin import BrokerUnreachable, partition_counts
from sceneloom.topics import partition_of

_LARGEST_REQUEST: Final = 16 * 1024 * 1024
"""Above what any of our topics takes: the broker has the last word."""

_SKEW: Final = timedelta(hours=1)
"""How far the clocks of a worker and of whoever replays may be apart."""

_UNKNOWN_PROJECT: Final = UnknownProject.__name__
_GRANT_CONFLICT: Final = GrantConflict.__name__


class Fate(Enum):
    """What becomes of a letter in a replay."""

    SEND = "send"
    DONE_BEFORE = "done before"
    IN_VAIN = "in vain"
    """It would die again, or did."""
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a replay does with *letter*: send it to *partition* of its topic, or not, and *why* not."""

    letter: Letter
    fate: Fate
    partition: int | None = None
    why: str = ""


Report = Callable[[str, str], None]
"""Hears the name of a letter, and why it could not be sent; an empty reason says that it was."""


async def planned(
    settings: Settings,
    chosen: Sequence[Letter],
    before: Collection[str],
    *,
    named: Collection[str] = (),
    anyway: bool = False,
) -> list[Plan]:
    """Say what to do with each letter; *before* names those that were replayed, and are left out.

    Unless *anyway*, one that would die again is left out as well, and one that did so after a replay where
    it is not among those that were asked for by *named*.
    Raises `BrokerUnreachable` and `TopicsMissing`.
    """
    wanted = sorted({letter.topic for letter in chosen} & set(inputs(settings)))
    counts = await partition_counts(settings, wanted) if wanted else {}
    off = switched_off(settings)
    plans = [_plan(each, counts, off, done=each.name in before) for each in chosen]
    if anyway:
        return plans
    return await _without_the_vain(settings, [_unless_it_died_again(each, named) for each in plans])


def _unless_it_died_again(plan: Plan, named: Collection[str]) -> Plan:
    letter = plan.letter
    if plan.fate is not Fate.SEND or letter.replay_of is None or letter.name in named:
        return plan
    why = f"it died again after the replay of {letter.replay_of}; name it, or give --anyway, to send it"
    return Plan(letter, Fate.IN_VAIN, why=why)


async def _without_the_vain(settings: Settings, plans: Sequence[Plan]) -> list[Plan]:
    able = [plan.letter for plan in plans if plan.fate is Fate.SEND]
    there: set[str] = set()
    if any(letter.error == _UNKNOWN_PROJECT for letter in able):
        there = {project.project_id for project in (await read_projects(settings)).values}
    made = [letter for letter in able if letter.is_submit]
    judged = []
    for plan in plans:
        why = _why_in_vain(plan.letter, there, made) if plan.fate is Fate.SEND else ""
        judged.append(
            Plan(plan.letter, Fate.IN_VAIN, why=f"{why}; --anyway sends it all the same") if why else plan
        )
    return judged


def _why_in_vain(letter: Letter, there: Collection[str], made: Iterable[Letter]) -> str:
    """Return why workers of this release would refuse the message again; empty where they may take it.

    The projects of *made* come into being in the same replay, which sends them in the order of the letters.
    """
    if letter.unreadable:
        return f"it would be refused again: {letter.unreadable}"
    project = (letter.key or b"").decode(errors="replace")
    if letter.error == _UNKNOWN_PROJECT and project not in there and not _follows(letter, made):
        return f"it would be refused again: there still is no project {project}"
    if letter.error == _GRANT_CONFLICT:
        return "it would be refused again: a grant id is taken for good"
    return ""


def _follows(letter: Letter, made: Iterable[Letter]) -> bool:
    return any(
        each.key == letter.key and each.partition == letter.partition and each.offset < letter.offset
        for each in made
    )


def _plan(letter: Letter, counts: Mapping[str, int], off: Collection[str], *, done: bool) -> Plan:
    """Say where *letter* goes, of the topics in *counts* with so many partitions, unless it is *done*."""
    count = counts.get(letter.topic)
    if done:
        return Plan(letter, Fate.DONE_BEFORE, why="it was replayed before; --again sends it once more")
    if letter.topic in off:
        why = f"no worker with these settings reads {letter.topic}: {SWITCHED_OFF}"
    elif count is None:
        why = f"{letter.topic or 'no topic'} is none that our workers read messages from"
    elif letter.omitted == 0:
        why = "the message had neither key nor value: there is nothing to send"
    elif letter.omitted is not None:
        why = f"its value of {letter.omitted} bytes was too large to be kept: send it anew"
    elif letter.key is not None:
        return Plan(letter, Fate.SEND, partition_of(letter.key, count))
    elif letter.origin_partition is None or letter.origin_partition >= count:
        why = f"it has no key, and {letter.topic} has no partition {letter.origin_partition}"
    else:
        return Plan(letter, Fate.SEND, letter.origin_partition)
    return Plan(letter, Fate.IMPOSSIBLE, why=why)


async def replayed_before(settings: Settings, chosen: Sequence[Letter]) -> set[str]:
    """Return the names of the letters that were sent again, as far as their topics still hold what was sent.

    Reads those topics from the death of the oldest letter on. Raises `BrokerUnreachable`, `TopicsMissing`.
    """
    known = {each.topic: topic for each in chosen if (topic := topic_of_workers(each.topic, settings))}
    # Also where credits are off here: what was sent from where they are on lies there.
    there = await partition_counts(settings, (), if_there=sorted(known)) if known else {}
    if not there:
        return set()
    since = min(letter.died_at for letter in chosen) - _SKEW
    marks: set[str] = set()
    async with Reader(settings, *(known[name] for name in there), since=since) as reader:
        async for record in reader.history():
            marks |= {value.decode(errors="replace") for name, value in record.headers if name == REPLAYED}
    return marks & {letter.name for letter in chosen}


async def replay(settings: Settings, plans: Collection[Plan], report: Report) -> None:
    """Send what *plans* say, one letter after another, none twice, and *report* each when it is certain.

    A letter that its topic does not take is reported and the next one follows. Raises `BrokerUnreachable`.
    """
    open_plans = {plan.letter.name: plan for plan in plans if plan.fate is Fate.SEND}
    producer: AIOKafkaProducer | None = None
    try:
        async with contextlib.aclosing(letters(settings)) as there:
            async for letter in there:
                if not open_plans:
                    break
                plan = open_plans.pop(letter.name, None)
                if plan is None:
                    continue
                producer = producer or await _started(settings)
                if why := await _sent(producer, letter, plan):
                    # A producer that counts its messages cannot go on after one that was refused.
                    await _stop(producer)
                    producer = None
                report(letter.name, why)
    except (KafkaError, TimeoutError, OSError) as exc:
        raise BrokerUnreachable(settings.bootstrap) from exc
    finally:
        if producer is not None:
            await _stop(producer)
    for name in open_plans:
        report(name, "it is not on the topic any more")


async def _sent(producer: AIOKafkaProducer, letter: Letter, plan: Plan) -> str:
    """Send *letter*; return why its topic does not take it, and nothing when the broker has it."""
    headers = [*letter.headers, (REPLAYED, letter.name.encode())]
    try:
        async with asyncio.timeout(4 * ANSWER_SECONDS):
            await producer.send_and_wait(
                letter.topic, letter.value, key=letter.key, partition=plan.partition, headers=headers
            )
    except MessageSizeTooLargeError:
        return f"{letter.topic} does not take a message of {letter.size} bytes"
    return ""


async def _started(settings: Settings) -> AIOKafkaProducer:
    producer = AIOKafkaProducer(
        **client_options(settings),
        enable_idempotence=True,  # a send that the client repeats by itself arrives once
        max_request_size=_LARGEST_REQUEST,
        request_timeout_ms=int(ANSWER_SECONDS * 1000),
    )
    try:
        await asyncio.wait_for(producer.start(), 2 * ANSWER_SECONDS)
    except BaseException:
        await _stop(producer)
        raise
    return producer


async def _stop(producer: AIOKafkaProducer) -> None:
    with contextlib.suppress(KafkaError, TimeoutError):
        await asyncio.wait_for(producer.stop(), ANSWER_SECONDS)
