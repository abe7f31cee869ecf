import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sceneloom.testing.fake_provider import Ledger
from tests.e2e.test_demo import left_of


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the story in a session of its own, which none of its processes can be missed in."""
    (folder / "tmp").mkdir()
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "sceneloom", "story", *arguments],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.media
@pytest.mark.timeout(420)
def test_a_provider_that_fails_and_a_worker_that_is_killed_cost_no_second_picture(tmp_path: Path) -> None:
    story = started(tmp_path, "--json", "--keep")
    output, errors = story.communicate(timeout=400)
    assert story.returncode == 0, errors
    told = json.loads(output.splitlines()[-1])
    (ledger_file,) = (tmp_path / "tmp").glob("sceneloom-*/ledger.jsonl")
    ledger = Ledger.read(ledger_file)

    assert told["state"] == "Completed"
    assert (tmp_path / told["video"]).stat().st_size > 10_000
    assert len({entry.prompt for entry in ledger.billed()}) == len(ledger.billed()) == 12
    assert ledger.billed_usd() == told["receipt"]["spent_usd"] == pytest.approx(1.80)
    assert told["receipt"]["saved_usd"] == told["kept_usd"] == pytest.approx(1.65)
    assert told["from_scratch_usd"] == pytest.approx(3.45)
    assert told["crash"]["bought"] == 11
    assert 1 <= told["crash"]["refused"] <= 4, "the killed worker left some of the five calls to the next one"
    assert [entry.answer for entry in ledger.entries() if not entry.accepted] == [503] * 5
    assert told["ledger"]["faults"] == []
    assert "Scene 9: The service that makes this cannot be reached" in errors
    assert left_of(tmp_path) == []


@pytest.mark.media
def test_a_story_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    story = started(tmp_path)
    assert story.stdout
    while "call 1 of 5" not in story.stdout.readline():
        assert story.poll() is None
    story.send_signal(signal.SIGINT)
    story.communicate(timeout=60)

    assert story.returncode == 130
    assert left_of(tmp_path) == []
    assert list((tmp_path / "tmp").glob("sceneloom-*")) == []
