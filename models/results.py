"""What the scenes agent tells the projects agent, on scene-results. Safe to read twice."""

from typing import Annotated, Literal

from pydantic import Field

from models.errors import ErrorCode
from models.values import Value
from models.work import Assets, Question, Tally


class _SceneResult(Value):
    project_id: str
    scene_id: str
    attempt: int
    """Which request of the scene this answers: an answer to an earlier one changes nothing."""
    assets: Assets = Assets()
    tally: Tally = Tally()
    finished_jobs: int = 0
    revision: int = 0
    """Grows with every change to the jobs of the scene."""
    asking: tuple[str, ...] = ()
    """The jobs that wait for a person's decision."""
    progress: float = 0.0
    """From 0 to 1, over all assets of the scene."""


class SceneProgressed(_SceneResult):
    """One more asset of the scene is there, or on its way."""

    type: Literal["SceneProgressed"] = "SceneProgressed"


class SceneCompleted(_SceneResult):
    """All assets of the scene are stored and checked."""

    type: Literal["SceneCompleted"] = "SceneCompleted"


class SceneFailed(_SceneResult):
    """Nothing of the scene is in flight any more, and at least one asset is missing."""

    type: Literal["SceneFailed"] = "SceneFailed"
    error_code: ErrorCode


class SceneDelayed(_SceneResult):
    """An asset of the scene takes longer than its poll schedule."""

    type: Literal["SceneDelayed"] = "SceneDelayed"


class SceneUnclear(_SceneResult):
    """Nobody knows whether a paid call was accepted: a person must decide what follows."""

    type: Literal["SceneUnclear"] = "SceneUnclear"
    question: Question


class SceneStopped(_SceneResult):
    """The scene was cancelled; `tally` is what it has cost, as far as is known now."""

    type: Literal["SceneStopped"] = "SceneStopped"


SceneResult = Annotated[
    SceneProgressed | SceneCompleted | SceneFailed | SceneDelayed | SceneUnclear | SceneStopped,
    Field(discriminator="type"),
]
