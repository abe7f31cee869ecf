"""A request on a topic becomes a finished video: the real system on a real Kafka, with quick providers."""

from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from models.lifecycle import ProjectState, SceneStatus
from sceneloom.assets.store import open_assets
from sceneloom.topics import (
    DEAD_LETTERS,
    JOB_EVENTS,
    PROJECT_EVENTS,
    PROJECT_REQUESTS,
    PROJECT_STATES,
    PROJECTS_TABLE,
    SCENE_REQUESTS,
    SCENE_RESULTS,
    partition_of,
    topic_name,
)
from tests.e2e.stage import Stage, header
from tests.fakes import a_request
from tests.poison import POISON

pytestmark = pytest.mark.kafka


def is_completed(snapshot: Any) -> bool:
    return bool(snapshot.state is ProjectState.COMPLETED)


async def test_a_request_on_the_topic_becomes_a_finished_video(stage: Stage) -> None:
    stage.start_worker()
    await stage.submit("p1", a_request(3))

    snapshot = await stage.until("p1", is_completed)

    assert [scene.status for scene in snapshot.scenes] == [SceneStatus.COMPLETED] * 3
    assert snapshot.receipt.bought == 7
    assert snapshot.video_url
    assert await open_assets(stage.settings.asset_location).get(snapshot.video_url)
    assert len(stage.ledger.lines()) == 7

    events = await stage.records(PROJECT_EVENTS)
    assert [header(event, "ce_type") for event in events] == [
        "ProjectAccepted",
        *["SceneCompleted"] * 3,
        "ProjectCompleted",
    ]
    assert {header(event, "ce_specversion") for event in events} == {"1.0"}
    assert {header(event, "ce_subject") for event in events} == {"p1"}
    assert len({header(event, "ce_id") for event in events}) == 5
    assert {header(event, "content-type") for event in events} == {"application/json"}


async def test_a_request_may_be_sent_in_short_and_a_video_job_is_a_project_of_one_clip(stage: Stage) -> None:
    stage.start_worker()
    await stage.send("short-1", a_request(1))
    await stage.send(
        "job-1",
        {
            "id": "job-1",
            "userId": "u1",
            "model": "motion",
            "prompt": "waves at night",
            "aspectRatio": "1:1",
            "durationSeconds": 4,
        },
    )

    assert (await stage.until("short-1", is_completed)).receipt.bought == 3
    clip = await stage.until("job-1", is_completed)
    assert clip.scenes[0].clip_url
    assert clip.receipt.bought == 2


async def test_what_cannot_be_carried_out_is_a_dead_letter_unchanged_and_the_partition_goes_on(
    stage: Stage,
) -> None:
    stage.start_worker()
    topics = (PROJECT_REQUESTS, SCENE_REQUESTS, JOB_EVENTS, SCENE_RESULTS)
    for topic in topics:
        await stage.send_all(POISON, topic)
    await stage.submit("p1", a_request(1))

    assert is_completed(await stage.until("p1", is_completed))

    letters = await stage.until_records(DEAD_LETTERS, len(POISON) * len(topics))
    for topic in topics:
        found = Counter(
            (letter.key, letter.value)
            for letter in letters
            if header(letter, "sceneloom-topic") == topic_name(stage.settings, topic)
        )
        assert found == Counter((key.encode() if key else None, value) for key, value in POISON)
    assert all(header(letter, "sceneloom-reason") for letter in letters)


async def test_a_refused_request_tells_all_its_faults_and_makes_nothing(stage: Stage) -> None:
    stage.start_worker()
    request = a_request(1) | {"aspect_ratio": "4:3", "titel": "x"}
    await stage.submit("p1", request)

    (letter,) = await stage.until_records(DEAD_LETTERS, 1)
    (event,) = await stage.records(PROJECT_EVENTS)

    assert header(event, "ce_type") == "ProjectRejected"
    faults = {fault["path"]: fault for fault in orjson.loads(event.value)["faults"]}
    assert set(faults) == {"aspect_ratio", "titel"}
    assert "title" in faults["titel"]["message"]
    assert orjson.loads(letter.value)["request"] == request
    assert stage.ledger.lines() == []


async def test_a_failed_scene_leaves_its_siblings_and_a_retry_makes_only_what_is_missing(
    stage: Stage,
) -> None:
    stage.start_worker(HOUSE_FAILS="scene 2")
    await stage.submit("p1", a_request(3))
    failed = await stage.until("p1", lambda s: s.state is ProjectState.FAILED)
    assert [scene.status for scene in failed.scenes] == [
        SceneStatus.COMPLETED,
        SceneStatus.FAILED,
        SceneStatus.COMPLETED,
    ]
    assert failed.message == failed.scenes[1].message != ""

    stage.workers[0].kill()
    stage.workers[0].wait()
    stage.start_worker()
    await stage.send("p1", {"type": "RetryProject", "project_id": "p1"})

    done = await stage.until("p1", is_completed)
    made = Counter(stage.ledger.lines())
    assert max(made.values()) == 1
    assert done.receipt.bought == 7
    assert done.receipt.reused == 5


