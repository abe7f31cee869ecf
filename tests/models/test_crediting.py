"""The saga of a project and its credits."""

from datetime import timedelta

import pytest

from models import crediting, decisions, facts, results
from models.checks import parse_request
from models.commands import CancelProject, RetryProject
from models.credit_messages import (
    CreditsRefused,
    CreditsReserved,
    CreditsSettled,
    ReserveCredits,
    SettleCredits,
)
from models.errors import ErrorCode
from models.events import CreditsRequested, Event, ProjectFailed, ProjectResumed, ScenesRequested
from models.lifecycle import ProjectState, SceneStatus
from models.project import Project
from models.snapshot import snapshot
from models.work import Tally
from tests.fakes import START, OneOffer, a_request
from tests.models.test_project import FIRST, SECOND, completed, failed

LATER = START + timedelta(minutes=1)
PRICE = OneOffer(0.15)


def after(project: Project, events: tuple[Event, ...]) -> Project:
    for event in events:
        project = project.evolve(event)
    return project


def submitted() -> tuple[Project, tuple[Event, ...]]:
    accepted, requested = decisions.submit("p1", parse_request(a_request(2)), now=START)
    project = Project.begin(accepted)
    events = crediting.credits_first(project, (requested,), PRICE.offer_for)
    return after(project, events), events


def told(project: Project, *messages: decisions.Message) -> Project:
    for message in messages:
        project = after(project, decisions.decide(project, message, now=LATER))
    return project


def retried(project: Project, name: str = "r1") -> tuple[Project, tuple[Event, ...]]:
    events = decisions.decide(project, RetryProject(project_id="p1", command_id=name), now=LATER)
    events = crediting.credits_first(project, events, PRICE.offer_for)
    return after(project, events), events


def reserved(version: int = 2) -> CreditsReserved:
    return CreditsReserved(user_id="u1", project_id="p1", version=version)


def refused(version: int = 2) -> CreditsRefused:
    return CreditsRefused(user_id="u1", project_id="p1", version=version)


def test_the_ledger_is_asked_for_the_whole_price_before_any_scene_is() -> None:
    project, events = submitted()

    assert project.state is ProjectState.CREATED
    assert [scene.status for scene in project.scenes] == [SceneStatus.PENDING] * 2
    assert crediting.orders(project, events) == (
        ReserveCredits(user_id="u1", project_id="p1", version=2, micros=600_000),
    )


def test_a_project_that_costs_nothing_skips_the_ledger() -> None:
    accepted, requested = decisions.submit("p1", parse_request(a_request(2)), now=START)
    project = Project.begin(accepted)

    events = crediting.credits_first(project, (requested,), OneOffer(0.0).offer_for)

    assert events == (requested,)
    cancelled = told(after(project, events), CancelProject(project_id="p1"))
    assert crediting.orders(cancelled, ()) == ()


def test_the_work_begins_when_the_credits_are_reserved_and_only_once() -> None:
    project, _ = submitted()

    events = decisions.decide(project, reserved(), now=LATER)
    begun = after(project, events)

    assert isinstance(events[0], ScenesRequested)
    assert begun.state is ProjectState.GENERATING_SCENES
    assert decisions.recall(project, reserved()) == ()
    assert decisions.recall(begun, reserved()) == events
    assert decisions.decide(begun, reserved(), now=LATER) == ()


def test_refused_credits_fail_the_project_with_a_message_and_nothing_is_asked_for() -> None:
    project, _ = submitted()

    events = decisions.decide(project, refused(), now=LATER)
    over = after(project, events)

    (event,) = events
    assert isinstance(event, ProjectFailed)
    assert event.error_code is ErrorCode.INSUFFICIENT_CREDITS
    assert (event.scene_id, event.attempt) == ("credits", 1)
    assert snapshot(over).message == event.message
    assert "credits" in event.message
    assert decisions.recall(over, refused()) == events
    assert [scene.attempt for scene in over.scenes] == [0, 0]


def test_a_retry_after_a_refusal_asks_again_and_a_second_refusal_is_another_event() -> None:
    project, _ = submitted()
    over = told(project, refused())

    again, events = retried(over)

    assert [type(event) for event in events] == [ProjectResumed, CreditsRequested]
    assert decisions.recall(again, RetryProject(project_id="p1", command_id="r1")) == events
    version = events[-1].version
    (second,) = decisions.decide(again, refused(version), now=LATER)
    first = facts.credits_refused(over, over.reservation, ErrorCode.INSUFFICIENT_CREDITS, over.finished)  # type: ignore[arg-type]
    assert second.event_id != first.event_id
    assert after(again, (second,)).state is ProjectState.FAILED
    assert told(again, reserved(version)).state is ProjectState.GENERATING_SCENES


