"""Tests that need a real Kafka, run on one that testcontainers starts."""

import os
import sys
from typing import Final

from tests.compose.engine import Say, StackFailed, must, run
from tests.compose.images import ROOT

_TESTS: Final = ("tests/monitoring/test_group.py", "tests/test_topic_admin.py")
_SECONDS: Final = 900
_REAPER: Final = "testcontainers/ryuk"
_MINE: Final = ("ps", "--all", "--quiet", "--filter", "label=org.testcontainers=true")


def run_kafka_tests(image: str, say: Say) -> None:
    """Run some tests on *image* by way of tests/kafka_container.py. Raises `StackFailed`."""
    before = must(["docker", *_MINE]).split()
    chosen = {"SCENELOOM_KAFKA_IMAGE": image, "CI": "1"}
    if not must(["docker", "images", "--quiet", _REAPER]).strip():
        # What tidies up after a killed session is an image, too, and may not be to be had.
        chosen["TESTCONTAINERS_RYUK_DISABLED"] = "true"
    command = [sys.executable, "-m", "pytest", "-q", "-m", "kafka", *_TESTS]
    environment = {name: text for name, text in os.environ.items() if not name.startswith("SCENELOOM_")}
    done = run(command, seconds=_SECONDS, folder=ROOT, environment=environment | chosen)
    last = done.stdout.strip().splitlines()
    if done.returncode:
        told = "\n".join(last[-25:])
        raise StackFailed(f"tests on {image} in a container of testcontainers fail:\n{told}")
    left = [each for each in must(["docker", *_MINE]).split() if each not in before]
    if left:
        raise StackFailed(f"testcontainers left behind: {', '.join(left)}")
    say(f"tests on {image} in a container of testcontainers: {last[-1].strip(' =')}")
