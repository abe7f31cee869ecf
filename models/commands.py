"""What somebody wants. Imperative; may be refused; safe to send twice.

`ProjectCommand` travels on project-requests, `SceneCommand` from the projects agent to the scenes agent.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from models.identifiers import Identifier
from models.values import Value
from models.work import Decision, JobKind, JobRequest, Tally


class _ProjectCommand(Value):
    project_id: Identifier
    command_id: str = ""
    """Names the command; a command without one is named by what it says."""
    expected_version: int | None = None


class SubmitProject(_ProjectCommand):
    """Make this film. `request` is checked by the agent, so that all its faults are told at once."""

    type: Literal["SubmitProject"] = "SubmitProject"
    request: Mapping[str, Any]


class CancelProject(_ProjectCommand):
    """Stop, and buy nothing more."""

    type: Literal["CancelProject"] = "CancelProject"


class Changes(Value):
    """What a retry changes of the request: of the scene named, which alone is retried, or of the whole."""

    scene_id: str | None = None
    prompt: str | None = None
    narration: str | None = None
    providers: Mapping[str, str] = {}
    """Who makes which kind of asset (`image`, `speech`, `clip`) from here on."""
    max_cost_usd: float | None = None


class RetryProject(_ProjectCommand):
    """Take a failed project up again and make only what is missing, where told so with changes."""

    type: Literal["RetryProject"] = "RetryProject"
    changes: Changes | None = None


class ApproveResend(_ProjectCommand):
    """Decide about a paid call of which nobody knows whether it was accepted.

    RESEND makes the call again; ADOPT goes on with `provider_task_id`, which the provider's console shows;
    GIVE_UP fails the job. The question and its job id are told by ConfirmationNeeded.
    """

    type: Literal["ApproveResend"] = "ApproveResend"
    job_id: str
    decision: Decision = Decision.RESEND
    provider_task_id: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None

    @model_validator(mode="after")
    def _names_what_is_adopted(self) -> Self:
        if (self.decision is Decision.ADOPT) != (self.provider_task_id is not None):
            raise ValueError("provider_task_id goes with the decision adopt, and adopt needs it")
        return self


class TakeOverProject(_ProjectCommand):
    """A worker has taken the project up after a restart or a rebalance; sent by the recovery agent.

    `kept` is what its jobs that were finished by then had cost.
    """

    type: Literal["TakeOverProject"] = "TakeOverProject"
    kept: Tally = Tally()


ProjectCommand = Annotated[
    SubmitProject | CancelProject | RetryProject | ApproveResend | TakeOverProject,
    Field(discriminator="type"),
]


class Want(Value):
    """One asset that a scene needs, and from whom the user wants it, where they said so."""

    request: JobRequest
    provider: str | None = None
    use_cache: bool = True
    """Whether an equal asset that was made before will do."""

    @property
    def kind(self) -> JobKind:
        """What is to be made."""
        return self.request.kind


class RequestScene(Value):
    """Make the assets of one scene; the render is the one asset of the scene `film`."""

    type: Literal["RequestScene"] = "RequestScene"
    project_id: str
    scene_id: str
    attempt: int
    user_id: str
    budget_usd: float | None = None
    """What the whole project may cost."""
    wants: tuple[Want, ...]


class CancelScene(Value):
    """Give up what is still open of one scene."""

    type: Literal["CancelScene"] = "CancelScene"
    project_id: str
    scene_id: str
    attempt: int


class ResolveSubmit(Value):
    """Do what a person decided about one unclear call."""

    type: Literal["ResolveSubmit"] = "ResolveSubmit"
    project_id: str
    job_id: str
    attempt: int
    call: int
    decision: Decision
    provider_task_id: str | None = None


SceneCommand = Annotated[RequestScene | CancelScene | ResolveSubmit, Field(discriminator="type")]
