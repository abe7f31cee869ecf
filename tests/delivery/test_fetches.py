"""The connection to the broker: how long it may hold a fetch, and that it always ends."""

import asyncio
from pathlib import Path
from typing import Any

from sceneloom.consumer_thread import FETCH_WAIT_MS, SafeConsumerThread
from tests.delivery.worker import Plan, create_app


async def test_the_broker_does_not_hold_a_fetch_for_long(tmp_path: Path) -> None:
    app = create_app(Plan(broker="kafka://127.0.0.1:9", prefix="quiet", folder=str(tmp_path)))
    consumer: Any = app.consumer
    thread = consumer._thread
    assert isinstance(thread, SafeConsumerThread)

    asked = thread._create_worker_consumer(app.transport)  # type: ignore[arg-type]
    await asked.stop()
    thread.thread_loop.close()

    assert asked._fetch_max_wait_ms == FETCH_WAIT_MS < 500


async def test_a_connection_that_cannot_be_closed_in_good_order_does_not_keep_the_worker(
    tmp_path: Path,
) -> None:
    app = create_app(Plan(broker="kafka://127.0.0.1:9", prefix="gone", folder=str(tmp_path)))
    consumer: Any = app.consumer
    thread = consumer._thread
    stopped = []

    class Consumer:
        async def stop(self) -> None:
            stopped.append(True)
            raise asyncio.CancelledError

    thread._consumer = Consumer()
    await thread.on_thread_stop()
    thread.thread_loop.close()

    assert stopped
