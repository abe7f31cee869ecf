"""The latest order of each project to another company's ledger."""

from collections.abc import Collection, Iterator
from typing import Any, cast

from models.errands import Errand
from sceneloom.topics import partition_of


class ErrandTable:
    """A `models.ports.ErrandStore` on a changelogged Faust table, partitioned by user."""

    def __init__(self, table: Any, *, partitions: int) -> None:
        self._table = table
        self._partitions = partitions

    def get(self, user_id: str, project_id: str, /) -> Errand | None:
        """Return the latest errand of the project, or None where there is none."""
        return cast("Errand | None", self._table.get(_key(user_id, project_id)))

    def put(self, errand: Errand, /) -> None:
        """Keep *errand* as the latest of its project; only while handling a message of its user."""
        self._table[_key(errand.user_id, errand.project_id)] = errand

    def unanswered(self, partitions: Collection[int], /) -> Iterator[Errand]:
        """Return the errands of *partitions* that the ledger has not answered yet.

        A memory table also shows rows of partitions that have moved away, so each row's own is looked at.
        """
        for errand in cast("list[Errand]", list(self._table.values())):
            if errand.answer is None and partition_of(errand.user_id, self._partitions) in partitions:
                yield errand


def _key(user_id: str, project_id: str) -> bytes:
    return f"{user_id}\n{project_id}".encode()
