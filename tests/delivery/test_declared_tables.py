"""Tables are there as soon as the worker starts: they were all declared before."""

from typing import Any, NoReturn

import pytest

from sceneloom.durable_table import DeclaredTables
from tests.delivery.fakes import Rig


async def test_tables_are_opened_without_a_wait_for_more_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    rig.app.conf.topic_allow_declare = False
    table = rig.delivery.table("projects", partitions=1)
    tables: Any = rig.app.tables

    async def wait(*_: object) -> NoReturn:
        raise AssertionError("a start waited")

    async def begin(*_: object) -> None:
        began.append(table.started)

    began: list[bool] = []
    monkeypatch.setattr(tables, "sleep", wait)
    monkeypatch.setattr(tables.recovery, "start", begin)
    try:
        await tables.on_start()

        assert isinstance(tables, DeclaredTables)
        assert began == [True], "recovery begins once the tables are open"
    finally:
        await table.stop()
