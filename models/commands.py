"""What somebody wants. Imperative; may be refused; safe to send twice.

`ProjectCommand` travels on project-requests, `SceneCommand` from the projects agent to the scenes agent.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from models.identifiers import Identifier
from models.values import Value
from models.work import JobKind, JobRequest, Tally


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


class RetryProject(_ProjectCommand):
    """Take a failed project up again and make only what is missing."""

    type: Literal["RetryProject"] = "RetryProject"


class TakeOverProject(_ProjectCommand):
    """A worker has taken the project up after a restart or a rebalance; sent by the recovery agent.

    `kept` is what its jobs that were finished by then had cost.
    """

    type: Literal["TakeOverProject"] = "TakeOverProject"
    kept: Tally = Tally()


ProjectCommand = Annotated[
    SubmitProject | CancelProject | RetryProject | TakeOverProject, Field(discriminator="type")
]


class Want(Value):
    """One asset that a scene needs, and from whom the user wants it, where they said so."""

    request: JobRequest
    provider: str | None = None

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
    wants: tuple[Want, ...]


class CancelScene(Value):
    """Give up what is still open of one scene."""

    type: Literal["CancelScene"] = "CancelScene"
    project_id: str
    scene_id: str
    attempt: int


SceneCommand = Annotated[RequestScene | CancelScene, Field(discriminator="type")]
