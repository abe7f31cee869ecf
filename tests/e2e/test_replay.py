"""A real worker refuses a message, an operator finds out why, repairs it, and sends it once more."""

import asyncio
import json
import os
import sys
from typing import Any

import pytest

from models.lifecycle import ProjectState
from sceneloom.topics import DEAD_LETTERS
from tests.e2e.stage import Stage
from tests.fakes import a_request

pytestmark = pytest.mark.kafka


async def sceneloom(stage: Stage, *arguments: str) -> tuple[int, str]:
    """Run the program as an operator does, and return its exit code and what it wrote for scripts."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("SCENELOOM_")},
        "SCENELOOM_BROKER": stage.settings.broker,
        "SCENELOOM_TOPIC_PREFIX": stage.settings.topic_prefix,
        "SCENELOOM_PARTITIONS": str(stage.settings.partitions),
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "sceneloom", *arguments), env=environment, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def test_a_refused_command_is_listed_shown_replayed_and_then_carried_out(stage: Stage) -> None:
    stage.start_worker(HOUSE_SECONDS="600")
    cancel = {"type": "CancelProject", "project_id": "p1", "command_id": "c1"}
    await stage.send("p1", cancel)
    await stage.until_records(DEAD_LETTERS, 1)

    code, listed = await sceneloom(stage, "dead-letters", "list", "--json")
    (letter,) = json.loads(listed)
    assert (code, letter["letter"], letter["key"], letter["error"]) == (0, "0", "p1", "UnknownProject")
    _, shown = await sceneloom(stage, "dead-letters", "show", "0", "--json")
    assert json.loads(json.loads(shown)["value"]) == cancel

    await stage.submit("p1", a_request(1))
    await stage.until("p1", lambda snapshot: snapshot.state is ProjectState.GENERATING_SCENES)
    code, replayed = await sceneloom(stage, "dead-letters", "replay", "0", "--yes", "--json")
    assert (code, json.loads(replayed)[0]["outcome"]) == (0, "sent")

    await stage.until("p1", lambda snapshot: snapshot.state is ProjectState.CANCELLED)
    assert len(await stage.records(DEAD_LETTERS)) == 1

    _, projects = await sceneloom(stage, "projects", "--state", "Cancelled", "--json")
    assert [each["project_id"] for each in json.loads(projects)] == ["p1"]
    assert await job_statuses(stage) == {"cancelled"}


async def test_a_message_that_is_refused_again_is_a_letter_that_names_the_first(stage: Stage) -> None:
    stage.start_worker()
    await stage.send("p1", b"{not json")
    await stage.until_records(DEAD_LETTERS, 1)

    await sceneloom(stage, "dead-letters", "replay", "0", "--yes", "--anyway")
    await stage.until_records(DEAD_LETTERS, 2)

    _, listed = await sceneloom(stage, "dead-letters", "list", "--replayed", "--json")
    first, second = json.loads(listed)
    assert (first["replayed"], second["replay_of"], second["error"]) == (True, "0", "Unreadable")


async def job_statuses(stage: Stage) -> set[Any]:
    for _ in range(100):
        _, jobs = await sceneloom(stage, "jobs", "p1", "--json")
        statuses = {each["status"] for each in json.loads(jobs)}
        if statuses == {"cancelled"}:
            break
        await asyncio.sleep(0.2)
    return statuses
