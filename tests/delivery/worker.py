"""A worker for the tests of delivery: counts how often it processed each number, in a table and on a topic.

Run as a process: `python -m tests.delivery.worker '{"broker": …}'`; see `Plan` for the settings.
"""

import asyncio
import contextlib
import json
import logging
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import faust
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, EventT, StreamT

from sceneloom.delivery import Delivery, app_settings
from sceneloom.durable_table import DurableTable
from sceneloom.table_folder import TableFolder
from sceneloom.watchdogs import watch


class Refused(Exception):
    """This worker cannot read the message."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the worker is told to do."""

    broker: str
    prefix: str
    folder: str
    partitions: int = 4
    commit_interval: float = 0.3
    ack_timeout: float = 15.0
    request_timeout: float = 60.0
    embedded: bool = False
    explode_on: str = ""
    slow_seek: float = 0.0
    slow_rows: float = 0.0
    work_seconds: float = 0.0
    hang_on: str = ""
    block_on: str = ""
    patience: float = 60.0
    store: str = "memory"
    standbys: int = 0
    data: str = ""
    once: bool = False

    @property
    def source(self) -> str:
        """The topic with the numbers."""
        return f"{self.prefix}-numbers"

    @property
    def output(self) -> str:
        """The topic that repeats each number."""
        return f"{self.prefix}-echo"

    @property
    def dead_letters(self) -> str:
        """The topic of the dead letters."""
        return f"{self.prefix}-dead-letters"

    @property
    def changelog(self) -> str:
        """The changelog of the table."""
        return f"{self.prefix}-seen-changelog"

    def as_argument(self) -> str:
        """This plan as text."""
        return json.dumps(asdict(self))


def create_app(plan: Plan) -> faust.App:
    """Build the app; nothing is started."""
    settings = app_settings(embedded=plan.embedded) | {
        "broker_commit_interval": plan.commit_interval,
        "broker_session_timeout": 4.0 if plan.embedded else 6.0,  # the least that Kafka allows
        "producer_request_timeout": plan.request_timeout,
        "datadir": plan.data or f"{plan.folder}/worker-{os.getpid()}",
        "store": f"{plan.store}://",
        "table_standby_replicas": plan.standbys,
        "topic_partitions": plan.partitions,
    }
    app = faust.App(plan.prefix, broker=plan.broker, **settings)
    delivery = Delivery(app, dead_letters=plan.dead_letters, ack_timeout=plan.ack_timeout)
    if plan.store == "rocksdb":
        app.add_dependency(TableFolder(app, delivery=delivery))
    seen = delivery.table("seen", partitions=plan.partitions, key_type=str, value_type=int, default=int)
    source: Any = app.topic(
        plan.source, key_type=bytes, key_serializer="raw", value_type=bytes, value_serializer="raw"
    )

    explosive = plan.explode_on if not Path(plan.folder, "defused").exists() else None

    async def handle(event: EventT[Any]) -> None:
        number = _number(event.message.value)
        if number == explosive:
            raise RuntimeError("boom")
        await asyncio.sleep(plan.work_seconds)
        if number == plan.hang_on:
            await asyncio.Event().wait()
        if number == plan.block_on:
            time.sleep(3600)  # noqa: ASYNC251 -- what must never happen
        if not (plan.once and number in seen):  # as agents do, who have decided already
            seen[number] += 1
        await delivery.send(plan.output, key=number, value=number.encode())

    async def count(stream: StreamT[Any]) -> None:
        await delivery.consume(stream, handle=handle, refused=(Refused,))

    watch(app, delivery=delivery, loop_patience=plan.patience, commit_patience=plan.patience)
    app.agent(source, name=f"{plan.prefix}-count")(count)
    return app


def _number(value: bytes | None) -> str:
    if value is None or not value.isdigit():
        raise Refused(f"not a number: {(value or b'')[:20]!r}")
    return value.decode()


def make_seeks_slow(seconds: float) -> None:
    """Let the broker take *seconds* longer to tell the committed offsets after a rebalance."""
    prompt = driver.Consumer.seek_to_committed

    async def late(consumer: driver.Consumer) -> Mapping[TP, int]:
        found = await prompt(consumer)
        await asyncio.sleep(seconds)
        return found

    driver.Consumer.seek_to_committed = late  # type: ignore[assignment]  # only in this process


def make_rows_slow(seconds: float) -> None:
    """Let each row that is recovered take *seconds*."""
    prompt: Any = DurableTable.on_changelog_event

    async def slow(table: DurableTable, event: EventT[Any]) -> None:
        await asyncio.sleep(seconds)
        await prompt(table, event)

    DurableTable.on_changelog_event = slow  # type: ignore[assignment,method-assign]  # only in this process


def main(argument: str) -> None:
    """Run the worker until it is told to end."""
    plan = Plan(**json.loads(argument))
    if plan.slow_seek:
        make_seeks_slow(plan.slow_seek)
    if plan.slow_rows:
        make_rows_slow(plan.slow_rows)
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
    asyncio.set_event_loop(loop := asyncio.new_event_loop())
    with contextlib.suppress(KeyboardInterrupt):
        faust.Worker(create_app(plan), loop=loop, loglevel="INFO").execute_from_commandline()


if __name__ == "__main__":
    main(sys.argv[1])
