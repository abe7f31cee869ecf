"""Rows that changelogs have lost: found by the notes on the commits, and accepted by a person."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import CommitFailedError, KafkaError
from aiokafka.structs import OffsetAndMetadata
from faust.types import TP

from sceneloom.changelog_notes import ChangelogNotes
from sceneloom.kafka_access import ANSWER_SECONDS, client_options
from sceneloom.operations.rereading import READ_BY_WORKERS
from sceneloom.settings import Settings
from sceneloom.topic_admin import BrokerUnreachable, partition_counts
from sceneloom.topics import TABLES, app_name, changelog_name, topic_name, topic_specs


class WorkersRun(Exception):
    """Workers are in the group, so that its commits cannot be changed."""

    def __init__(self) -> None:
        super().__init__(
            "workers are running, or were a moment ago, and would note what they know: "
            "end all of them, and try again after SCENELOOM_SESSION_SECONDS"
        )


async def find_losses(settings: Settings) -> list[str]:
    """Return a line for each partition of a changelog that has lost rows.

    Raises `BrokerUnreachable` and `TopicsMissing`.
    """
    return await _looked_at(settings, accept=False)


async def accept_losses(settings: Settings) -> list[str]:
    """Note what the changelogs hold now as all that they must hold, and return what is lost thereby.

    Where a worker reads on stays as it is. Raises `WorkersRun`, `BrokerUnreachable` and `TopicsMissing`.
    """
    return await _looked_at(settings, accept=True)


async def _looked_at(settings: Settings, *, accept: bool) -> list[str]:
    wanted = {spec.name for spec in topic_specs(settings)}
    sources = {topic_name(settings, topic) for topic in READ_BY_WORKERS}
    changelogs = {changelog_name(settings, table) for table in TABLES}
    # What the workers have is looked at, also what they have by settings that are not set here.
    ours = sources | changelogs
    counts = await partition_counts(settings, sorted(ours & wanted), if_there=sorted(ours - wanted))
    consumer = AIOKafkaConsumer(
        **client_options(settings),
        group_id=app_name(settings),
        enable_auto_commit=False,
        request_timeout_ms=int(ANSWER_SECONDS * 1000),
    )
    try:
        async with asyncio.timeout(6 * ANSWER_SECONDS), consumer:
            return await _compared(consumer, _all(sources, counts), _all(changelogs, counts), accept=accept)
    except CommitFailedError as exc:
        raise WorkersRun from exc
    except (KafkaError, TimeoutError, OSError) as exc:
        raise BrokerUnreachable(settings.bootstrap) from exc


def _all(topics: Collection[str], counts: Mapping[str, int]) -> list[TP]:
    return [TP(topic, n) for topic in sorted(topics) for n in range(counts.get(topic, 0))]


async def _compared(
    consumer: AIOKafkaConsumer, sources: Collection[TP], changelogs: Collection[TP], *, accept: bool
) -> list[str]:
    consumer.assign(sources)
    coordinator = consumer._coordinator  # noqa: SLF001 -- the public method keeps the offset only
    commits: Mapping[TP, OffsetAndMetadata] = await coordinator.fetch_committed_offsets(sources)
    begins, ends = await consumer.beginning_offsets(changelogs), await consumer.end_offsets(changelogs)
    earliest = await consumer.beginning_offsets(sources)
    by_partition: dict[int, list[TP]] = defaultdict(list)
    for tp in changelogs:
        by_partition[tp.partition].append(tp)
    losses: list[str] = []
    anew: dict[TopicPartition, OffsetAndMetadata] = {}
    for partition, tables in by_partition.items():
        notes = ChangelogNotes()
        notes.learn(
            (tp.partition, commit.metadata) for tp, commit in commits.items() if tp.partition == partition
        )
        found = notes.losses({tp: begins[tp] for tp in tables}, {tp: ends[tp] for tp in tables}, {})
        if not found:
            continue
        losses += found
        note = notes.accept({tp: begins[tp] for tp in tables}, {tp: ends[tp] for tp in tables}).note(
            partition
        )
        for tp in sources:
            if tp.partition == partition:
                offset = commits[tp].offset if tp in commits else earliest[tp]
                anew[TopicPartition(*tp)] = OffsetAndMetadata(offset, note)
    if accept and anew:
        await consumer.commit(anew)
    return losses
