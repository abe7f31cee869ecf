"""The Project aggregate and its decisions."""

from datetime import timedelta

import pytest

from models import decisions, facts, results
from models.checks import parse_request
from models.commands import (
    ApproveResend,
    CancelProject,
    CancelScene,
    Changes,
    ResolveSubmit,
    RetryProject,
    TakeOverProject,
)
from models.errors import (
    ErrorCode,
    IllegalTransition,
    NothingToAdopt,
    NothingToConfirm,
    SceneNotMissing,
    UnknownScene,
    VersionConflict,
)
from models.events import (
    ConfirmationAnswered,
    ConfirmationNeeded,
    Event,
    ProjectCompleted,
    ProjectDelayed,
    ProjectFailed,
    ProjectResumed,
    ReceiptChanged,
    RenderRequested,
    SceneCompleted,
    ScenesRequested,
)
from models.identifiers import FILM
from models.lifecycle import ProjectState, SceneStatus
from models.project import Project
from models.snapshot import snapshot
from models.work import Assets, Decision, JobKind, Question, RenderRequest, Tally
from tests.fakes import START, a_request

LATER = START + timedelta(minutes=1)
FIRST, SECOND = "scene-001", "scene-002"
BOUGHT = Tally(bought=2, spent_usd=0.15)


def after(project: Project, events: tuple[Event, ...]) -> Project:
    for event in events:
        project = project.evolve(event)
    return project


def submitted(scenes: int = 2) -> Project:
    accepted, requested = decisions.submit("p1", parse_request(a_request(scenes)), now=START)
    return after(Project.begin(accepted), (requested,))


def completed(scene: str, attempt: int = 1) -> results.SceneCompleted:
    assets = Assets(image_url=f"mem://{scene}.png", audio_url=f"mem://{scene}.wav", seconds=2.0)
    return results.SceneCompleted(
        project_id="p1", scene_id=scene, attempt=attempt, assets=assets, tally=BOUGHT, finished_jobs=2
    )


def failed(scene: str, attempt: int = 1) -> results.SceneFailed:
    return results.SceneFailed(
        project_id="p1", scene_id=scene, attempt=attempt, error_code=ErrorCode.MODERATION_REJECTED
    )


def told(project: Project, *messages: decisions.Message) -> Project:
    for message in messages:
        project = after(project, decisions.decide(project, message, now=LATER))
    return project


def test_a_submitted_project_has_all_its_scenes_in_progress() -> None:
    project = submitted()

    assert project.state is ProjectState.GENERATING_SCENES
    assert [scene.status for scene in project.scenes] == [SceneStatus.IN_PROGRESS] * 2
    assert project.version == 2


def test_the_film_is_asked_for_when_the_last_scene_is_completed() -> None:
    project = told(submitted(), completed(SECOND))
    assert project.state is ProjectState.GENERATING_SCENES

    events = decisions.decide(project, completed(FIRST), now=LATER)
    project = after(project, events)

    assert isinstance(events[-1], RenderRequested)
    assert project.state is ProjectState.RENDERING
    (order,) = project.orders(events[-1])
    render = order.wants[0].request  # type: ignore[union-attr]
    assert isinstance(render, RenderRequest)
    assert [scene.scene_id for scene in render.scenes] == [FIRST, SECOND]


def test_a_result_delivered_twice_completes_the_scene_once() -> None:
    project = told(submitted(), completed(FIRST))

    assert decisions.decide(project, completed(FIRST), now=LATER) == ()


def test_what_a_message_led_to_is_recalled_as_the_same_events() -> None:
    before = submitted()
    events = decisions.decide(before, completed(FIRST), now=LATER)
    project = after(before, events)

    recalled = decisions.recall(project, completed(FIRST))

    assert [event.event_id for event in recalled] == [event.event_id for event in events]
    assert recalled == events


def test_the_last_result_recalls_the_request_for_the_film_while_it_is_made() -> None:
    before = told(submitted(), completed(FIRST))
    events = decisions.decide(before, completed(SECOND), now=LATER)
    project = after(before, events)

    assert decisions.recall(project, completed(SECOND)) == events


