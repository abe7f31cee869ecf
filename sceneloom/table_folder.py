"""The tables on disk: a copy of the changelogs, used again only where it is sure to be one.

A worker that was killed may have left rows on its disk that never came to the changelog. They would count for
this worker alone, and be missing wherever the partition goes next. So what a worker left behind is used again
only if it ended in good order, and is read from the changelogs anew otherwise, as after damage of any kind.
"""

import fcntl
import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

import faust
from mode import Service

from sceneloom.delivery import Delivery

_log = logging.getLogger(__name__)

_GOOD_ORDER: Final = "left-in-good-order"
_LOCK: Final = "in-use"


class TablesInUse(Exception):
    """Another worker keeps its tables in the same folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"another worker keeps its tables in {folder}: give each its own SCENELOOM_DATA_FOLDER "
            "(--data-folder), or end the other one first"
        )


class FolderUnusable(Exception):
    """A worker cannot write where it shall keep its tables."""

    def __init__(self, folder: Path, error: OSError) -> None:
        super().__init__(
            f"SCENELOOM_DATA_FOLDER: {folder} cannot be written: {error.strerror}; choose another, make "
            "room, or let the user of the worker write there"
        )


def require_own(folder: Path) -> None:
    """Raise `TablesInUse` or `FolderUnusable` where a worker could not keep its tables in *folder*."""
    os.close(_taken(folder))


def require_writable(folder: Path) -> None:
    """Make *folder*. Raises `FolderUnusable` where it cannot be made or written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise FolderUnusable(folder, error) from error


def _taken(folder: Path) -> int:
    """Return the lock on *folder*, held until it is closed."""
    require_writable(folder)
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise FolderUnusable(folder, error) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise TablesInUse(folder) from None
    return lock


class TableFolder(Service):
    """Keeps the folder of the tables of *app* to one worker, and knows whether it may be used again.

    The first of the app's dependencies, so that it ends last.
    """

    def __init__(self, app: faust.App, *, delivery: Delivery) -> None:
        super().__init__()
        self._app = app
        self._delivery = delivery
        self._lock: int | None = None

    @property
    def _folder(self) -> Path:
        return Path(self._app.conf.tabledir)

    async def on_start(self) -> None:
        """Take the folder, before any table is opened, and empty it if its last worker did not end well."""
        trouble = ""
        try:
            self._lock = _taken(self._folder)
            self._empty_unless_left_well()
        except (OSError, TablesInUse, FolderUnusable) as error:
            trouble = f"the tables on disk cannot be used: {error}"
        if trouble:  # out here, so that no traceback hides the line
            await self._delivery.fail(trouble)

    async def on_shutdown(self) -> None:
        """Say that the folder may be used again, if that is so, and let it go."""
        if self._lock is None:
            return
        if self._delivery.is_in_good_order:
            (self._folder / _GOOD_ORDER).touch()
        os.close(self._lock)
        self._lock = None

    def _empty_unless_left_well(self) -> None:
        mark = self._folder / _GOOD_ORDER
        was_left_well = mark.exists()
        mark.unlink(missing_ok=True)  # from now on it is not, until the end
        old = sorted(self._folder.glob("*.db"))
        if old and not was_left_well:
            _log.warning(
                "the last worker did not end in good order: its tables are read from the changelogs anew"
            )
            for path in old:
                shutil.rmtree(path)
