"""The stage of each test, on the session's broker."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sceneloom.settings import Settings
from sceneloom.topic_admin import ensure_topics
from tests.e2e.stage import Stage
from tests.kafka_fixtures import TestBroker


@pytest.fixture
def more_settings() -> Mapping[str, Any]:
    """What a file of tests wants to have set otherwise."""
    return {}


@pytest.fixture
async def stage(
    broker: TestBroker, unique: str, tmp_path: Path, more_settings: Mapping[str, Any]
) -> AsyncIterator[Stage]:
    settings = Settings(
        _env_file=None,
        broker=f"kafka://{broker.bootstrap}",
        topic_prefix=f"{unique}-",
        partitions=4,
        data_folder=tmp_path / "data",
        assets=str(tmp_path / "assets"),
        **more_settings,
    )
    await ensure_topics(settings)
    stage = Stage(settings, tmp_path)
    try:
        yield stage
    finally:
        stage.end()
