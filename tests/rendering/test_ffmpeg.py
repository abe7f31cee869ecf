import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sceneloom.rendering.errors import RenderFailed
from sceneloom.rendering.ffmpeg import run_ffmpeg

pytestmark = pytest.mark.media
ENDLESS = ["-re", "-f", "lavfi", "-i", "testsrc2=size=64x64", "-f", "null", "-"]


def processes_in(folder: Path) -> set[int]:
    """Return the processes whose working folder is *folder*."""
    if not Path("/proc/self/cwd").exists():
        pytest.skip("needs /proc to see processes")
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").readlink() == folder.resolve():
                found.add(int(entry.name))
        except OSError:
            continue
    return found


async def until(folder: Path, count: int) -> None:
    async with asyncio.timeout(20):
        while len(processes_in(folder)) != count:  # noqa: ASYNC110  (a process sets no event)
            await asyncio.sleep(0.02)


async def test_a_failure_tells_the_last_lines_of_ffmpeg(tmp_path: Path) -> None:
    (tmp_path / "broken").write_bytes(b"not a film")
    with pytest.raises(RenderFailed, match="ffmpeg failed on a test") as failure:
        await run_ffmpeg(["-i", "broken", "-f", "null", "-"], folder=tmp_path, about="a test")
    assert "Invalid data" in failure.value.last_lines


async def test_cancelling_ends_ffmpeg_before_it_goes_on(tmp_path: Path) -> None:
    running = asyncio.create_task(run_ffmpeg(ENDLESS, folder=tmp_path, about="a test"))
    await until(tmp_path, 2)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert processes_in(tmp_path) == set()


@pytest.mark.parametrize("victim", ["python", "leash"])
async def test_ffmpeg_dies_with_the_process_that_started_it(tmp_path: Path, victim: str) -> None:
    script = f"""
        import asyncio
        from pathlib import Path
        from sceneloom.rendering.ffmpeg import run_ffmpeg
        asyncio.run(run_ffmpeg({ENDLESS!r}, folder=Path({str(tmp_path)!r}), about="a test"))
    """
    parent = subprocess.Popen(  # noqa: ASYNC220  (it must be killed without the loop knowing)
        [sys.executable, "-c", textwrap.dedent(script)], stderr=subprocess.DEVNULL, cwd=Path.cwd()
    )
    try:
        await until(tmp_path, 2)
        os.kill(parent.pid if victim == "python" else min(processes_in(tmp_path)), signal.SIGKILL)
        await until(tmp_path, 0)
    finally:
        parent.kill()
        parent.wait()
