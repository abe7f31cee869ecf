import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from models.errors import ErrorCode, ProviderFailure
from sceneloom.providers.processes import child_environment
from sceneloom.providers.studio import Studio
from tests.providers.processes_seen import children_of, lives, our_children, until

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes through /proc")

SMALL = {"prompt": "a lighthouse", "width": 160, "height": 160, "seed": 1}
SLOW = {"prompt": "a city at night", "width": 4000, "height": 4000, "seed": 1}
_PARENT = """
import asyncio, sys
from sceneloom.providers.studio import Studio
async def main():
    studio = Studio(children=2)
    await studio.ask("draw", prompt="sea", width=64, height=64, seed=1)
    busy = asyncio.create_task(studio.ask("draw", prompt="city", width=4000, height=4000, seed=1))
    idle = asyncio.create_task(studio.ask("draw", prompt="sea", width=64, height=64, seed=1))
    await idle
    print("ready", flush=True)
    await busy
asyncio.run(main())
"""


async def _busy_child(before: set[int]) -> int:
    assert await until(lambda: our_children() - before)
    return next(iter(our_children() - before))


async def test_no_child_is_started_before_the_first_request() -> None:
    before = our_children()
    studio = Studio()
    assert our_children() == before
    await studio.aclose()


async def test_a_child_is_used_again(studio: Studio) -> None:
    before = our_children()
    await studio.ask("draw", **SMALL)
    children = our_children() - before
    await studio.ask("draw", **SMALL)
    assert our_children() - before == children
    assert len(children) == 1


async def test_requests_beyond_the_number_of_children_wait_their_turn() -> None:
    before = our_children()
    studio = Studio(children=1)
    answers = await asyncio.gather(*(studio.ask("draw", **SMALL) for _ in range(3)))
    assert len({answer.content for answer in answers}) == 1
    assert len(our_children() - before) == 1
    await studio.aclose()


async def test_a_child_killed_at_work_fails_that_request_only(studio: Studio) -> None:
    before = our_children()
    asked = asyncio.create_task(studio.ask("draw", **SLOW))
    os.kill(await _busy_child(before), signal.SIGKILL)
    with pytest.raises(ProviderFailure) as failed:
        await asked
    assert failed.value.code is ErrorCode.PROVIDER_UNAVAILABLE
    assert (await studio.ask("draw", **SMALL)).content.startswith(b"\xff\xd8")


async def test_a_child_that_died_while_idle_is_replaced(studio: Studio) -> None:
    before = our_children()
    await studio.ask("draw", **SMALL)
    (child,) = our_children() - before
    os.kill(child, signal.SIGKILL)
    assert await until(lambda: not lives(child))
    try:
        answer = await studio.ask("draw", **SMALL)
    except ProviderFailure:  # its end was not noticed yet: one call may fail, the next works
        answer = await studio.ask("draw", **SMALL)
    assert answer.content.startswith(b"\xff\xd8")


async def test_a_cancelled_request_ends_its_child_and_the_next_one_is_answered(studio: Studio) -> None:
    before = our_children()
    asked = asyncio.create_task(studio.ask("draw", **SLOW))
    child = await _busy_child(before)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert await until(lambda: not lives(child))
    assert (await studio.ask("draw", **SMALL)).content.startswith(b"\xff\xd8")


async def test_a_refused_request_leaves_the_child_at_work(studio: Studio) -> None:
    before = our_children()
    with pytest.raises(ProviderFailure) as refused:
        await studio.ask("speak", text="hi", voice="emma")
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    children = our_children() - before
    await studio.ask("draw", **SMALL)
    assert our_children() - before == children


async def test_a_request_nobody_knows_is_reported_and_not_fatal(studio: Studio) -> None:
    with pytest.raises(ProviderFailure) as failed:
        await studio.ask("dance")
    assert failed.value.code is ErrorCode.PROVIDER_UNAVAILABLE
    assert (await studio.ask("draw", **SMALL)).content


async def test_closing_ends_idle_and_busy_children() -> None:
    before = our_children()
    studio = Studio(children=2)
    asked = asyncio.create_task(studio.ask("draw", **SLOW))
    await studio.ask("draw", **SMALL)
    assert len(our_children() - before) == 2
    await studio.aclose()
    with pytest.raises(ProviderFailure):
        await asked
    assert our_children() == before


async def test_no_child_outlives_a_parent_that_is_killed() -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _PARENT, stdout=asyncio.subprocess.PIPE, env=child_environment()
    )
    assert parent.stdout is not None
    assert await parent.stdout.readline() == b"ready\n"
    children = children_of(parent.pid)
    assert len(children) == 2
    parent.kill()
    await parent.communicate()
    assert await until(lambda: not any(map(lives, children)))


async def test_the_answer_is_not_spoiled_by_what_libraries_print(studio: Studio) -> None:
    answer = await studio.ask("draw", **SMALL)
    assert answer.content.endswith(b"\xff\xd9")
