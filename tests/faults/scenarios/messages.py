"""Messages that lie: twice, in any order, a week old, or no messages at all."""

import time
from collections.abc import Sequence

from aiokafka import AIOKafkaProducer, ConsumerRecord

from sceneloom.topics import (
    JOB_EVENTS,
    PROJECT_REQUESTS,
    SCENE_REQUESTS,
    SCENE_RESULTS,
    partition_of,
    topic_name,
)
from tests.faults.arena import Arena
from tests.faults.scenario import scenario
from tests.faults.scenarios.ground import nothing_more
from tests.poison import POISON

_TOPICS = (PROJECT_REQUESTS, SCENE_REQUESTS, JOB_EVENTS, SCENE_RESULTS)
_WEEK_MS = 7 * 24 * 3600 * 1000


@scenario(14, "events twice, in any order, a week old", runs=2, without="projects that ended are remembered")
async def again(arena: Arena) -> None:
    """Send every message of finished projects twice more, shuffled, with last week's timestamps."""
    arena.keep("only")
    await arena.placed(0)
    names = [f"p{number}" for number in range(3)]
    await arena.order(names, clips=2)
    await arena.ended(names)
    messages = [(topic, record) for topic in _TOPICS for record in await arena.records(topic)] * 2
    arena.random.shuffle(messages)
    await _send_as_old(arena, messages)
    await arena.order(["after"])  # its partition has seen all of them by then
    await arena.ended(["after"])
    await nothing_more(arena, names)
    arena.figures["messages_again"] = len(messages)


async def _send_as_old(arena: Arena, messages: Sequence[tuple[str, ConsumerRecord]]) -> None:
    last_week = int(time.time() * 1000) - _WEEK_MS  # noqa: TID251 -- Kafka's timestamp, of no run of ours
    producer = AIOKafkaProducer(bootstrap_servers=arena.settings.bootstrap, acks="all")
    async with producer:
        for topic, record in messages:
            await producer.send_and_wait(
                topic_name(arena.settings, topic), record.value, key=record.key, timestamp_ms=last_week
            )


@scenario(
    15,
    "poison: no JSON, 2 MB, unknown types, wrong keys, tombstones",
    without="what cannot be read is a dead letter",
)
async def poison(arena: Arena) -> None:
    """Put poison between the messages of every topic; each is a dead letter, and the partitions go on."""
    arena.keep("only")
    await arena.placed(0)
    partitions = arena.settings.partitions
    spread = {partition_of(f"p{n}", partitions): f"p{n}" for n in range(50)}
    for topic in _TOPICS:
        await arena.send_all(POISON, topic)
    await arena.order(spread.values())
    await arena.ended(list(spread.values()))
    arena.expected_letters = len(POISON) * len(_TOPICS)
    await arena.reach(
        lambda: len(arena.witness.letters) >= arena.expected_letters, "all poison is in the dead letters"
    )
