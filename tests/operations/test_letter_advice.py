"""What an operator is told to do fits the topic where a message died, and the reason."""

from typing import Any

import pytest

from sceneloom.operations.letter_advice import advice
from sceneloom.operations.letters import Letter, judged
from sceneloom.operations.rereading import FROM_OUTSIDE, READ_BY_WORKERS
from sceneloom.settings import Settings
from tests.operations.test_letters import a_letter

SETTINGS = Settings(_env_file=None, topic_prefix="x-", credits="table")
INTERNAL = sorted(set(READ_BY_WORKERS) - FROM_OUTSIDE)
CANCEL = b'{"type": "CancelProject", "project_id": "p1"}'


def dead(topic: str, error: str = "Unreadable", *, value: bytes = b"{", **ours: Any) -> Letter:
    told = {"topic": f"x-{topic}", "partition": 3, "offset": 7, "error": error} | ours
    headers = [(f"sceneloom-{name}", str(text).encode()) for name, text in told.items()]
    return judged(a_letter(headers=headers, key=b"p1", value=value), SETTINGS)


def told(topic: str, error: str = "Unreadable", **ours: Any) -> str:
    return advice(dead(topic, error, **ours), SETTINGS)


@pytest.mark.parametrize("topic", INTERNAL)
@pytest.mark.parametrize("error", ["Unreadable", "IllegalTransition", "UnknownScene", "VersionConflict"])
def test_nobody_is_sent_to_a_producer_for_what_workers_wrote(topic: str, error: str) -> None:
    for ours in ({}, {"omitted": 5_000_000}):
        assert "sender" not in told(topic, error, **ours)


@pytest.mark.parametrize("topic", sorted(FROM_OUTSIDE))
def test_what_a_producer_wrote_wrongly_is_for_it_to_correct(topic: str) -> None:
    assert told(topic).startswith("its sender must correct it and send it anew")
    assert "at most 900000 bytes" in told(topic, omitted=5_000_000)


@pytest.mark.parametrize("topic", INTERNAL)
def test_what_a_newer_worker_wrote_is_for_the_newer_release_to_replay(topic: str) -> None:
    assert f"only workers and the gateway write to {topic}: if a newer release did" in told(topic)


def test_what_can_be_read_by_now_is_to_be_replayed() -> None:
    assert "this release can read it" in told("project-requests", value=CANCEL)
    assert dead("project-requests", value=CANCEL).unreadable == ""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("RequestRefused", "ProjectRejected told its sender"),
        ("UnknownProject", "replay once `sceneloom status` knows the project"),
    ],
)
def test_a_request_is_advised_by_why_it_was_refused(error: str, words: str) -> None:
    assert words in told("project-requests", error, value=CANCEL)


def test_a_grant_is_not_replayed_but_made_under_another_id() -> None:
    assert "--grant-id" in told("credit-requests", "GrantConflict")


@pytest.mark.parametrize("topic", ["credit-requests", "credit-results"])
def test_what_workers_read_by_a_setting_that_is_missing_here_is_not_taken_for_a_strangers(topic: str) -> None:
    here = SETTINGS.model_copy(update={"credits": "off"})
    letter = judged(dead(topic), here)
    assert (
        advice(letter, here) == "SCENELOOM_CREDITS is off here; set it as the workers have it, and ask again"
    )


def test_what_died_nowhere_of_ours_cannot_be_replayed() -> None:
    assert "it cannot be replayed" in told("project-states")
