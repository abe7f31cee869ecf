"""A table whose changes are watched until they are safe, and whose copy on disk is mended when damaged."""

import asyncio
import logging
import shutil
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import faust
from faust.exceptions import ValueDecodeError
from faust.stores import rocksdb
from faust.stores.base import SerializedStore
from faust.tables import TableManager
from faust.types import TP, EventT, StoreT
from faust.types.tuples import FutureMessage, Message

from sceneloom.unreadable import RowUnreadable, UnreadableRows, told

_log = logging.getLogger(__name__)

_DAMAGE: Final = ("Corruption", "No such file")
"""What RocksDB says of files that are damaged or missing, and not of a full disk."""
_KINDS: Final = ("key_type", "key_serializer", "value_type", "value_serializer", "loop")


class MendedStore(rocksdb.Store):
    """A RocksDB store that is emptied, and so read from its changelog anew, where its files are damaged."""

    def _open_for_partition(self, partition: int) -> Any:
        try:
            return super()._open_for_partition(partition)
        except Exception as error:
            path = self.partition_path(partition)
            if not path.exists() or not any(word in str(error) for word in _DAMAGE):
                raise
            _log.warning("%s is damaged, and read from its changelog anew: %s", path.name, error)
            shutil.rmtree(path)
            return super()._open_for_partition(partition)


class DeclaredTables(TableManager):
    """The tables of an app that were all declared before it started: Faust waits a second for more."""

    async def on_start(self) -> None:
        """Open the tables at once."""
        if not self.should_stop:
            await self._update_channels()
            await self.recovery.start()


class DurableTable(faust.Table):  # type: ignore[type-arg]  # faust.Table is not subscriptable at run time
    """A table whose every change is watched until the broker has acknowledged it.

    A row that cannot be read ends the worker: Faust leaves it out with a warning, and it would be missing.
    """

    watch: Callable[[asyncio.Future[Any], str], None]
    broken: Callable[[str, BaseException | None], None]
    version_of: Callable[[bytes], int] | None = None
    recoveries: int = 0
    """How often rows were read from the changelog, which nobody wrote here."""
    _unreadable: UnreadableRows | None = None

    @property
    def unreadable(self) -> UnreadableRows:
        """The rows that were read from the changelog and cannot be decoded."""
        if self._unreadable is None:
            self._unreadable = UnreadableRows(self.name, self._decoded)
        return self._unreadable

    def apply_changelog_batch(self, batch: Iterable[EventT[Any]]) -> None:
        """Recover rows, but none that is older than one before it: a worker that woke too late wrote that."""
        try:
            seen: dict[bytes, int] = {}
            super().apply_changelog_batch([event for event in batch if self._is_wanted(event.message, seen)])
        except Exception as exc:
            # Faust only logs it, and goes on with a table that lacks these rows.
            self.broken(f"rows of the table {self.name} could not be kept: {exc}", exc)
            raise

    def _new_store_by_url(self, url: Any) -> StoreT[Any, Any]:
        if str(url).startswith("rocksdb:"):
            kinds = {name: getattr(self, name) for name in _KINDS}
            return MendedStore(url, self.app, self, table_name=self.name, options=self.options, **kinds)
        return super()._new_store_by_url(url)

    def _is_wanted(self, message: Message, seen: dict[bytes, int]) -> bool:
        if not self._is_newest(message, seen):
            return False
        # On the disk it takes the place of an older form, so that the next start finds it too.
        return self.unreadable.check(message) or self._keeps_bytes

    def _is_newest(self, message: Message, seen: dict[bytes, int]) -> bool:
        """Compare with the rows before it in the batch, and with the one in the table or its warm copy."""
        if self.version_of is None or message.key is None or message.value is None:
            return True
        version = self._version_in(message.value)
        if version is None:
            return True  # it is damaged, which is told below
        before = seen.get(message.key)
        if before is None:
            before = self._stored_version(message)
        if before is not None and version < before:
            place = message.topic, message.partition, message.offset
            _log.warning("%s[%d] offset %d is older than a row before it: left out", *place)
            return False
        seen[message.key] = version
        return True

    def _version_in(self, raw: bytes) -> int | None:
        try:
            return self.version_of(raw) if self.version_of is not None else None
        except (ValueError, TypeError, KeyError):
            return None

    def _stored_version(self, message: Message) -> int | None:
        store: Any = self.data
        if self._keeps_bytes:
            raw = store._db_for_partition(message.partition).get(message.key)  # noqa: SLF001 -- by partition, as rows arrive
            return None if raw is None else self._version_in(raw)
        return getattr(store.get(message.key), "version", None)

    async def on_recovery_completed(self, active_tps: set[TP], standby_tps: set[TP]) -> None:
        """End the worker where an active partition has an unreadable row."""
        self.recoveries += 1
        found = self.unreadable.among({tp.partition for tp in active_tps})
        if found:
            self.broken(told(found), None)
            await asyncio.Event().wait()  # no stream begins before this returns
        await super().on_recovery_completed(active_tps, standby_tps)

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except ValueDecodeError:
            raise RowUnreadable(self._told_of([(key, self.data._get(key))])) from None  # type: ignore[attr-defined]  # noqa: SLF001 -- only stores of bytes raise this

    def values(self) -> Any:
        """Return all rows. Raises `RowUnreadable`, which names the first one that is."""
        try:
            return list(super().values())
        except ValueDecodeError:
            raise RowUnreadable(self._told_of(self.data._iteritems())) from None  # type: ignore[attr-defined]  # noqa: SLF001 -- as above

    def _told_of(self, rows: Iterable[tuple[bytes, bytes]]) -> str:
        stores: Mapping[int, Any] = getattr(self.data, "_dbs", {})

        def partition_of(key: bytes) -> int | None:
            return next((partition for partition, rows in list(stores.items()) if key in rows), None)

        return self.unreadable.first_of(rows, partition_of)

    @property
    def _keeps_bytes(self) -> bool:
        return isinstance(self.data, SerializedStore)

    def _decoded(self, raw: bytes | None) -> Any:
        return self.app.serializers.loads_value(self.value_type, raw, serializer=self.value_serializer)

    def _to_value(self, v: Any) -> Any:
        return self._decoded(v)

    def _new_changelog_topic(self, **_: Any) -> Any:
        """Have rows arrive as bytes: Faust leaves out a message that its topic cannot decode."""
        return self.app.topic(
            self._changelog_topic_name(),
            key_type=self.key_type,
            key_serializer=self.key_serializer,
            value_type=bytes,
            value_serializer="raw",
            partitions=self.partitions,
            compacting=True,
            acks=False,
            internal=True,
            maxsize=131_072,
            allow_empty=True,
        )

    def send_changelog(self, *args: Any, **options: Any) -> FutureMessage:
        """Send one change to the changelog topic."""
        options.setdefault("value_serializer", self.value_serializer or self.app.conf.value_serializer)
        future = super().send_changelog(*args, **options)
        self.watch(future, self.changelog_topic_name)
        return future