def test_a_finished_film_completes_the_project_with_its_receipt() -> None:
    project = told(submitted(), completed(FIRST), completed(SECOND))
    film = results.SceneCompleted(
        project_id="p1",
        scene_id=FILM,
        attempt=1,
        assets=Assets(video_url="mem://film.mp4", seconds=9.0),
        tally=Tally(bought=1),
    )

    (event,) = decisions.decide(project, film, now=LATER)

    assert isinstance(event, ProjectCompleted)
    assert (event.receipt.bought, event.receipt.spent_usd) == (5, 0.3)
    done = project.evolve(event)
    assert done.state is ProjectState.COMPLETED
    assert decisions.recall(done, film) == (event,)


def test_a_failed_scene_does_not_stop_its_siblings() -> None:
    project = told(submitted(), failed(FIRST))

    assert project.state is ProjectState.GENERATING_SCENES

    events = decisions.decide(project, completed(SECOND), now=LATER)
    assert isinstance(events[0], SceneCompleted)
    assert isinstance(events[1], ProjectFailed)
    assert events[1].scene_id == FIRST


def test_a_retry_asks_only_for_what_is_missing_and_tells_what_is_kept() -> None:
    project = told(submitted(), completed(SECOND), failed(FIRST))
    assert project.state is ProjectState.FAILED

    resumed, requested = decisions.decide(project, RetryProject(project_id="p1", command_id="c1"), now=LATER)

    assert isinstance(resumed, ProjectResumed)
    assert resumed.kept == BOUGHT
    assert isinstance(requested, ScenesRequested)
    assert requested.scene_ids == (FIRST,)
    project = after(project, (resumed, requested))
    assert project.receipt.reused == 2
    assert project.receipt.saved_usd == 0.15
    assert project.part(FIRST).attempt == 2


def test_a_retry_delivered_twice_is_the_same_retry() -> None:
    retry = RetryProject(project_id="p1", command_id="c1")
    failed_project = told(submitted(1), failed(FIRST))
    events = decisions.decide(failed_project, retry, now=LATER)
    project = after(failed_project, events)

    assert decisions.recall(project, retry) == events


def test_a_late_answer_to_an_earlier_attempt_changes_nothing() -> None:
    project = told(submitted(1), failed(FIRST), RetryProject(project_id="p1", command_id="c1"))

    assert decisions.decide(project, completed(FIRST, attempt=1), now=LATER) == ()
    assert decisions.decide(project, completed(FIRST, attempt=2), now=LATER) != ()


def test_a_project_whose_render_failed_renders_again_and_makes_no_scene_again() -> None:
    film_failed = results.SceneFailed(
        project_id="p1", scene_id=FILM, attempt=1, error_code=ErrorCode.PROVIDER_UNAVAILABLE
    )
    project = told(submitted(1), completed(FIRST), film_failed)
    assert project.state is ProjectState.FAILED

    events = decisions.decide(project, RetryProject(project_id="p1", command_id="c1"), now=LATER)

    assert isinstance(events[-1], RenderRequested)
    assert after(project, events).state is ProjectState.RENDERING


def test_a_cancelled_project_ignores_what_still_arrives() -> None:
    project = told(submitted(), CancelProject(project_id="p1"))

    assert project.state is ProjectState.CANCELLED
    assert decisions.decide(project, completed(FIRST), now=LATER) == ()


@pytest.mark.parametrize("command", [CancelProject(project_id="p1"), RetryProject(project_id="p1")])
def test_a_completed_project_can_be_neither_cancelled_nor_retried(
    command: CancelProject | RetryProject,
) -> None:
    film = results.SceneCompleted(project_id="p1", scene_id=FILM, attempt=1)
    project = told(submitted(1), completed(FIRST), film)

    with pytest.raises(IllegalTransition, match="Completed"):
        decisions.decide(project, command, now=LATER)


def test_a_command_for_another_version_is_refused_with_the_current_one() -> None:
    with pytest.raises(VersionConflict, match="version 2"):
        decisions.decide(submitted(), CancelProject(project_id="p1", expected_version=1), now=LATER)


