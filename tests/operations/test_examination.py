import asyncio
import threading
from collections.abc import Sequence

import pytest

from sceneloom.operations.examination import Check, Finding, Verdict, aside, examine, fault, ok
from sceneloom.settings import Settings

SETTINGS = Settings(_env_file=None)


async def fine(_settings: Settings) -> list[Finding]:
    return [ok("fine")]


async def faulty(_settings: Settings) -> list[Finding]:
    return [fault("one", "mend it"), fault("two", "mend it")]


async def explode(_settings: Settings) -> list[Finding]:
    raise ZeroDivisionError("boom")


async def hang(_settings: Settings) -> list[Finding]:
    await asyncio.Event().wait()
    return []


async def examined(*checks: Check) -> list[tuple[str, Verdict, str]]:
    found = examine(SETTINGS, checks, lambda _name: None)
    return [(name, finding.verdict, finding.found) async for name, finding in found]


async def test_whatever_one_check_finds_the_others_follow() -> None:
    found = await examined(
        Check(name="a", look=faulty),
        Check(name="b", look=explode),
        Check(name="c", look=hang, seconds=0.01),
        Check(name="d", look=fine),
    )
    assert found == [
        ("a", Verdict.FAULT, "one"),
        ("a", Verdict.FAULT, "two"),
        ("b", Verdict.FAULT, "ZeroDivisionError: boom"),
        ("c", Verdict.FAULT, "no answer within 0.01 s"),
        ("d", Verdict.OK, "fine"),
    ]


async def test_what_needs_a_check_that_failed_is_not_looked_at_and_says_so() -> None:
    found = await examined(Check(name="a", look=faulty), Check(name="b", look=explode, needs="a"))
    assert found[-1] == ("b", Verdict.WARNING, "not looked at: a failed")


async def test_what_needs_a_check_that_is_well_is_looked_at() -> None:
    found = await examined(Check(name="a", look=fine), Check(name="b", look=fine, needs="a"))
    assert found[-1] == ("b", Verdict.OK, "fine")


async def test_each_check_is_announced_before_it_looks() -> None:
    order: list[str] = []

    async def look(_settings: Settings) -> Sequence[Finding]:
        order.append("looked")
        return [ok("fine")]

    found = examine(SETTINGS, [Check(name="a", look=look)], order.append)
    order.extend([name async for name, _ in found])
    assert order == ["a", "looked", "a"]


async def test_work_that_never_ends_is_left_behind_in_time() -> None:
    release = threading.Event()

    async def look(_settings: Settings) -> list[Finding]:
        await aside(release.wait)
        return []

    try:
        found = await examined(Check(name="disk", look=look, seconds=0.05))
    finally:
        release.set()
    assert found == [("disk", Verdict.FAULT, "no answer within 0.05 s")]


async def test_work_aside_brings_its_result_or_its_error() -> None:
    assert await aside(lambda: 4) == 4
    with pytest.raises(ZeroDivisionError):
        await aside(lambda: 1 // 0)
