"""A Docker engine and Compose v2: those of this machine, or our own for as long as the test runs."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

CACHE: Final = Path.home() / ".cache" / "sceneloom" / "compose"
"""What is expensive to make is kept here: Compose, the base image, and our own engine's images."""

_COMPOSE: Final = "v2.40.3"
_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 30.0

Say = Callable[[str], None]


class StackFailed(Exception):
    """The stack is not as it should be, or cannot be brought up; the message says what and why."""


def run(
    command: list[str],
    *,
    seconds: float = 600,
    given: str = "",
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run *command* and return how it ended. Raises `StackFailed` where it takes longer than *seconds*."""
    try:
        return subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            cwd=folder,
            env=environment,
        )
    except subprocess.TimeoutExpired as error:
        raise StackFailed(f"{' '.join(command[:4])} … took longer than {seconds:.0f} s") from error


def must(command: list[str], *, seconds: float = 600, given: str = "", folder: Path | None = None) -> str:
    """Return what *command* printed. Raises `StackFailed` with its last lines where it failed."""
    done = run(command, seconds=seconds, given=given, folder=folder)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise StackFailed(f"{' '.join(command[:6])} … ended with {done.returncode}:\n{last}")
    return done.stdout


def install(packages: dict[str, str]) -> None:
    """Install the Debian package of each program that is missing. Raises `StackFailed` where it cannot."""
    missing = [package for program, package in packages.items() if shutil.which(program) is None]
    if not missing:
        return
    if os.geteuid() or shutil.which("apt-get") is None:
        raise StackFailed(f"install {', '.join(missing)}, or start a Docker engine yourself")
    must(["apt-get", "update", "-qq"])
    must(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing])


@contextmanager
def engine(say: Say) -> Iterator[None]:
    """Have a Docker engine answer: the one that runs already, or our own, which ends at the end."""
    if shutil.which("docker") and run(["docker", "info"], seconds=60).returncode == 0:
        say("using the Docker engine that runs here")
        yield
        return
    install({"dockerd": "docker.io", "iptables": "iptables"})
    # A short path: the name of a socket may have only 107 characters.
    with (
        tempfile.TemporaryDirectory(prefix="loom-") as folder,
        _network_as_before(),
        _own_engine(Path(folder), say),
    ):
        yield


@contextmanager
def _network_as_before() -> Iterator[None]:
    """Take back what an engine does to the network of its machine, and leaves there."""
    rules = must(["iptables-save"])
    try:
        yield
    finally:
        run(["iptables-restore"], given=rules)
        run(["ip", "link", "delete", "docker0"])


@contextmanager
def _own_engine(folder: Path, say: Say) -> Iterator[None]:
    socket, log = f"unix://{folder}/docker.sock", folder / "dockerd.log"
    command = [
        "dockerd",
        "--host",
        socket,
        "--data-root",
        str(CACHE / "engine"),
        "--exec-root",
        f"{folder}/run",
    ]
    with log.open("w") as output:
        daemon = subprocess.Popen(
            [*command, "--pidfile", f"{folder}/pid"], stdout=output, stderr=output, start_new_session=True
        )
    before = os.environ.get("DOCKER_HOST")
    os.environ["DOCKER_HOST"] = socket
    try:
        until = time.monotonic() + _START_SECONDS
        while run(["docker", "info"], seconds=60).returncode:
            if daemon.poll() is not None or time.monotonic() > until:
                last = "\n".join(log.read_text().splitlines()[-8:])
                raise StackFailed(f"no Docker engine starts here:\n{last}")
            time.sleep(0.5)
        say("started a Docker engine of our own, as none ran")
        yield
    finally:
        daemon.terminate()
        try:
            daemon.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
        os.environ.pop("DOCKER_HOST")
        if before is not None:
            os.environ["DOCKER_HOST"] = before
        say("ended that engine")


def compose(say: Say) -> list[str]:
    """Return the command of Compose v2: the plugin, or one that is built from its Go module once."""
    if run(["docker", "compose", "version"], seconds=60).returncode == 0:
        return ["docker", "compose"]
    kept = CACHE / f"docker-compose-{_COMPOSE}"
    if not kept.exists():
        if shutil.which("go") is None:
            raise StackFailed("there is neither Compose v2 (`docker compose`) nor Go to build it with")
        say("building Compose v2 from its Go module (once; some minutes)")
        source = f"github.com/docker/compose/v2@{_COMPOSE}"
        module = json.loads(must(["go", "mod", "download", "-json", source]))["Dir"]
        with tempfile.TemporaryDirectory(prefix="compose-") as folder:
            # `go install` refuses a module with replace lines: build a copy, which can be written.
            copy = Path(folder) / "source"
            must(["cp", "-r", "--no-preserve=mode", module, str(copy)])
            built = Path(folder) / "docker-compose"
            build = ["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", str(built), "./cmd"]
            must(build, seconds=3000, folder=copy)
            keep(built, kept)
    return [str(kept)]


def keep(made: Path, kept: Path) -> None:
    """Move the file *made* to *kept*, whole or not at all."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    arriving = kept.with_suffix(".part")
    shutil.move(made, arriving)
    arriving.rename(kept)
