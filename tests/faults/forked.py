"""Workers forked from a process that has imported everything already: a start costs no seconds of Python.

They are processes like any other, with an environment, a log file and signals.
"""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_FORKS: Final = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["__main__", "tests.faults.worker"])


class ForkedWorker:
    """One worker, with what its users need of `subprocess.Popen`."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        log.touch()
        self._process = _FORKS.Process(target=_work, args=(dict(environment), log))
        self._process.start()
        self.pid = int(self._process.pid or 0)

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while the worker runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code. Raises `subprocess.TimeoutExpired`."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("a forked worker", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal; nothing happens to a worker that has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End the worker as kill -9 does."""
        self.send_signal(signal.SIGKILL)


def _work(environment: Mapping[str, str], log: Path) -> None:
    from tests.faults import worker  # noqa: PLC0415 -- only in the child; its parent has imported it

    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    random.seed()
    sys.exit(worker.main())
