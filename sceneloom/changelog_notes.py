"""What the changelogs must hold: noted with every commit, and compared before a table is read from them.

A changelog that was truncated, emptied or made anew looks like a table that never had those rows, so that all
they stood for would be done, and paid for, again. Therefore each commit of a partition carries, as Kafka's
metadata of that commit, where its changelogs begin and which row the broker has acknowledged last.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Self

import orjson
from faust.types import TP

LONGEST_NOTE: Final = 4096
"""Bytes that a broker takes as the metadata of one commit, unless it is told otherwise."""


class Extent(NamedTuple):
    """What a changelog must hold at least."""

    begin: int
    """Where it may begin: 0, as a compacted topic loses no record, unless a person has accepted a loss."""
    last: int
    """The highest offset that the broker has acknowledged; -1 where there is none."""


_NOTHING: Final = Extent(0, -1)


class ChangelogNotes:
    """Keeps what is known of the changelogs of one app."""

    def __init__(self) -> None:
        self._known: dict[TP, Extent] = {}

    def acknowledged(self, tp: TP, offset: int) -> None:
        """Note that the broker has the row at *offset* of the changelog *tp*."""
        known = self._known.get(tp, _NOTHING)
        if offset > known.last:
            self._known[tp] = known._replace(last=offset)

    def note(self, partition: int, topic_id: str | None = None) -> str:
        """Return what a commit of *partition* says about its changelogs, and of which topic it is one.

        Empty where nothing is known.
        """
        known = {tp.topic: at for tp, at in self._known.items() if tp.partition == partition}
        return write_note(known, topic_id)

    def learn(self, notes: Iterable[tuple[int, str]]) -> None:
        """Take up the notes that were found on commits, each with its partition."""
        for partition, note in notes:
            for topic, found in read_note(note).items():
                tp = TP(topic, partition)
                known = self._known.get(tp, _NOTHING)
                self._known[tp] = Extent(max(found.begin, known.begin), max(found.last, known.last))

    def losses(
        self,
        begins: Mapping[TP, int],
        ends: Mapping[TP, int],
        on_disk: Mapping[TP, int],
    ) -> list[str]:
        """Compare with the changelogs as they are, and say which have lost rows; if none has, they are noted.

        *on_disk* is the offset up to which the table on the disk of this worker has rows.
        """
        found = [
            line for tp in sorted(ends) if (line := self._loss(tp, begins[tp], ends[tp], on_disk.get(tp)))
        ]
        if not found:
            self.accept(begins, ends)
        return found

    def accept(self, begins: Mapping[TP, int], ends: Mapping[TP, int]) -> Self:
        """Note the changelogs as they are; whatever they held before is no longer asked for."""
        self._known.update({tp: Extent(begins[tp], end - 1) for tp, end in ends.items()})
        return self

    def _loss(self, tp: TP, begin: int, end: int, on_disk: int | None) -> str | None:
        known = self._known.get(tp, _NOTHING)
        where = f"the changelog {tp.topic}[{tp.partition}] has lost rows: it "
        if known.last >= end:
            return f"{where}ends at offset {end}, though a row at offset {known.last} was acknowledged"
        if begin > known.begin:
            return (
                f"{where}begins at offset {begin} instead of {known.begin}, though nothing ever deletes there"
            )
        if on_disk is not None and on_disk >= end:
            return f"{where}ends at offset {end}, though the table on disk has rows to offset {on_disk}"
        return None


def write_note(extents: Mapping[str, Extent], topic_id: str | None = None) -> str:
    """Return *extents*, by changelog topic, and the id of the topic, as the metadata of a commit."""
    note = {"changelogs": {topic: list(at) for topic, at in extents.items()}} if extents else {}
    told = note | ({"topic": topic_id} if topic_id else {})
    return orjson.dumps(told).decode() if told else ""


def noted_id(note: str | None) -> str | None:
    """Return the id of the topic that was committed, None where the note does not tell."""
    try:
        return str(orjson.loads(note or "null")["topic"])
    except (ValueError, TypeError, KeyError):
        return None


def read_note(note: str | None) -> dict[str, Extent]:
    """Return the extents by changelog topic; none from a commit of somebody who notes nothing or else."""
    try:
        changelogs = orjson.loads(note or "null")["changelogs"]
        return {str(topic): Extent(int(begin), int(last)) for topic, (begin, last) in changelogs.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
