"""Follows one project on Kafka, from its latest snapshot to the last."""

import asyncio
from collections.abc import Callable
from typing import Final

from models.commands import ApproveResend, CancelProject, ProjectCommand, RetryProject, SubmitProject
from models.events import CommandRefused, ProjectRejected
from models.lifecycle import ProjectState
from models.snapshot import ProjectSnapshot
from sceneloom.cli.outcomes import Outcome, Stop, no_such_project
from sceneloom.cli.view import View, open_questions
from sceneloom.client import Reader, Refusal, read_state, refusal_in, send, snapshot_in
from sceneloom.settings import Settings
from sceneloom.topics import PROJECT_EVENTS, PROJECT_STATES

_ENDS: Final = frozenset({ProjectState.COMPLETED, ProjectState.FAILED, ProjectState.CANCELLED})
_PATIENCE_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = 20.0

Show = Callable[[ProjectSnapshot], None]


def is_over(snapshot: ProjectSnapshot) -> bool:
    """Tell whether the project is not being worked on any more."""
    return snapshot.state in _ENDS


async def follow(
    settings: Settings,
    project_id: str,
    show: Show,
    *,
    command: ProjectCommand | None = None,
    until: Callable[[ProjectSnapshot], bool] = is_over,
    hint: Callable[[str], None] | None = None,
    wait_for_it: bool = False,
) -> ProjectSnapshot:
    """Send *command*, if any, then show each snapshot *until* one is the last, and return it.

    *hint* hears when nobody answers for a while. Raises `Stop` for an unknown project and a refused command.
    """
    states = Reader(settings, PROJECT_STATES, only_new=(PROJECT_EVENTS,), project_id=project_id)
    async with states as reader:
        latest = None
        async for record in reader.history():
            latest = snapshot_in(record) or latest
        if latest and not isinstance(command, SubmitProject):
            show(latest)
        if command:
            await send(settings, command)
        elif latest is None and not wait_for_it:
            raise no_such_project(project_id)
        elif latest and until(latest):
            return latest
        waiting = asyncio.get_running_loop().call_later(
            _PATIENCE_SECONDS,
            hint or (lambda _text: None),
            "no news for a while; is a worker running? `sceneloom lag` tells",
        )
        try:
            async for record in reader.news():
                waiting.cancel()
                refusal = refusal_in(record)
                refuse(refusal, command)
                if command is None and latest is None:
                    _tell_rejection(refusal)
                snapshot = snapshot_in(record)
                if snapshot:
                    show(snapshot)
                    if until(snapshot):
                        return snapshot
        finally:
            waiting.cancel()
    raise AssertionError("news never end")


async def ask(settings: Settings, command: ProjectCommand) -> ProjectSnapshot:
    """Send *command* about a project that exists, and return how that stands after it.

    Raises `Stop` for an unknown project, for a refusal, and where no worker answers.
    """
    before = await read_state(settings, command.project_id)
    if before is None:
        raise no_such_project(command.project_id)

    def is_answer(snapshot: ProjectSnapshot) -> bool:
        # Anything else may come from work that goes on meanwhile; a refusal is an event.
        if isinstance(command, CancelProject):
            return snapshot.state is ProjectState.CANCELLED
        if isinstance(command, ApproveResend):
            return all(question.job_id != command.job_id for question in open_questions(snapshot))
        return before.state is ProjectState.FAILED and snapshot.state is not ProjectState.FAILED

    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return await follow(
                settings,
                command.project_id,
                lambda _snapshot: None,
                command=command,
                until=is_answer,
            )
    except TimeoutError as error:
        raise Stop(
            f"sent, but no worker has answered within {_ANSWER_SECONDS:g} s: it is carried out once one runs "
            "(`sceneloom worker`)",
            Outcome.TIMED_OUT,
        ) from error


def _tell_rejection(refusal: Refusal | None) -> None:
    """Raise `Stop` where the project that somebody waits for will never be."""
    if isinstance(refusal, ProjectRejected):
        raise Stop(f"the request was refused:\n{_listed(refusal)}", Outcome.FAILED)


def _listed(rejected: ProjectRejected) -> str:
    return "\n".join(f"  {fault.path}: {fault.message}" for fault in rejected.faults)


def refuse(refusal: Refusal | None, command: ProjectCommand | None) -> None:
    """Raise `Stop` where *refusal* answers *command*."""
    if refusal is None or command is None or refusal.command_id != command.command_id:
        return
    if isinstance(refusal, ProjectRejected):
        raise Stop(f"the request was refused:\n{_listed(refusal)}", Outcome.INVALID)
    raise Stop(f"{refusal.message}{_advice(refusal, command)}", Outcome.FAILED)


def _advice(refusal: CommandRefused, command: ProjectCommand) -> str:
    match refusal.rule, command:
        case "project_exists", _:
            return "; choose another with --project-id"
        case "illegal_transition", RetryProject():
            return (
                "; only a failed project can be retried: watch an open one, and submit a cancelled one anew"
            )
        case "illegal_transition", CancelProject():
            return "; it is over already"
        case _:
            return ""


def watch_to_end(
    settings: Settings,
    project_id: str,
    view: View,
    *,
    command: ProjectCommand | None = None,
    timeout: float | None = None,
    wait_for_it: bool = False,
) -> ProjectSnapshot:
    """Follow the project in *view* until it is over. Raises `Stop` for Ctrl-C and after *timeout* seconds."""

    async def watch() -> ProjectSnapshot:
        async with asyncio.timeout(timeout):
            return await follow(
                settings, project_id, view.show, command=command, hint=view.say, wait_for_it=wait_for_it
            )

    again = f"the work goes on; watch it again with `sceneloom watch {project_id}`"
    try:
        with view:
            return asyncio.run(watch())
    except KeyboardInterrupt:
        raise Stop(f"stopped watching: {again}", Outcome.INTERRUPTED) from None
    except TimeoutError as error:
        raise Stop(f"{project_id} is not done after {timeout:g} s: {again}", Outcome.TIMED_OUT) from error
