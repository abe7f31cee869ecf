"""Dead letters go back to where they died: on a real broker, with letters that the tests write."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer, ConsumerRecord

from models.commands import SubmitProject
from models.errors import ErrorCode
from models.job_events import PollNow
from models.results import SceneFailed
from sceneloom.app import create_app
from sceneloom.client import Reader
from sceneloom.codec import encode
from sceneloom.operations.letters import Letter, envelopes
from sceneloom.operations.replay import Fate, Plan, planned, replay, replayed_before
from sceneloom.operations.rereading import READ_BY_WORKERS
from sceneloom.settings import Settings
from sceneloom.topic_admin import ensure_topics
from sceneloom.topics import (
    CREDIT_REQUESTS,
    DEAD_LETTERS,
    JOB_EVENTS,
    PROJECT_REQUESTS,
    SCENE_REQUESTS,
    SCENE_RESULTS,
    partition_of,
    topic_name,
)
from tests.fakes import a_request
from tests.kafka_fixtures import TestBroker
from tests.operations.test_letters import a_letter
from tests.stage import MOMENT, a_snapshot, settings_for, tell_state

pytestmark = pytest.mark.kafka


@pytest.fixture
async def settings(broker: TestBroker, unique: str) -> Settings:
    settings = settings_for(broker.bootstrap, f"{unique}-")
    await ensure_topics(settings)
    return settings


async def die(
    settings: Settings,
    topic: str,
    key: bytes | None,
    value: bytes | None,
    *own: tuple[str, bytes],
    **ours: Any,
) -> None:
    name = topic if topic.startswith("=") else topic_name(settings, topic)
    told = {
        "topic": name.removeprefix("="),
        "partition": 2,
        "offset": 7,
        "error": "Unreadable",
        "reason": "x",
    }
    headers = [*own, *((f"sceneloom-{k}", str(v).encode()) for k, v in (told | ours).items())]
    async with AIOKafkaProducer(bootstrap_servers=settings.bootstrap, max_request_size=8_000_000) as producer:
        await producer.send_and_wait(topic_name(settings, DEAD_LETTERS), value, key=key, headers=headers)


async def sent(settings: Settings, *topics: str) -> list[ConsumerRecord]:
    async with Reader(settings, *topics) as reader:
        return [record async for record in reader.history()]


async def replay_all(settings: Settings, before: Sequence[str] = ()) -> tuple[list[Plan], dict[str, str]]:
    plans = await planned(settings, await envelopes(settings), before, anyway=True)
    outcomes: dict[str, str] = {}
    await replay(settings, plans, outcomes.__setitem__)
    return plans, outcomes


async def test_key_value_and_own_headers_go_unchanged_to_the_partition_of_the_key(settings: Settings) -> None:
    own = [("ce_id", b"\xff"), ("ce_id", b"2")]
    await die(settings, PROJECT_REQUESTS, b"film-1", b"\x00{", *own)
    _, outcomes = await replay_all(settings)
    (record,) = await sent(settings, PROJECT_REQUESTS)
    assert outcomes == {"0": ""}
    assert (record.key, record.value) == (b"film-1", b"\x00{")
    assert record.partition == partition_of("film-1", settings.partitions)
    assert list(record.headers) == [*own, ("sceneloom-replayed", b"0")]


async def test_a_message_without_key_goes_back_to_its_own_partition(settings: Settings) -> None:
    for _ in range(8):
        await die(settings, JOB_EVENTS, None, b"x", partition=3)
    await replay_all(settings)
    places = [(record.key, record.partition) for record in await sent(settings, JOB_EVENTS)]
    assert places == [(None, 3)] * 8


def test_every_topic_that_a_worker_listens_to_can_be_replayed_to(tmp_path: Path) -> None:
    app = create_app(Settings(_env_file=None, credits="table", data_folder=tmp_path))
    listened = {name for agent in app.agents.values() for name in agent.channel.topics}
    assert listened == set(READ_BY_WORKERS)


async def test_a_tombstone_is_sent_as_one(settings: Settings) -> None:
    await die(settings, SCENE_REQUESTS, b"p1", None)
    await replay_all(settings)
    (record,) = await sent(settings, SCENE_REQUESTS)
    assert (record.key, record.value) == (b"p1", None)


async def test_what_cannot_be_replayed_is_told_and_does_not_hold_back_the_others(settings: Settings) -> None:
    await die(settings, PROJECT_REQUESTS, b"p1", b"", omitted=5_000_000)
    await die(settings, PROJECT_REQUESTS, None, b"", omitted=0)
    await die(settings, "=elsewhere", b"p1", b"x")
    await die(settings, PROJECT_REQUESTS, None, b"x", partition=99)
    await die(settings, "project-states", b"p1", b"x")
    await die(settings, PROJECT_REQUESTS, b"p1", b"fine")
    plans, outcomes = await replay_all(settings)
    whys = [plan.why for plan in plans]
    assert "5000000 bytes was too large" in whys[0]
    assert "neither key nor value" in whys[1]
    assert whys[2].startswith("elsewhere is none that our workers read")
    assert "has no partition 99" in whys[3]
    assert "none that our workers read" in whys[4], "a table or a snapshot must not be written over"
    assert outcomes == {"5": ""}
    assert [record.value for record in await sent(settings, PROJECT_REQUESTS)] == [b"fine"]


async def test_a_message_that_its_topic_does_not_take_is_told_and_the_next_one_follows(
    settings: Settings,
) -> None:
    largest = 4 * 1024 * 1024
    await die(settings, PROJECT_REQUESTS, b"p1", b"x" * largest)
    await die(settings, PROJECT_REQUESTS, b"p1", b"fine")
    _, outcomes = await replay_all(settings)
    assert "does not take a message of 4194304 bytes" in outcomes["0"]
    assert outcomes["1"] == ""
    assert [record.value for record in await sent(settings, PROJECT_REQUESTS)] == [b"fine"]


async def test_a_letter_named_twice_is_sent_once(settings: Settings) -> None:
    await die(settings, PROJECT_REQUESTS, b"p1", b"x")
    (plan,) = await planned(settings, await envelopes(settings), (), anyway=True)
    await replay(settings, [plan, plan], lambda *_: None)
    assert len(await sent(settings, PROJECT_REQUESTS)) == 1


async def test_letters_are_sent_in_their_order(settings: Settings) -> None:
    for number in range(20):
        await die(settings, PROJECT_REQUESTS, b"p1", str(number).encode())
    _, outcomes = await replay_all(settings)
    assert list(outcomes) == [str(number) for number in range(20)]
    assert [int(record.value) for record in await sent(settings, PROJECT_REQUESTS)] == list(range(20))


async def test_what_was_replayed_is_known_by_the_message_that_was_sent(settings: Settings) -> None:
    await die(settings, PROJECT_REQUESTS, b"p1", b"x")
    await die(settings, JOB_EVENTS, b"p1", b"y")
    letters = await envelopes(settings)
    assert await replayed_before(settings, letters) == set()
    await replay(settings, await planned(settings, letters[:1], (), anyway=True), lambda *_: None)
    before = await replayed_before(settings, letters)
    assert before == {"0"}
    assert [plan.fate for plan in await planned(settings, letters, before, anyway=True)] == [
        Fate.DONE_BEFORE,
        Fate.SEND,
    ]


async def test_a_letter_that_vanished_meanwhile_is_told(settings: Settings) -> None:
    gone: Letter = a_letter(40)
    told: dict[str, str] = {}
    await replay(settings, [Plan(gone, Fate.SEND, 0)], told.__setitem__)
    assert told == {"40": "it is not on the topic any more"}


CANCEL = b'{"type": "CancelProject", "project_id": "p1"}'
LOOK = encode(
    PollNow(event_id="e1", project_id="p1", job_id="p1/scene-001/clip", attempt=1, occurred_at=MOMENT)
)
SCENE_FAILED = encode(
    SceneFailed(project_id="p1", scene_id="scene-009", attempt=1, error_code=ErrorCode.MODERATION_REJECTED)
)


async def fates(settings: Settings) -> list[tuple[Fate, str]]:
    plans = await planned(settings, await envelopes(settings), ())
    return [(plan.fate, plan.why.split(";")[0]) for plan in plans]


async def test_what_would_die_again_is_left_out_with_the_reason_and_sent_all_the_same_where_one_insists(
    settings: Settings,
) -> None:
    await die(settings, PROJECT_REQUESTS, b"p1", b"{")
    await die(settings, JOB_EVENTS, b"p1", b'{"type": "FromTheFuture"}')
    await die(settings, JOB_EVENTS, b"p2", LOOK)
    await die(settings, PROJECT_REQUESTS, b"p1", CANCEL, error="UnknownProject", reason="no project p1")
    grant = b'{"type": "GrantCredits", "user_id": "ann", "grant_id": "g1", "micros": 5}'
    with_credits = settings.model_copy(update={"credits": "table"})
    await ensure_topics(with_credits)
    await die(with_credits, CREDIT_REQUESTS, b"ann", grant, error="GrantConflict")

    found = await fates(with_credits)

    assert [fate for fate, _ in found] == [Fate.IN_VAIN] * 5
    assert all(why.startswith("it would be refused again: ") for _, why in found)
    assert "JSON" in found[0][1]
    assert "type" in found[1][1]
    assert "the key must be the project id, p1" in found[2][1]
    assert "there still is no project p1" in found[3][1]
    assert "a grant id is taken for good" in found[4][1]
    plans, outcomes = await replay_all(settings)
    assert [plan.fate for plan in plans] == [*[Fate.SEND] * 4, Fate.IMPOSSIBLE], "nobody reads them here"
    assert set(outcomes.values()) == {""}


async def test_what_workers_would_take_now_is_sent(settings: Settings) -> None:
    await die(settings, JOB_EVENTS, b"p1", LOOK, error="Unreadable", reason="an older release read it")
    await die(settings, PROJECT_REQUESTS, b"p1", CANCEL, error="UnknownProject", reason="no project p1")
    await die(settings, PROJECT_REQUESTS, b"p1", CANCEL, error="RequestRefused", reason="no such provider")
    await die(settings, SCENE_RESULTS, b"p1", SCENE_FAILED, error="UnknownScene", reason="no scene-009")
    await tell_state(settings, a_snapshot("p1"))

    assert await fates(settings) == [(Fate.SEND, "")] * 4


async def test_what_died_again_after_a_replay_is_sent_only_where_it_is_named_or_one_insists(
    settings: Settings,
) -> None:
    await die(settings, PROJECT_REQUESTS, b"p1", SUBMIT, error="RequestRefused", reason="no such provider")
    await die(settings, PROJECT_REQUESTS, b"p1", SUBMIT, error="RequestRefused", replayed="0")
    there = await envelopes(settings)

    again = await planned(settings, there, {"0"})
    named = await planned(settings, there, {"0"}, named=["1"])
    anyway = await planned(settings, there, {"0"}, anyway=True)

    assert [plan.fate for plan in again] == [Fate.DONE_BEFORE, Fate.IN_VAIN]
    assert again[1].why.startswith("it died again after the replay of 0; ")
    assert [plan.fate for plan in named] == [plan.fate for plan in anyway] == [Fate.DONE_BEFORE, Fate.SEND]


async def test_a_letter_of_credits_holds_nothing_back_where_credits_are_off(settings: Settings) -> None:
    await die(settings, CREDIT_REQUESTS, b"ann", b"x")
    await die(settings, PROJECT_REQUESTS, b"p1", b"fine")
    plans, outcomes = await replay_all(
        settings, list(await replayed_before(settings, await envelopes(settings)))
    )
    assert plans[0].fate is Fate.IMPOSSIBLE
    assert plans[0].why.endswith("SCENELOOM_CREDITS is off here; set it as the workers have it")
    assert outcomes == {"1": ""}


async def test_what_was_replayed_where_credits_are_on_is_known_where_they_are_off(settings: Settings) -> None:
    with_credits = settings.model_copy(update={"credits": "table"})
    await ensure_topics(with_credits)
    await die(settings, CREDIT_REQUESTS, b"ann", b"x")
    await replay_all(with_credits)
    assert await replayed_before(settings, await envelopes(settings)) == {"0"}


SUBMIT = encode(SubmitProject(project_id="p1", request=a_request(1)))


async def test_a_command_is_no_vain_one_where_the_same_replay_sends_the_request_before_it(
    settings: Settings,
) -> None:
    await die(settings, PROJECT_REQUESTS, b"p1", CANCEL, error="UnknownProject", reason="no project p1")
    await die(settings, PROJECT_REQUESTS, b"p1", SUBMIT, error="RequestRefused", reason="no such provider")
    await die(settings, PROJECT_REQUESTS, b"p1", CANCEL, error="UnknownProject", reason="no project p1")
    await die(settings, PROJECT_REQUESTS, b"p2", CANCEL.replace(b"p1", b"p2"), error="UnknownProject")
    there = await envelopes(settings)

    assert [each.is_submit for each in there] == [False, True, False, False]
    assert [fate for fate, _ in await fates(settings)] == [
        Fate.IN_VAIN,  # it is sent before the request
        Fate.SEND,
        Fate.SEND,
        Fate.IN_VAIN,
    ]
    alone = await planned(settings, [there[2]], ())
    assert [plan.fate for plan in alone] == [Fate.IN_VAIN]
    done = await planned(settings, there[1:3], {"1"})
    assert [plan.fate for plan in done] == [Fate.DONE_BEFORE, Fate.IN_VAIN], "it was refused again"
