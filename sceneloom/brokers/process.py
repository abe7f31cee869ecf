"""A broker's process: started on a leash, asked until it answers, ended for certain."""

import asyncio
import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from sceneloom import leash
from sceneloom.brokers import BrokerUnavailable

HOST: Final = "127.0.0.1"
_LEASH: Final = Path(leash.__file__)
_METADATA: Final = 3


class Startable:
    """Makes a broker a context manager, blocking or asynchronous."""

    def start(self) -> None:
        """Return when the broker answers. Raises `BrokerUnavailable`."""
        raise NotImplementedError

    def stop(self) -> None:
        """Return when the broker has ended."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)


class BrokerProcess:
    """One running broker in a process group of its own, with its output in a log file."""

    def __init__(self, command: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(_LEASH), *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if env is None else {**os.environ, **env},
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        """Whether the broker runs."""
        return self._process.poll() is None

    def last_lines(self, count: int = 8) -> str:
        """Return the end of the log."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-count:])

    def wait_ready(self, port: int, *, brokers: int, seconds: float) -> None:
        """Wait until *port* names *brokers* live brokers. Raises `BrokerUnavailable`."""
        deadline = time.monotonic() + seconds
        while live_brokers(port) < brokers:
            if not self.alive:
                raise BrokerUnavailable(
                    f"the broker ended at start; {self._log} ends with:\n{self.last_lines()}"
                )
            if time.monotonic() > deadline:
                raise BrokerUnavailable(
                    f"the broker on port {port} does not answer after {seconds:.0f} s; "
                    f"{self._log} ends with:\n{self.last_lines()}"
                )
            time.sleep(0.05)

    def wait_ended(self, *, seconds: float) -> int | None:
        """Wait until the process ends and return its exit code; None if it was killed after *seconds*."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None
        finally:
            self._let_go()

    def signal(self, number: int) -> None:
        """Send a signal to the broker, stopped or not; nothing happens to one that has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def end(self, *, seconds: float) -> None:
        """Ask the broker to end with SIGTERM, and kill it when it has not after *seconds*."""
        if self.alive:
            self.signal(signal.SIGTERM)
        self.wait_ended(seconds=seconds)

    def kill(self) -> None:
        """End the broker with SIGKILL."""
        self._let_go()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:  # the leash itself is stopped or slow
            self.signal(signal.SIGKILL)
            self._process.wait()

    def _let_go(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()


def free_ports(count: int) -> list[int]:
    """Return *count* different ports on loopback that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]


def require_free(port: int) -> None:
    """Raise `BrokerUnavailable` if somebody listens on *port*."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as exc:
            raise BrokerUnavailable(
                f"port {port} is taken: choose another, or end what listens there"
            ) from exc


def live_brokers(port: int) -> int:
    """Ask *port* with a Kafka Metadata request (version 1) how many brokers it knows; 0 for no answer."""
    client = b"sceneloom"
    request = struct.pack(">hhih", _METADATA, 1, 1, len(client)) + client + struct.pack(">i", 0)
    try:
        with socket.create_connection((HOST, port), timeout=1) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            with connection.makefile("rb") as answer:
                (size,) = struct.unpack(">i", answer.read(4))
                _correlation, brokers = struct.unpack(">ii", answer.read(size)[:8])
                return int(brokers)
    except (OSError, struct.error):
        return 0
