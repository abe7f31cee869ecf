"""A table whose changes are watched until they are safe, and whose copy on disk is mended when damaged."""

import asyncio
import logging
import shutil
from collections.abc import Callable, Iterable
from typing import Any, Final

import faust
from faust.stores import rocksdb
from faust.types import TP, EventT, StoreT
from faust.types.tuples import FutureMessage, Message
from yarl import URL

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


class DurableTable(faust.Table):  # type: ignore[type-arg]  # faust.Table is not subscriptable at run time
    """A table whose every change is watched until the broker has acknowledged it."""

    watch: Callable[[asyncio.Future[Any], str], None]
    broken: Callable[[str, BaseException], None]
    version_of: Callable[[bytes], int] | None = None
    recoveries: int = 0
    """How often rows were read from the changelog, which nobody wrote here."""
    _versions: dict[bytes, int] | None = None

    def apply_changelog_batch(self, batch: Iterable[EventT[Any]]) -> None:
        """Recover rows, but none that is older than one before it: a worker that woke too late wrote that."""
        try:
            super().apply_changelog_batch([event for event in batch if self._is_newest(event.message)])
        except Exception as exc:
            # Faust only logs it, and goes on with a table that lacks these rows.
            self.broken(f"rows of the table {self.name} could not be kept: {exc}", exc)
            raise

    def _new_store_by_url(self, url: str | URL) -> StoreT[Any, Any]:
        if URL(url).scheme == "rocksdb":
            kinds = {name: getattr(self, name) for name in _KINDS}
            return MendedStore(url, self.app, self, table_name=self.name, options=self.options, **kinds)
        return super()._new_store_by_url(url)

    def _is_newest(self, message: Message) -> bool:
        if self.version_of is None or message.key is None or message.value is None:
            return True
        if self._versions is None:
            self._versions = {}
        version = self.version_of(message.value)
        if version < self._versions.get(message.key, version):
            place = message.topic, message.partition, message.offset
            _log.warning("%s[%d] offset %d is older than a row before it: left out", *place)
            return False
        self._versions[message.key] = version
        return True

    async def on_recovery_completed(self, active_tps: set[TP], standby_tps: set[TP]) -> None:
        """Forget what only recovery needs."""
        self._versions = None
        self.recoveries += 1
        await super().on_recovery_completed(active_tps, standby_tps)

    def send_changelog(self, *args: Any, **options: Any) -> FutureMessage:
        """Send one change to the changelog topic."""
        future = super().send_changelog(*args, **options)
        self.watch(future, self.changelog_topic_name)
        return future