def test_a_retry_reserves_what_was_spent_and_what_is_missing() -> None:
    project, _ = submitted()
    failing = failed(SECOND).model_copy(update={"tally": Tally(bought=1, spent_usd=0.15)})
    failing = failing.model_copy(
        update={"assets": completed(SECOND).assets.model_copy(update={"audio_url": None})}
    )
    over = told(project, reserved(), completed(FIRST), failing)
    assert over.state is ProjectState.FAILED

    again, events = retried(over)

    # 0.15 for the first scene and 0.15 for the picture of the second are spent; its narration is missing.
    (order,) = crediting.orders(again, events)
    assert order == ReserveCredits(user_id="u1", project_id="p1", version=again.version, micros=450_000)


def test_a_retry_that_changes_the_request_reserves_what_is_wanted_otherwise_until_work_has_begun() -> None:
    project, _ = submitted()
    over = told(
        project,
        reserved(),
        completed(FIRST),
        failed(SECOND).model_copy(update={"assets": completed(SECOND).assets}),
    )
    first, second = over.request.scenes
    other = second.model_copy(update={"prompt": "a calm sea"})
    changed = over.request.model_copy(update={"scenes": (first, other)})
    retry = RetryProject(project_id="p1", command_id="r1")
    events = decisions.decide(over, retry, now=LATER, request=changed)

    events = crediting.credits_first(over, events, PRICE.offer_for)

    asked = events[-1]
    assert isinstance(asked, CreditsRequested)
    assert asked.micros == 150_000 + 150_000
    refused = told(after(over, events), CreditsRefused(user_id="u1", project_id="p1", version=asked.version))
    again = RetryProject(project_id="p1", command_id="r2")
    once_more = crediting.credits_first(
        refused, decisions.decide(refused, again, now=LATER), PRICE.offer_for
    )[-1]
    assert isinstance(once_more, CreditsRequested)
    assert once_more.micros == 150_000 + 150_000


@pytest.mark.parametrize("ending", ["failed", "cancelled"])
def test_every_end_settles_what_was_really_spent_and_again_whenever_it_is_told(ending: str) -> None:
    project, _ = submitted()
    begun = told(project, reserved(), completed(FIRST))
    assert crediting.orders(begun, ()) == ()

    over = told(begun, failed(SECOND) if ending == "failed" else CancelProject(project_id="p1"))

    order = SettleCredits(user_id="u1", project_id="p1", version=over.version, micros=150_000)
    assert crediting.orders(over, ()) == (order,)
    assert crediting.orders(over, (facts.accepted(over),)) == (order,)


def test_a_project_cancelled_before_the_ledger_has_answered_settles_nothing_and_stays_cancelled() -> None:
    project, _ = submitted()
    over = told(project, CancelProject(project_id="p1"))

    assert crediting.orders(over, ()) == (SettleCredits(user_id="u1", project_id="p1", version=3, micros=0),)
    assert decisions.recall(over, reserved()) == ()
    assert decisions.decide(over, reserved(), now=LATER) == ()
    assert decisions.decide(over, refused(), now=LATER) == ()


def test_the_answer_to_an_earlier_question_is_not_the_answer_to_this_one() -> None:
    project, _ = submitted()
    again, _ = retried(told(project, refused()))

    assert decisions.decide(again, reserved(2), now=LATER) == ()
    assert decisions.recall(again, refused(2)) == ()


def test_a_cost_that_becomes_known_after_the_end_is_settled_again() -> None:
    project, _ = submitted()
    over = told(project, reserved(), CancelProject(project_id="p1"))
    stopped = results.SceneStopped(
        project_id="p1", scene_id=FIRST, attempt=1, tally=Tally(orphaned=1, spent_usd=0.15), revision=9
    )

    later = told(over, stopped)

    assert later.version > over.version
    assert crediting.orders(later, ()) == (
        SettleCredits(user_id="u1", project_id="p1", version=later.version, micros=150_000),
    )


def test_that_the_credits_are_settled_leads_to_nothing_more() -> None:
    project, _ = submitted()
    over = told(project, refused())
    settled = CreditsSettled(user_id="u1", project_id="p1", version=over.version)

    assert decisions.recall(over, settled) == ()
    assert decisions.decide(over, settled, now=LATER) == ()


def test_an_old_result_that_comes_after_a_refused_retry_recalls_the_refusal() -> None:
    project, _ = submitted()
    over = told(project, reserved(), completed(FIRST), failed(SECOND))
    again, events = retried(over)
    twice_over = told(again, refused(events[-1].version))

    *_, last = decisions.recall(twice_over, failed(SECOND))

    assert isinstance(last, ProjectFailed)
    assert (last.scene_id, last.error_code) == ("credits", ErrorCode.INSUFFICIENT_CREDITS)
