import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

REQUEST = """\
title: Three lamps
aspect_ratio: "1:1"
scenes:
  - {prompt: an old lighthouse on a cliff at night, narration: One lamp.}
  - {prompt: a small boat on a dark sea, narration: Two boats.}
  - {prompt: dawn over a calm sea, narration: Three gulls.}
"""


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the demo in a session of its own, which none of its processes can be missed in."""
    (folder / "lamps.yaml").write_text(REQUEST)
    (folder / "tmp").mkdir()
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "sceneloom", "demo", "lamps.yaml", *arguments],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def left_of(folder: Path) -> list[str]:
    """Return the command lines of all processes that work in the demo's folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if f"TMPDIR={folder / 'tmp'}".encode() in environment and command:
            found.append(command)
    return found


@pytest.mark.media
@pytest.mark.timeout(420)
def test_a_killed_worker_costs_nothing_twice_and_leaves_no_process(tmp_path: Path) -> None:
    demo = started(tmp_path, "--crash", "--json")
    output, errors = demo.communicate(timeout=400)
    assert demo.returncode == 0, errors
    shown = json.loads(output.splitlines()[-1])
    assert shown["state"] == "Completed"
    assert shown["seconds"] > 1
    video = tmp_path / shown["video"]
    assert video == tmp_path / "out" / "lamps.mp4"
    assert video.stat().st_size > 10_000
    assert json.loads((tmp_path / "out" / "lamps.report.json").read_text())
    crash, receipt = shown["crash"], shown["receipt"]
    assert crash["finished"] >= 1
    assert crash["started_again"] == crash["in_flight"] >= 1
    assert crash["made_twice"] == []
    assert receipt["bought"] + receipt["cached"] == 7, "three pictures, three narrations and the film"
    assert receipt["reused"] >= 1
    assert left_of(tmp_path) == []
    assert list((tmp_path / "tmp").glob("sceneloom-*")) == []


@pytest.mark.media
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_demo_that_is_stopped_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    demo = started(tmp_path)
    assert demo.stdout
    while "in progress" not in demo.stdout.readline():
        assert demo.poll() is None
    assert len(left_of(tmp_path)) >= 3, "the demo, its broker and its worker"
    demo.send_signal(number)
    demo.communicate(timeout=60)
    assert demo.returncode == (-signal.SIGKILL if number is signal.SIGKILL else 130)
    deadline = 300
    while left_of(tmp_path) and deadline:
        signal.sigtimedwait([], 0.1)
        deadline -= 1
    assert left_of(tmp_path) == []