def test_a_delayed_scene_is_told_once_and_in_the_users_words() -> None:
    delayed = results.SceneDelayed(project_id="p1", scene_id=FIRST, attempt=1)
    project = submitted()

    (event,) = decisions.decide(project, delayed, now=LATER)
    project = project.evolve(event)

    assert isinstance(event, ProjectDelayed)
    assert event.message
    assert decisions.decide(project, delayed, now=LATER) == ()
    assert decisions.recall(project, delayed) == (event,)


def test_a_takeover_notes_what_was_kept_once_for_each_interruption() -> None:
    project = told(submitted(), completed(FIRST))
    takeover = TakeOverProject(
        project_id="p1", command_id="t1", expected_version=project.version, kept=BOUGHT
    )

    project = told(project, takeover)

    assert project.receipt.reused == 2
    older = TakeOverProject(project_id="p1", command_id="t0", expected_version=1)
    assert decisions.decide(project, older, now=LATER) == ()


def test_an_event_that_is_not_newer_changes_nothing() -> None:
    project = submitted()
    (event, *_) = decisions.decide(project, completed(FIRST), now=LATER)
    project = project.evolve(event)

    assert project.evolve(event) is project


def test_a_result_for_a_scene_that_the_project_does_not_have_is_refused() -> None:
    with pytest.raises(UnknownScene, match="scene-009"):
        decisions.decide(submitted(), completed("scene-009"), now=LATER)


QUESTION = Question(
    job_id="p1/scene-001/clip",
    kind=JobKind.CLIP,
    attempt=1,
    call=0,
    provider="house",
    model="m1",
    cost_usd=0.15,
    until=LATER + timedelta(days=1),
)
UNCLEAR = results.SceneUnclear(project_id="p1", scene_id=FIRST, attempt=1, question=QUESTION)
APPROVE = ApproveResend(project_id="p1", command_id="a1", job_id=QUESTION.job_id)


def test_an_unclear_call_is_told_with_its_possible_cost_and_shown_until_it_is_decided() -> None:
    project = submitted()
    (event,) = decisions.decide(project, UNCLEAR, now=LATER)
    project = project.evolve(event)

    assert isinstance(event, ConfirmationNeeded)
    assert event.question == QUESTION
    assert decisions.recall(project, UNCLEAR) == (event,)
    assert snapshot(project).scenes[0].questions == (QUESTION,)
    assert "pay twice" in snapshot(project).message

    project = told(project, APPROVE)
    assert snapshot(project).scenes[0].questions == ()
    assert decisions.recall(project, UNCLEAR) == (event,)


def test_a_decision_goes_to_the_job_it_is_about_and_is_the_same_when_it_comes_again() -> None:
    before = told(submitted(), UNCLEAR)
    adopt = ApproveResend(
        project_id="p1",
        command_id="a1",
        job_id=QUESTION.job_id,
        decision=Decision.ADOPT,
        provider_task_id="t-9",
    )

    (event,) = decisions.decide(before, adopt, now=LATER)
    project = before.evolve(event)

    assert isinstance(event, ConfirmationAnswered)
    assert project.orders(event) == (
        ResolveSubmit(
            project_id="p1",
            job_id=QUESTION.job_id,
            attempt=1,
            call=0,
            decision=Decision.ADOPT,
            provider_task_id="t-9",
        ),
    )
    assert decisions.recall(project, adopt) == (event,)


def test_a_second_decision_and_one_that_nobody_asked_for_are_refused() -> None:
    asked = told(submitted(), UNCLEAR)
    answered = told(asked, APPROVE)

    with pytest.raises(NothingToConfirm, match="scene-001/clip"):
        decisions.decide(answered, APPROVE.model_copy(update={"command_id": "a2"}), now=LATER)
    with pytest.raises(NothingToConfirm):
        decisions.decide(submitted(), APPROVE, now=LATER)
    with pytest.raises(NothingToConfirm):
        decisions.decide(told(asked, CancelProject(project_id="p1")), APPROVE, now=LATER)


def test_a_resend_that_is_unclear_again_is_a_new_question() -> None:
    project = told(submitted(), UNCLEAR, APPROVE)
    again = UNCLEAR.model_copy(update={"question": QUESTION.model_copy(update={"call": 1})})

    project = told(project, again)

    assert [each.call for each in project.part(FIRST).open_questions] == [1]


