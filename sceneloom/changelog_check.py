"""Whether the changelogs hold all rows that were noted: asked before a table is read from them."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import faust
from faust.transport.consumer import ensure_TP
from faust.types import TP

from sceneloom.changelog_notes import ChangelogNotes
from sceneloom.consumer_thread import SafeConsumerThread

_MORE_LOOKS: Final = 2
"""How often a changelog is looked at again before it counts as one that lost rows."""
_LOOK_SECONDS: Final = 2.0
_WHAT_TO_DO: Final = (
    'restore the topic from a backup; docs/operations.md, "A changelog lost rows", says what else can be done'
)


async def lost_rows(
    app: faust.App, broker: SafeConsumerThread, notes: ChangelogNotes, changelogs: Sequence[TP]
) -> str:
    """Return what *changelogs* have lost and what to do; empty where they hold all that they must hold."""
    losses = await _losses(app, broker, notes, changelogs)
    for _ in range(_MORE_LOOKS):
        if losses:  # a leader that is new may not know yet what its followers have
            await asyncio.sleep(_LOOK_SECONDS)
            losses = await _losses(app, broker, notes, changelogs)
    return f"{'; '.join(losses)}; {_WHAT_TO_DO}" if losses else ""


async def _losses(
    app: faust.App, broker: SafeConsumerThread, notes: ChangelogNotes, changelogs: Sequence[TP]
) -> list[str]:
    partitions = sorted({tp.partition for tp in changelogs})
    sources = [TP(topic, n) for topic in sorted(app.topics.acking_topics) for n in partitions]
    # The notes first: another worker may write a row, and note it, while we ask.
    commits = await broker.commits(sources)
    notes.learn((tp.partition, commit.metadata) for tp, commit in commits.items())
    begins, ends = await broker.earliest_offsets(*changelogs), await broker.highwaters(*changelogs)
    tables: dict[str, Any] = {table.changelog_topic_name: table for table in app.tables.values()}
    on_disk = {tp: tables[tp.topic].persisted_offset(tp) for tp in changelogs}
    return notes.losses(
        {ensure_TP(tp): offset for tp, offset in begins.items()},
        {ensure_TP(tp): offset for tp, offset in ends.items()},
        {tp: offset for tp, offset in on_disk.items() if offset is not None},
    )
