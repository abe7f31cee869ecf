"""What has happened to a project, one event a version. Past tense, frozen, safe to read twice."""

from datetime import datetime
from typing import Final, Literal

from models.errors import ErrorCode
from models.faults import Fault
from models.identifiers import event_id
from models.request import ProjectRequest
from models.values import Value
from models.work import Assets, Decision, Question, Tally


class Receipt(Value):
    """What a project has cost. Counts are jobs; `reused` were kept when the work was taken up again.

    `fallback` of those bought were made by another provider than the one that was asked first.
    """

    bought: int = 0
    reused: int = 0
    cached: int = 0
    orphaned: int = 0
    fallback: int = 0
    spent_usd: float = 0.0
    saved_usd: float = 0.0


class _ProjectEvent(Value):
    project_id: str
    version: int
    occurred_at: datetime

    @property
    def event_id(self) -> str:
        """Follows from what is told: sent again, or decided again after a crash, it is the same event."""
        return event_id(self.project_id, type(self).__name__, *self._distinction())

    def _distinction(self) -> tuple[object, ...]:
        """Tell this event from others of its type in the project; one that comes once needs nothing."""
        return ()


class _PartEvent(_ProjectEvent):
    scene_id: str
    attempt: int

    def _distinction(self) -> tuple[object, ...]:
        return self.scene_id, self.attempt


class ProjectAccepted(_ProjectEvent):
    """The request passed all checks."""

    type: Literal["ProjectAccepted"] = "ProjectAccepted"
    request: ProjectRequest


class ScenesRequested(_ProjectEvent):
    """The scenes named here were handed to the scenes agent. Internal."""

    type: Literal["ScenesRequested"] = "ScenesRequested"
    scene_ids: tuple[str, ...]


class CreditsRequested(_ProjectEvent):
    """The ledger was asked to hold `micros` in all, in micro-dollars, before the work begins. Internal."""

    type: Literal["CreditsRequested"] = "CreditsRequested"
    micros: int


class SceneProgressed(_PartEvent):
    """More of a scene, or of the film, is there. Internal."""

    type: Literal["SceneProgressed"] = "SceneProgressed"
    progress: float
    finished_jobs: int
    revision: int = 0
    asking: tuple[str, ...] = ()
    assets: Assets
    tally: Tally


class SceneCompleted(_PartEvent):
    """All assets of the scene are there: this is its checkpoint."""

    type: Literal["SceneCompleted"] = "SceneCompleted"
    assets: Assets
    tally: Tally


class SceneFailed(_PartEvent):
    """The scene cannot be made as it is."""

    type: Literal["SceneFailed"] = "SceneFailed"
    error_code: ErrorCode
    message: str
    assets: Assets
    tally: Tally


class ProjectDelayed(_PartEvent):
    """A scene takes longer than usual; the work goes on."""

    type: Literal["ProjectDelayed"] = "ProjectDelayed"
    message: str


class ConfirmationNeeded(_PartEvent):
    """Nobody knows whether a paid call was accepted: ApproveResend decides what follows."""

    type: Literal["ConfirmationNeeded"] = "ConfirmationNeeded"
    revision: int = 0
    question: Question
    message: str

    def _distinction(self) -> tuple[object, ...]:
        return self.question.key


class ConfirmationAnswered(_PartEvent):
    """A person decided about an unclear call."""

    type: Literal["ConfirmationAnswered"] = "ConfirmationAnswered"
    command_id: str
    question: Question
    decision: Decision
    provider_task_id: str | None

    def _distinction(self) -> tuple[object, ...]:
        return self.question.key


class ReceiptChanged(_PartEvent):
    """After the project's end it became known what a scene has really cost."""

    type: Literal["ReceiptChanged"] = "ReceiptChanged"
    revision: int
    tally: Tally

    def _distinction(self) -> tuple[object, ...]:
        return self.scene_id, self.attempt, self.revision


class RenderRequested(_ProjectEvent):
    """All scenes are there, and the film was asked for. Internal."""

    type: Literal["RenderRequested"] = "RenderRequested"


class ProjectResumed(_ProjectEvent):
    """The work was taken up again, and what was finished is kept."""

    type: Literal["ProjectResumed"] = "ProjectResumed"
    reason: Literal["retry", "takeover"]
    command_id: str
    kept: Tally
    request: ProjectRequest | None = None
    """The request from here on, where the retry changed it."""
    scene_id: str | None = None
    """The one scene that the retry is for, where it named one."""

    def _distinction(self) -> tuple[object, ...]:
        return (self.command_id,)


class ProjectCompleted(_ProjectEvent):
    """The film is finished."""

    type: Literal["ProjectCompleted"] = "ProjectCompleted"
    assets: Assets
    tally: Tally
    receipt: Receipt


class ProjectFailed(_PartEvent):
    """Nothing is in flight any more, and the film cannot be finished as it is. RetryProject takes it up.

    Where credits were refused, the scene is `credits`, and its attempt counts how often they were asked for.
    """

    type: Literal["ProjectFailed"] = "ProjectFailed"
    error_code: ErrorCode
    message: str
    assets: Assets
    tally: Tally
    receipt: Receipt


class ProjectCancelled(_ProjectEvent):
    """Somebody stopped the project."""

    type: Literal["ProjectCancelled"] = "ProjectCancelled"
    receipt: Receipt


Event = (
    ProjectAccepted
    | CreditsRequested
    | ScenesRequested
    | SceneProgressed
    | SceneCompleted
    | SceneFailed
    | ProjectDelayed
    | ConfirmationNeeded
    | ConfirmationAnswered
    | ReceiptChanged
    | RenderRequested
    | ProjectResumed
    | ProjectCompleted
    | ProjectFailed
    | ProjectCancelled
)

INTERNAL: Final = (CreditsRequested, ScenesRequested, SceneProgressed, RenderRequested)
"""Events that only move the project; everyone else reads them in its snapshot."""


class ProjectRejected(Value):
    """The request broke a rule: no project was made, and nothing was spent."""

    type: Literal["ProjectRejected"] = "ProjectRejected"
    project_id: str
    command_id: str
    occurred_at: datetime
    faults: tuple[Fault, ...]

    @property
    def event_id(self) -> str:
        """The same for the same refused command."""
        return event_id("rejected", self.project_id, self.command_id)


class CommandRefused(Value):
    """A command did not fit the project as it is; `current_version` tells what to read."""

    type: Literal["CommandRefused"] = "CommandRefused"
    project_id: str
    command_id: str
    occurred_at: datetime
    rule: str
    message: str
    current_version: int

    @property
    def event_id(self) -> str:
        """The same for the same refused command."""
        return event_id("refused", self.project_id, self.command_id)