def test_adopting_needs_the_task_and_nothing_else_takes_one() -> None:
    with pytest.raises(ValueError, match="adopt needs it"):
        ApproveResend(project_id="p1", job_id="j", decision=Decision.ADOPT)
    with pytest.raises(ValueError, match="goes with the decision adopt"):
        ApproveResend(project_id="p1", job_id="j", provider_task_id="t-9")


def stopped(revision: int, tally: Tally) -> results.SceneStopped:
    return results.SceneStopped(project_id="p1", scene_id=FIRST, attempt=1, revision=revision, tally=tally)


def test_what_a_cancelled_scene_has_really_cost_changes_the_receipt_and_not_the_end() -> None:
    before = submitted()
    (cancelled,) = decisions.decide(before, CancelProject(project_id="p1"), now=LATER)
    project = before.evolve(cancelled)
    assert project.orders(cancelled) == tuple(
        CancelScene(project_id="p1", scene_id=scene, attempt=1) for scene in (FIRST, SECOND)
    )
    orphaned = stopped(5, Tally(orphaned=1, spent_usd=0.15, orphaned_usd=0.15))

    (event,) = decisions.decide(project, orphaned, now=LATER)
    project = project.evolve(event)

    assert isinstance(event, ReceiptChanged)
    assert (project.receipt.orphaned, project.receipt.spent_usd) == (1, 0.15)
    assert decisions.recall(project, orphaned) == (event,)
    assert decisions.recall(project, CancelProject(project_id="p1")) == (cancelled,)

    (event,) = decisions.decide(project, stopped(6, Tally()), now=LATER)
    project = project.evolve(event)
    assert project.receipt.orphaned == 0
    assert decisions.decide(project, orphaned, now=LATER) == ()


def test_a_scene_that_was_finished_while_its_project_was_cancelled_is_counted() -> None:
    project = told(submitted(), CancelProject(project_id="p1"))
    finished = completed(FIRST).model_copy(update={"revision": 4})

    (event,) = decisions.decide(project, finished, now=LATER)

    assert project.evolve(event).receipt.spent_usd == 0.15


def a_failure() -> Project:
    return told(submitted(), completed(SECOND), failed(FIRST))


def changed(project: Project, changes: Changes) -> dict[str, object]:
    return decisions.changed(project.request, changes, project)


def test_a_retry_may_change_the_missing_scene_and_is_told_with_the_new_request() -> None:
    before = a_failure()
    changes = Changes(scene_id=FIRST, prompt="a calm sea", providers={"image": "openai"})
    retry = RetryProject(project_id="p1", command_id="c1", changes=changes)
    request = parse_request(changed(before, changes))

    events = decisions.decide(before, retry, now=LATER, request=request)
    project = after(before, events)

    (order,) = project.orders(events[-1])
    picture, speech = order.wants  # type: ignore[union-attr]
    assert picture.request.prompt == "a calm sea"  # type: ignore[union-attr]
    assert picture.provider == "openai"
    assert speech.provider is None
    assert decisions.recall(project, retry) == events


def test_a_retry_may_raise_the_budget_and_choose_a_provider_for_all() -> None:
    project = a_failure()
    raw = changed(project, Changes(max_cost_usd=9.5, providers={"speech": "openai"}))

    request = parse_request(raw)
    assert request.max_cost_usd == 9.5
    assert request.providers == {"speech": "openai"}
    assert request.scenes == project.request.scenes


def test_a_finished_scene_and_one_that_is_not_there_cannot_be_changed() -> None:
    with pytest.raises(SceneNotMissing, match="scene-002"):
        changed(a_failure(), Changes(scene_id=SECOND, prompt="other"))
    for scene in ("scene-009", FILM):
        with pytest.raises(UnknownScene, match=scene):
            changed(a_failure(), Changes(scene_id=scene, prompt="other"))


def test_without_changes_the_request_stays_as_it_is() -> None:
    project = a_failure()

    assert parse_request(changed(project, Changes())) == project.request


def progressed(revision: int, **facts: object) -> results.SceneProgressed:
    return results.SceneProgressed.model_validate(
        {"project_id": "p1", "scene_id": FIRST, "attempt": 1, "revision": revision, **facts}
    )


