"""The stack as the test sees it: brought up, asked, hurt, and taken down."""

import json
import os
import re
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.compose.engine import StackFailed, must, run
from tests.compose.images import ROOT

_FILES: Final = ("docker-compose.yml", "tests/compose/overlay.yml")
_KEPT: Final = re.compile("PATH|HOME|DOCKER_.*")
_ASK: Final = """
import json, sys, urllib.request
print(json.dumps([urllib.request.urlopen(url, timeout=30).read().decode() for url in sys.argv[1:]]))
"""
"""Run inside the stack, as only gateway and Grafana are published."""


class Stack:
    """One stack under a name of its own, with *images* for the variables of docker-compose.yml."""

    def __init__(self, compose: list[str], images: Mapping[str, str]) -> None:
        self.name: Final = f"sceneloom-test-{uuid.uuid4().hex[:6]}"
        self.gateway_port: Final = _free_port()
        # Neither a shell nor a .env may have a say: they could hold the keys of real providers.
        kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
        own = {"APP_IMAGE": f"{self.name}:local", "GATEWAY_PORT": self.gateway_port}
        environment = [f"{name}={value}" for name, value in {**kept, **images, **own}.items()]
        files = [part for file in _FILES for part in ("--file", file)]
        options = ["--project-name", self.name, "--env-file", os.devnull, *files]
        self._compose = ["env", "--ignore-environment", *environment, *compose, *options]

    def compose(self, *words: str, seconds: float = 600) -> str:
        """Return what Compose printed. Raises `StackFailed`."""
        return must([*self._compose, *words], seconds=seconds, folder=ROOT)

    def inside(self, service: str, *command: str, given: str = "", seconds: float = 300) -> str:
        """Return what *command* printed in the container of *service*. Raises `StackFailed`."""
        words = ["exec", "-T", service, *command]
        return must([*self._compose, *words], given=given, seconds=seconds, folder=ROOT)

    def kill(self, service: str) -> None:
        """Kill every process of *service*, as a machine without memory would: Docker is not asked."""
        words = ["exec", "-T", service, "sh", "-c", "kill -9 -1"]
        run([*self._compose, *words], folder=ROOT)

    def ask(self, *urls: str) -> list[str]:
        """Return what stands at each of *urls*, as seen from inside the stack."""
        answers: list[str] = json.loads(self.inside("gateway", "python", "-c", _ASK, *urls))
        return answers

    def containers(self) -> dict[str, dict[str, Any]]:
        """Return how each service stands, also of those that have ended: `State`, `Health`, `ExitCode`."""
        lines = self.compose("ps", "--all", "--format", "json").splitlines()
        return {each["Service"]: each for each in map(json.loads, lines)}

    def inspect(self, service: str, what: str) -> str:
        """Return a field of the container of *service*, as Docker's template *what* names it."""
        return must(["docker", "inspect", "--format", what, self.containers()[service]["ID"]]).strip()

    def healthy(self, *services: str) -> bool:
        """Tell whether all of *services* are healthy."""
        found = self.containers()
        return all(name in found and found[name]["Health"] == "healthy" for name in services)

    def logs(self, lines: int, *services: str) -> str:
        """Return the last *lines* of the container of each of *services*, or of every container."""
        return self.compose("logs", "--no-color", "--tail", str(lines), *services)

    def remove(self) -> list[str]:
        """Take everything down, and return what is left of it, which should be nothing."""
        run([*self._compose, "down", "--volumes", "--remove-orphans"], folder=ROOT)
        run(["docker", "image", "rm", f"{self.name}:local"])
        mine = ["--filter", f"label=com.docker.compose.project={self.name}", "--quiet"]
        left = []
        for kind, listing in (
            ("container", ["ps", "--all"]),
            ("volume", ["volume", "ls"]),
            ("network", ["network", "ls"]),
        ):
            left += [f"{kind} {name}" for name in must(["docker", *listing, *mine]).split()]
        return left


def until(done: Callable[[], bool], what: str, *, seconds: float, every: float = 2.0) -> float:
    """Wait until *done*, and return how long it took. Raises `StackFailed` naming *what* after *seconds*."""
    begun = time.monotonic()
    while not done():
        if time.monotonic() - begun > seconds:
            raise StackFailed(f"after {seconds:.0f} s still not: {what}")
        time.sleep(every)
    return time.monotonic() - begun


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
