import asyncio

import orjson
import pytest

from models.commands import CancelProject, SubmitProject
from models.errors import ErrorCode
from models.events import CommandRefused
from models.lifecycle import ProjectState
from sceneloom.client import Reader, event_in, job_event_in, read_state, refusal_in, send, snapshot_in
from sceneloom.settings import Settings
from sceneloom.topic_admin import BrokerUnreachable, TopicsMissing, ensure_topics
from sceneloom.topics import JOB_EVENTS, PROJECT_EVENTS, PROJECT_REQUESTS, PROJECT_STATES, partition_of
from tests.kafka_fixtures import TestBroker
from tests.stage import MOMENT, a_completion, a_snapshot, settings_for, tell_event, tell_state, write


@pytest.fixture
async def settings(broker: TestBroker, unique: str) -> Settings:
    settings = settings_for(broker.bootstrap, f"{unique}-")
    await ensure_topics(settings)
    return settings


async def test_a_command_arrives_on_the_partition_of_its_project(settings: Settings) -> None:
    command = SubmitProject(project_id="film-1", command_id="c1", request={"title": "x"})
    await send(settings, command)
    async with Reader(settings, PROJECT_REQUESTS, project_id="film-1") as reader:
        (record,) = [record async for record in reader.history()]
    assert record.key == b"film-1"
    assert record.partition == partition_of("film-1", settings.partitions)
    assert SubmitProject.model_validate_json(record.value) == command


async def test_the_latest_snapshot_of_the_project_is_its_state(settings: Settings) -> None:
    for version in (1, 2, 3):
        await tell_state(settings, a_snapshot("film", version=version))
        await tell_state(settings, a_snapshot(f"other-{version}", version=40 + version))
    state = await read_state(settings, "film")
    assert state is not None
    assert (state.project_id, state.version) == ("film", 3)


async def test_what_is_no_snapshot_does_not_hide_the_one_before(settings: Settings) -> None:
    await tell_state(settings, a_snapshot("film", version=5))
    await write(settings, PROJECT_STATES, "film", b"not json")
    await write(settings, PROJECT_STATES, "film", None)
    state = await read_state(settings, "film")
    assert state is not None
    assert state.version == 5


async def test_a_project_that_nobody_knows_has_no_state(settings: Settings) -> None:
    assert await read_state(settings, "film") is None


async def test_news_come_after_history_and_nothing_comes_twice(settings: Settings) -> None:
    await tell_state(settings, a_snapshot("film", version=1))
    async with Reader(settings, PROJECT_STATES, project_id="film") as reader:
        past = [snapshot_in(record) async for record in reader.history()]
        await tell_state(settings, a_snapshot("film", version=2, state=ProjectState.COMPLETED))
        async with asyncio.timeout(20):
            news = snapshot_in(await anext(reader.news()))
    assert [each.version for each in past if each] == [1]
    assert news is not None
    assert news.version == 2


async def test_a_topic_read_for_its_news_only_has_no_history(settings: Settings) -> None:
    await tell_event(settings, a_completion("film", version=1))
    async with Reader(settings, only_new=(PROJECT_EVENTS,), project_id="film") as reader:
        assert [record async for record in reader.history()] == []
        await tell_event(settings, a_completion("film", version=2))
        async with asyncio.timeout(20):
            event = event_in(await anext(reader.news()))
    assert event is not None
    assert event.data["version"] == 2


async def test_events_of_all_projects_are_read_from_all_partitions(settings: Settings) -> None:
    projects = {f"film-{number}" for number in range(12)}
    assert len({partition_of(each, settings.partitions) for each in projects}) > 1
    for each in projects:
        await tell_event(settings, a_completion(each))
    async with Reader(settings, PROJECT_EVENTS) as reader:
        events = [event async for record in reader.history() if (event := event_in(record))]
    assert {event.project_id for event in events} == projects


async def test_an_event_is_read_as_the_cloudevent_that_it_is(settings: Settings) -> None:
    completion = a_completion("film")
    await tell_event(settings, completion)
    async with Reader(settings, PROJECT_EVENTS, project_id="film") as reader:
        (record,) = [record async for record in reader.history()]
    event = event_in(record)
    assert event is not None
    structured = event.structured()
    assert structured["specversion"] == "1.0"
    assert structured["id"] == completion.event_id
    assert structured["type"] == "ProjectCompleted"
    assert structured["subject"] == "film"
    assert structured["time"].startswith(MOMENT.isoformat()[:19])
    assert structured["data"] == orjson.loads(completion.model_dump_json())
    assert refusal_in(record) is None


async def test_a_refusal_is_recognised_among_the_events(settings: Settings) -> None:
    refused = CommandRefused(
        project_id="film",
        command_id="c7",
        occurred_at=MOMENT,
        rule="illegal_transition",
        message="no",
        current_version=4,
    )
    await write(settings, PROJECT_EVENTS, "film", b"garbage", {"ce_type": b"CommandRefused"})
    await tell_event(settings, refused)
    async with Reader(settings, PROJECT_EVENTS, project_id="film") as reader:
        refusals = [refusal_in(record) async for record in reader.history()]
    assert refusals == [None, refused]


async def test_job_events_are_read_and_garbage_is_passed_over(settings: Settings) -> None:
    failed = {
        "type": "JobFailed",
        "event_id": "e",
        "project_id": "film",
        "job_id": "film/scene-001/image",
        "attempt": 1,
        "occurred_at": MOMENT.isoformat(),
        "error_code": "provider_timeout",
    }
    await write(settings, JOB_EVENTS, "film", b"{}")
    await write(settings, JOB_EVENTS, "film", orjson.dumps(failed))
    async with Reader(settings, JOB_EVENTS, project_id="film") as reader:
        nothing, event = [job_event_in(record) async for record in reader.history()]
    assert nothing is None
    assert event is not None
    assert getattr(event, "error_code", None) is ErrorCode.PROVIDER_TIMEOUT


async def test_without_topics_nothing_is_sent_or_created(broker: TestBroker, unique: str) -> None:
    settings = settings_for(broker.bootstrap, f"{unique}-nowhere-")
    for _ in range(2):
        with pytest.raises(TopicsMissing):
            await send(settings, CancelProject(project_id="film"))
        with pytest.raises(TopicsMissing):
            await read_state(settings, "film")


async def test_without_a_broker_the_caller_is_told_where_it_was_looked_for() -> None:
    settings = Settings(broker="kafka://127.0.0.1:1")
    with pytest.raises(BrokerUnreachable, match=r"127\.0\.0\.1:1"):
        await send(settings, CancelProject(project_id="film"))
    with pytest.raises(BrokerUnreachable, match=r"127\.0\.0\.1:1"):
        await read_state(settings, "film")
