import asyncio
import sys

import pytest

from sceneloom.providers.processes import child_environment, leashed, run
from tests.providers.processes_seen import lives, our_children, until

_PARENT = """
import subprocess, sys
from sceneloom.providers.processes import leashed
code = "print(1, flush=True); import time; time.sleep(600)"
child = subprocess.Popen(leashed([sys.executable, "-c", code]), stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""


async def test_a_child_gets_its_input_and_its_output_comes_back() -> None:
    finished = await run(leashed([sys.executable, "-c", "print(input()[::-1])"]), b"loom\n")
    assert (finished.status, finished.output) == (0, b"mool\n")


def test_a_child_inherits_none_of_our_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_ARK_KEY", "sk-1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sk-2")
    monkeypatch.setenv("FONTCONFIG_PATH", "/fonts")

    inherited = child_environment()

    assert not {"sk-1", "sk-2"} & set(inherited.values())
    assert inherited["FONTCONFIG_PATH"] == "/fonts"


async def test_a_failing_child_tells_its_status_and_complaint() -> None:
    finished = await run(leashed([sys.executable, "-c", "import sys; sys.exit('no data')"]))
    assert (finished.status, finished.complaint) == (1, "no data\n")


async def test_cancelling_kills_the_child() -> None:
    before = our_children()
    work = asyncio.create_task(run(leashed([sys.executable, "-c", "import time; time.sleep(600)"])))
    assert await until(lambda: our_children() - before)
    (child,) = our_children() - before
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert not lives(child)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
async def test_a_leashed_child_dies_with_its_parent() -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _PARENT, stdout=asyncio.subprocess.PIPE, env=child_environment()
    )
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    assert lives(child)
    parent.kill()
    await parent.communicate()
    assert await until(lambda: not lives(child))
