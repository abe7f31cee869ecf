import os
import sys

import pytest

pytest_plugins = ["tests.kafka_fixtures"]


def pytest_configure(config: pytest.Config) -> None:
    """Let the programs that tests start keep their bytecode: a worker compiles for a second without."""
    if sys.dont_write_bytecode and (cache := getattr(config, "cache", None)):
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(cache.mkdir("bytecode"))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run three tests at once on two cores: the long ones mostly wait, for sessions and for schedules."""
    return max(3, os.cpu_count() or 1)