def test_a_question_that_a_webhook_has_answered_is_not_asked_any_more() -> None:
    asked = told(submitted(), UNCLEAR.model_copy(update={"revision": 5, "asking": (QUESTION.job_id,)}))
    stale = told(asked, progressed(4))
    assert stale.part(FIRST).open_questions == (QUESTION,)

    project = told(asked, progressed(6))

    assert project.part(FIRST).open_questions == ()
    with pytest.raises(NothingToConfirm):
        decisions.decide(project, APPROVE, now=LATER)


def test_what_an_open_scene_has_cost_is_shown_though_it_came_no_further() -> None:
    orphan = Tally(orphaned=1, spent_usd=0.15, orphaned_usd=0.15)

    project = told(submitted(), progressed(5, tally=orphan))

    assert project.receipt.orphaned == 1
    assert decisions.decide(project, progressed(6, tally=orphan), now=LATER) == ()


def test_a_picture_that_is_a_task_can_be_gone_on_with() -> None:
    picture = QUESTION.model_copy(
        update={"job_id": "p1/scene-001/image", "kind": JobKind.IMAGE, "as_task": True}
    )
    asked = told(submitted(), UNCLEAR.model_copy(update={"question": picture}))
    adopt = ApproveResend(
        project_id="p1",
        command_id="a1",
        job_id=picture.job_id,
        decision=Decision.ADOPT,
        provider_task_id="t-9",
    )

    assert decisions.decide(asked, adopt, now=LATER)


def test_a_call_that_makes_no_task_cannot_be_gone_on_with() -> None:
    speech = QUESTION.model_copy(update={"job_id": "p1/scene-001/speech", "kind": JobKind.SPEECH})
    asked = told(submitted(), UNCLEAR.model_copy(update={"question": speech}))
    adopt = ApproveResend(
        project_id="p1",
        command_id="a1",
        job_id=speech.job_id,
        decision=Decision.ADOPT,
        provider_task_id="t-9",
    )

    with pytest.raises(NothingToAdopt, match="has no task"):
        decisions.decide(asked, adopt, now=LATER)


def test_a_retry_in_other_words_forgets_what_was_made_for_the_old_ones() -> None:
    half = failed(FIRST).model_copy(update={"assets": completed(FIRST).assets})
    before = told(submitted(), completed(SECOND), half)
    changes = Changes(scene_id=FIRST, prompt="a calm sea")
    retry = RetryProject(project_id="p1", command_id="c1", changes=changes)

    project = after(
        before, decisions.decide(before, retry, now=LATER, request=parse_request(changed(before, changes)))
    )

    assets = project.part(FIRST).assets
    assert assets.image_url is None
    assert assets.audio_url is not None


def test_a_retry_of_one_scene_asks_for_that_scene_only_and_the_others_keep_their_fault() -> None:
    before = told(submitted(), failed(FIRST), failed(SECOND))
    changes = Changes(scene_id=SECOND)
    retry = RetryProject(project_id="p1", command_id="c1", changes=changes)
    events = decisions.decide(before, retry, now=LATER, request=parse_request(changed(before, changes)))

    project = after(before, events)

    assert isinstance(events[-1], ScenesRequested)
    assert events[-1].scene_ids == (SECOND,)
    assert decisions.recall(project, retry) == events
    (*_, end) = decisions.decide(project, completed(SECOND, attempt=2), now=LATER)
    assert isinstance(end, ProjectFailed)
    assert end.scene_id == FIRST


def test_a_retry_of_one_scene_also_asks_for_those_that_never_began() -> None:
    accepted, _ = decisions.submit("p1", parse_request(a_request(2)), now=START)
    waiting = Project.begin(accepted).model_copy(update={"retried": FIRST})

    asked = facts.work_requested(waiting, facts.next_moment(waiting, LATER))

    assert isinstance(asked, ScenesRequested)
    assert asked.scene_ids == (FIRST, SECOND)


def test_a_scene_that_failed_keeps_its_reason_when_the_project_is_cancelled() -> None:
    project = told(submitted(), failed(FIRST), CancelProject(project_id="p1"))

    first, second = snapshot(project).scenes

    assert "content rules" in first.message
    assert second.message == snapshot(project).message
    assert not second.delayed
