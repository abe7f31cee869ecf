from collections.abc import AsyncIterator

import pytest_asyncio

from sceneloom.providers.studio import Studio


@pytest_asyncio.fixture
async def studio() -> AsyncIterator[Studio]:
    started = Studio(children=2)
    yield started
    await started.aclose()
