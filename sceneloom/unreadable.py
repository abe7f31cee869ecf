"""Rows that this release cannot read: they end the worker, and are never taken for missing.

A row that is taken for missing is bought again. A newer release may have written it, or it is damaged.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

from faust.types.tuples import Message

_MOST_NAMED: Final = 5
_ADVICE: Final = (
    "Nothing was bought for it. Start the release that wrote it, or see docs/operations.md,"
    " A row that cannot be read"
)


class RowUnreadable(Exception):
    """There is a row, and this release cannot read it."""


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """Which row it is: `offset` in the changelog, None where it was found on the disk; and what is wrong."""

    table: str
    key: bytes
    partition: int | None
    offset: int | None
    why: str

    def __str__(self) -> str:
        partition = "unknown" if self.partition is None else self.partition
        offset = "on disk since an earlier run" if self.offset is None else f"offset {self.offset}"
        key = self.key.decode(errors="backslashreplace")
        return f"table {self.table}, key {key!r}, partition {partition}, {offset}: {self.why}"


class UnreadableRows:
    """The rows of one table whose latest form, as read from the changelog, cannot be decoded."""

    def __init__(self, table: str, decode: Callable[[bytes], object]) -> None:
        self._table = table
        self._decode = decode
        self._found: dict[bytes, UnreadableRow] = {}

    def check(self, message: Message) -> bool:
        """Tell whether the row in *message* can be read; if not, it is noted until a later form of it can."""
        key, value = message.key or b"", message.value
        try:
            if value is not None:
                self._decode(value)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the row must not vanish
            self._found[key] = UnreadableRow(
                self._table, key, message.partition, message.offset, _in_one_line(error)
            )
            return False
        self._found.pop(key, None)
        return True

    def among(self, partitions: Collection[int]) -> list[UnreadableRow]:
        """Return the rows of *partitions* that cannot be read."""
        return [row for row in self._found.values() if row.partition in partitions]

    def first_of(
        self, rows: Iterable[tuple[bytes, bytes]], partition_of: Callable[[bytes], int | None]
    ) -> str:
        """Tell which of *rows*, pairs of key and bytes in the store, cannot be read."""
        for key, raw in rows:
            try:
                self._decode(raw)
            except Exception as error:  # noqa: BLE001 -- as above
                known = self._found.get(key)
                return told(
                    [known or UnreadableRow(self._table, key, partition_of(key), None, _in_one_line(error))]
                )
        return told([])


def told(rows: Collection[UnreadableRow]) -> str:
    """Return what an operator must know about *rows*."""
    some = "; ".join(str(row) for row in list(rows)[:_MOST_NAMED])
    more = f"; and {len(rows) - _MOST_NAMED} more" if len(rows) > _MOST_NAMED else ""
    return f"a row cannot be read by this release: {some}{more}. {_ADVICE}"


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:500]
