"""The projects agent: the one writer of the projects table."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from models import crediting, decisions
from models.checks import parse_request
from models.commands import (
    ApproveResend,
    CancelProject,
    Changes,
    ProjectCommand,
    RetryProject,
    SubmitProject,
)
from models.credit_messages import CreditAnswer
from models.errors import (
    DomainError,
    IllegalTransition,
    NothingToAdopt,
    NothingToConfirm,
    SceneNotMissing,
    UnknownProject,
    UnknownScene,
    VersionConflict,
)
from models.events import INTERNAL, CommandRefused, Event, ProjectRejected
from models.faults import RequestRefused
from models.ports import Admission, Clock, Offers, ProjectStore, Publisher
from models.project import Project
from models.request import ProjectRequest
from models.results import SceneResult
from models.snapshot import snapshot

_RULES: Final[Mapping[type[DomainError], str]] = MappingProxyType(
    {
        VersionConflict: "version_conflict",
        IllegalTransition: "illegal_transition",
        NothingToConfirm: "nothing_to_confirm",
        NothingToAdopt: "nothing_to_adopt",
        SceneNotMissing: "scene_not_missing",
        UnknownScene: "unknown_scene",
        RequestRefused: "invalid_change",
    }
)
"""How a command is refused that does not fit the project as it is."""


class ProjectsAgent:
    """Turns commands and scene results into changes of projects, and tells everyone.

    A message that comes twice changes nothing, and what it led to is sent again under the same ids.
    Where there are `credited` offers, the ledger is asked for their price before work begins.
    """

    name = "projects"

    def __init__(
        self,
        *,
        projects: ProjectStore,
        publisher: Publisher,
        admission: Admission,
        clock: Clock,
        credited: Offers | None = None,
    ) -> None:
        self._projects = projects
        self._publisher = publisher
        self._admission = admission
        self._clock = clock
        self._credited = credited

    async def handle(self, message: ProjectCommand | SceneResult | CreditAnswer, *, origin: str) -> None:
        """Carry out one message; *origin* names the message where its sender did not.

        Raises a `DomainError`, before anything is written or sent but the refusal, for a message that cannot
        be carried out by anyone.
        """
        match message:
            case SubmitProject():
                await self._submit(message, command_id=message.command_id or origin)
            case CancelProject() | RetryProject() | ApproveResend():
                named = message.model_copy(update={"command_id": message.command_id or origin})
                await self._command(named)
            case _:
                # Without its row: the worker that had sent for this died before that was durable. The request
                # comes again, and what it leads to is told again.
                if (project := self._projects.get(message.project_id)) is not None:
                    await self._apply(project, message)

    async def _submit(self, command: SubmitProject, *, command_id: str) -> None:
        project = self._projects.get(command.project_id)
        if project is not None:
            await self._submit_again(project, command.model_copy(update={"command_id": command_id}))
            return
        now = self._clock.now()
        try:
            request = self._admission.check(command.request, folder=None)
        except RequestRefused as refused:
            rejected = ProjectRejected(
                project_id=command.project_id,
                command_id=command_id,
                occurred_at=now,
                faults=refused.faults,
            )
            await self._publisher.publish(rejected)
            raise
        accepted, requested = decisions.submit(command.project_id, request, now=now)
        project = Project.begin(accepted)
        await self._record(project, (accepted, *self._credits_first(project, (requested,))))

    async def _submit_again(self, project: Project, command: SubmitProject) -> None:
        """Tell again what the same request led to; what it would cost or need today does not matter."""
        try:
            is_same = parse_request(command.request) == project.request
        except RequestRefused:
            is_same = False
        if is_same:
            await self._tell(project, decisions.resubmit(project))
        else:
            taken = "this project id is taken by another request"
            await self._refuse(command, rule="project_exists", message=taken, version=project.version)

    async def _command(self, command: CancelProject | RetryProject | ApproveResend) -> None:
        project = self._projects.get(command.project_id)
        if project is None:
            unknown = UnknownProject(command.project_id)
            await self._refuse(command, rule="unknown_project", message=str(unknown), version=0)
            raise unknown
        try:
            await self._apply(project, command)
        except tuple(_RULES) as error:
            rule = _RULES[type(error)]
            await self._refuse(command, rule=rule, message=str(error), version=project.version)

    async def _apply(self, project: Project, message: decisions.Message) -> None:
        known = decisions.recall(project, message)
        if known:
            await self._tell(project, known)
            return
        request = None
        match message:
            case RetryProject(changes=Changes() as changes) if message.command_id not in project.carried_out:
                request = self._changed(project, changes)
            case _:
                pass
        events = decisions.decide(project, message, now=self._clock.now(), request=request)
        if isinstance(message, RetryProject):
            events = self._credits_first(project, events)
        await self._record(project, events)

    def _credits_first(self, project: Project, events: tuple[Event, ...]) -> tuple[Event, ...]:
        if self._credited is None:
            return events
        return crediting.credits_first(project, events, self._credited.offer_for)

    def _changed(self, project: Project, changes: Changes) -> ProjectRequest:
        return self._admission.check(decisions.changed(project.request, changes, project), folder=None)

    async def _record(self, project: Project, events: tuple[Event, ...]) -> None:
        for event in events:
            project = project.evolve(event)
        if events:
            self._projects.put(project)
            await self._tell(project, events)

    async def _tell(self, project: Project, events: tuple[Event, ...]) -> None:
        for event in events:
            if not isinstance(event, INTERNAL):
                await self._publisher.publish(event)
            for order in project.orders(event):
                await self._publisher.publish(order)
        for asked in crediting.orders(project, events):
            await self._publisher.publish(asked)
        await self._publisher.publish(snapshot(project))

    async def _refuse(
        self,
        command: SubmitProject | CancelProject | RetryProject | ApproveResend,
        *,
        rule: str,
        message: str,
        version: int,
    ) -> None:
        await self._publisher.publish(
            CommandRefused(
                project_id=command.project_id,
                command_id=command.command_id,
                occurred_at=self._clock.now(),
                rule=rule,
                message=message,
                current_version=version,
            )
        )
