"""What a worker loads before it can do its first work, which every restart waits for."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

LATER: Final = {
    "drawing": ("PIL", "resvg_py", "sceneloom.providers.drawing"),
    "speaking": ("hibari", "onnxruntime", "sceneloom.providers.sound"),
    "decoding and rendering": ("av", "numpy", "fontTools", "sceneloom.rendering.production"),
    "transcription": ("faster_whisper", "ctranslate2"),
    "traces": ("opentelemetry.sdk",),
    "the gateway": ("fastapi", "starlette", "uvicorn", "sceneloom.gateway"),
    "other commands": ("sceneloom.operations", "sceneloom.demo", "sceneloom.testing", "sceneloom.contract"),
}
"""Who needs what is not needed to start."""
AT_ONCE: Final = {"faust", "aiokafka", "rocksdict", "sceneloom.custody"}
_START: Final = """
import json, sys
from sceneloom.cli.configuration import load_settings
from sceneloom.topic_admin import ensure_topics
from sceneloom.app import create_app
create_app(load_settings()).finalize()
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """The modules of a worker with RocksDB, and otherwise the settings that it has by itself."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SCENELOOM_", "OTEL_"))}
    environment = kept | {
        "SCENELOOM_STORE": "rocksdb",
        "PYTHONPATH": str(Path(__file__).parent.parent),
    }
    folder = tmp_path_factory.mktemp("start")
    command = [sys.executable, "-c", _START]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return frozenset(json.loads(done.stdout))


@pytest.mark.parametrize("use", LATER)
def test_a_worker_that_starts_does_not_load_what_it_needs_later(use: str, loaded: frozenset[str]) -> None:
    assert loaded.isdisjoint(LATER[use])


def test_what_a_worker_needs_at_once_is_seen_among_what_it_has_loaded(loaded: frozenset[str]) -> None:
    assert loaded >= AT_ONCE
