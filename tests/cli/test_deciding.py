"""The commands that decide about a project, answered by a double of the worker on a real broker."""

import json
from datetime import timedelta
from typing import Any

import pytest

from models.commands import ApproveResend, CancelProject, RetryProject
from models.lifecycle import ProjectState
from models.snapshot import ProjectSnapshot
from models.work import Decision, JobKind, Question
from sceneloom.cli import following
from sceneloom.cli.outcomes import Outcome
from sceneloom.client import Refusal
from sceneloom.settings import Settings
from tests.cli.conftest import Run
from tests.cli.test_projects import completed, failed, refused, settings, tell
from tests.cli.worker_double import answering
from tests.stage import MOMENT, a_scene, a_snapshot

__all__ = ["settings"]

QUESTION = Question(
    job_id="film/scene-001/clip",
    kind=JobKind.CLIP,
    attempt=1,
    call=0,
    provider="ark",
    model="seedance",
    cost_usd=1.77,
    until=MOMENT + timedelta(days=1),
)


def in_doubt() -> ProjectSnapshot:
    return a_snapshot("film", scenes=(a_scene(1, questions=(QUESTION,), message="We ask you first."),))


def test_retry_and_cancel_show_how_the_project_stands_afterwards(run: Run, settings: Settings) -> None:
    tell(settings, failed("film"))

    def answer(command: Any) -> list[ProjectSnapshot | Refusal]:
        match command:
            case RetryProject():
                return [a_snapshot("film", version=10)]
            case CancelProject():
                return [a_snapshot("film", version=11, state=ProjectState.CANCELLED, message="Stopped.")]
            case _:
                return []

    with answering(settings, answer) as commands:
        retried = run("retry", "film")
        cancelled = run("cancel", "film", "--json")
    assert retried.exit_code == Outcome.DONE, retried.stderr
    assert "making the scenes" in retried.stdout
    assert json.loads(cancelled.stdout)["state"] == "Cancelled"
    assert commands.get().command_id != commands.get().command_id, "each is a command of its own"


def test_a_command_that_does_not_fit_is_refused_in_the_words_of_the_domain(
    run: Run, settings: Settings
) -> None:
    tell(settings, completed("film"))
    said = "project film is Completed and cannot become Cancelled"
    with answering(settings, lambda c: [refused("film", c.command_id, "illegal_transition", said)]):
        ended = run("cancel", "film")
    assert ended.exit_code == Outcome.FAILED
    assert ended.stderr == f"error: {said}; it is over already\n"


def test_a_command_that_no_worker_answers_is_said_to_be_sent(
    run: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(settings, failed("film"))
    monkeypatch.setattr(following, "_ANSWER_SECONDS", 1.0)
    ended = run("retry", "film")
    assert ended.exit_code == Outcome.TIMED_OUT
    assert "sent, but no worker has answered" in ended.stderr


def test_a_question_is_shown_with_its_cost_and_what_to_type(run: Run, settings: Settings) -> None:
    tell(settings, in_doubt())

    shown = run("status", "film").stdout

    assert "scene 1: needs your decision" in shown
    assert "ark accepted the clip ($1.77)" in shown
    assert (
        "`sceneloom approve film/scene-001/clip` sends it again, and pays again if it was accepted" in shown
    )
    assert "--task ID" in shown
    assert "--give-up" in shown


@pytest.mark.parametrize(
    ("options", "decision", "task"),
    [
        ([], Decision.RESEND, None),
        (["--task", "cgt-1"], Decision.ADOPT, "cgt-1"),
        (["--give-up"], Decision.GIVE_UP, None),
    ],
)
def test_approve_sends_the_decision_and_shows_how_the_project_stands_afterwards(
    run: Run, settings: Settings, options: list[str], decision: Decision, task: str | None
) -> None:
    tell(settings, in_doubt())

    with answering(settings, lambda _command: [a_snapshot("film", version=10)]) as commands:
        ended = run("approve", QUESTION.job_id, *options)
        command = commands.get(timeout=30)

    assert ended.exit_code == Outcome.DONE, ended.stderr
    assert isinstance(command, ApproveResend)
    assert (command.project_id, command.job_id) == ("film", QUESTION.job_id)
    assert (command.decision, command.provider_task_id) == (decision, task)
    assert "scene 1: in progress" in ended.stdout


def test_a_retry_carries_its_changes(run: Run, settings: Settings) -> None:
    tell(settings, failed("film"))
    words = ["--scene", "1", "--prompt", "a calm sea", "--provider", "clip=fal", "--max-cost", "5"]

    with answering(settings, lambda _command: [a_snapshot("film", version=10)]) as commands:
        ended = run("retry", "film", *words)
        command = commands.get(timeout=30)

    assert ended.exit_code == Outcome.DONE, ended.stderr
    assert isinstance(command, RetryProject)
    assert command.changes
    assert command.changes.model_dump(exclude_none=True) == {
        "scene_id": "scene-001",
        "prompt": "a calm sea",
        "providers": {"clip": "fal"},
        "max_cost_usd": 5.0,
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["retry", "film", "--prompt", "sea"], "go with --scene"),
        (["retry", "film", "--max-cost", "inf"], "--max-cost is inf; it must be a finite number"),
        (["retry", "film", "--provider", "ark"], "'ark' is not KIND=NAME"),
        (["retry", "film", "--provider", "video=ark"], "the kinds are image, speech, clip"),
        (["retry", "film", "--provider", "clip="], "'clip=' is not KIND=NAME"),
        (["approve", "film"], "'film' is no job"),
        (["approve", "film//clip"], "is no job"),
        (["approve", "film/scene-001/clip", "--task", "t", "--give-up"], "exclude each other"),
        (["approve", "film/scene-001/clip", "--task", ""], "--task: the id is empty"),
    ],
)
def test_a_wrong_argument_is_named_before_anything_is_sent(run: Run, words: list[str], said: str) -> None:
    ended = run(*words)

    assert ended.exit_code == Outcome.INVALID
    assert said in ended.stderr