async def test_every_message_delivered_again_changes_nothing(stage: Stage) -> None:
    stage.start_worker()
    await stage.submit("p1", a_request(2))
    before = await stage.until("p1", is_completed)
    made = stage.ledger.lines()
    events = {header(event, "ce_id") for event in await stage.records(PROJECT_EVENTS)}

    topics = (PROJECT_REQUESTS, SCENE_REQUESTS, JOB_EVENTS, SCENE_RESULTS)
    everything = [(topic, record) for topic in topics for record in await stage.records(topic)]
    for topic, record in [*everything, *reversed(everything)]:
        await stage.send(record.key.decode(), record.value, topic)
    await stage.submit("p2", a_request(1, title="The one that comes after"))
    await stage.until("p2", is_completed)

    assert await stage.until("p1", is_completed) == before
    assert [line for line in stage.ledger.lines() if line.startswith("p1/")] == made
    again = await stage.records(PROJECT_EVENTS)
    assert {header(e, "ce_id") for e in again if e.key == b"p1"} == events
    assert await stage.records(DEAD_LETTERS) == []


async def test_a_killed_worker_loses_nothing_and_makes_nothing_twice(stage: Stage) -> None:
    worker = stage.start_worker(HOUSE_SECONDS="0.3")
    await stage.submit("p1", a_request(6))
    await stage.until("p1", lambda s: s.scenes[0].image_url is not None)

    worker.kill()
    worker.wait()
    stored = await stage.succeeded()
    stage.start_worker(HOUSE_SECONDS="0.3")
    done = await stage.until("p1", is_completed)

    made = Counter(stage.ledger.lines())
    assert len(made) == 13
    assert stored
    assert {job: made[job] for job in stored} == dict.fromkeys(stored, 1)
    assert done.receipt.bought == 13
    # What was told and not yet written when it was killed is kept all the same, and only not counted so.
    assert 0 < done.receipt.reused < 13
    types = [header(event, "ce_type") for event in await stage.records(PROJECT_EVENTS)]
    assert "ProjectResumed" in types
    assert "ProjectCompleted" in types


async def test_a_peer_finishes_what_a_killed_worker_had_begun(stage: Stage) -> None:
    first = stage.start_worker(HOUSE_SECONDS="0.4")
    stage.start_worker(HOUSE_SECONDS="0.4")
    names = [f"p{n}" for n in range(8)]
    for name in names:
        await stage.submit(name, a_request(2, title=name))
    await stage.until(names[0], lambda s: any(scene.image_url for scene in s.scenes))

    first.kill()
    for name in names:
        await stage.until(name, is_completed)

    finished = [
        header(event, "ce_id")
        for event in await stage.records(PROJECT_EVENTS)
        if header(event, "ce_type") == "ProjectCompleted"
    ]
    assert len(set(finished)) == len(names)


async def test_the_topic_of_states_keeps_the_field_names_of_the_contract(stage: Stage) -> None:
    stage.start_worker()
    await stage.submit("p1", a_request(1))
    await stage.until("p1", is_completed)

    state = orjson.loads((await stage.records(PROJECT_STATES))[-1].value)

    assert {"project_id", "state", "version", "scenes"} <= set(state)
    assert {"scene_id", "status", "image_url", "audio_url", "clip_url"} <= set(state["scenes"][0])
    assert (state["state"], state["scenes"][0]["status"]) == ("Completed", "Completed")
    assert Path(stage.settings.assets).as_posix() in state["video_url"]


async def test_fifty_projects_survive_the_death_of_one_of_two_workers(stage: Stage) -> None:
    first = stage.start_worker()
    stage.start_worker()
    names = [f"p{n:02d}" for n in range(50)]
    requests = [
        (
            name,
            orjson.dumps({"type": "SubmitProject", "project_id": name, "request": a_request(6, title=name)}),
        )
        for name in names
    ]
    await stage.send_all(requests)
    await stage.until_records(SCENE_RESULTS, 150)
    first.kill()
    stored = await stage.succeeded()

    states = await stage.until_all(names, is_completed)

    assert {len(state.scenes) for state in states.values()} == {6}
    made = Counter(stage.ledger.lines())
    assert len(made) == 50 * 13
    assert {job: made[job] for job in stored} == dict.fromkeys(stored, 1)
    ends: dict[str, set[str]] = {}
    for event in await stage.records(PROJECT_EVENTS):
        if header(event, "ce_type") == "ProjectCompleted":
            ends.setdefault(header(event, "ce_subject"), set()).add(header(event, "ce_id"))
    assert {name: len(ids) for name, ids in ends.items()} == dict.fromkeys(names, 1)
    seen: dict[str, list[int]] = {}
    for record in await stage.records(PROJECT_STATES):
        seen.setdefault(record.key.decode(), []).append(orjson.loads(record.value)["version"])
    # A snapshot may be sent twice, but nobody ever decides from an older one.
    assert all(versions[-1] == max(versions) for versions in seen.values())
    assert await stage.records(DEAD_LETTERS) == []


async def test_a_request_on_the_wrong_partition_is_moved_to_the_one_of_its_key(stage: Stage) -> None:
    stage.start_worker()
    wrong = (partition_of("p1", stage.settings.partitions) + 1) % stage.settings.partitions
    request = {"type": "SubmitProject", "project_id": "p1", "request": a_request(1)}
    await stage.send_all([("p1", orjson.dumps(request))], partition=wrong)

    await stage.until("p1", is_completed)

    states = await stage.records(PROJECT_STATES)
    assert {state.partition for state in states} == {partition_of("p1", stage.settings.partitions)}
    changelog = await stage.records(f"{stage.settings.app_id}-{PROJECTS_TABLE}-changelog")
    assert {row.partition for row in changelog} == {partition_of("p1", stage.settings.partitions)}
