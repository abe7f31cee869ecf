"""A job that the fake provider accepted, and how it stands at any moment."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from sceneloom.testing.fake_provider.scenario import Behaviour, Custom, Stage
from sceneloom.testing.fake_provider.words import Family, Problem

Kind = Literal["video", "image", "audio"]


class BadOrder(ValueError):
    """The request breaks a rule of the family's API."""

    def __init__(self, message: str, *, parameter: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.parameter = parameter


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What a client ordered, in words that no family owns."""

    model: str
    prompt: str
    kind: Kind
    body: dict[str, Any]
    reference: str | None = None
    callback_url: str | None = None
    width: int = 0
    height: int = 0
    seconds: float = 0
    """How long the output plays."""
    media_format: str = ""
    sound: bool = False


class Phase(StrEnum):
    """What a status means."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether no work is done any more."""
        return self not in {Phase.QUEUED, Phase.RUNNING}


@dataclass(frozen=True, slots=True)
class Standing:
    """How a task stands: the status it shows, what that means, since when, how far in its stage (0 to 1)."""

    status: str
    phase: Phase
    since: float
    progress: float = 0.0


@dataclass(kw_only=True, slots=True)
class Task:
    """One accepted job; `accepted_at` and all other moments are in the scenario's seconds."""

    id: str
    family: Family
    entry: int
    order: Order
    place: int
    """How many tasks of the family were accepted before."""
    behaviour: Behaviour
    accepted_at: float
    created: datetime
    home: str
    """The address under which the client knows this server."""
    cancelled_at: float | None = None
    removed: bool = False
    downloads: dict[int, int] = field(default_factory=dict)
    """How often each of the links was used."""
    links: dict[int, float] = field(default_factory=dict)
    """When each of the links was given."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What the task shows before its outcome."""
        if self.behaviour.statuses:
            return self.behaviour.statuses
        last = None if self.behaviour.outcome == "never" else self.behaviour.running
        planned = (
            Stage(status="queued", seconds=self.behaviour.queued),
            Stage(status="running", seconds=last),
        )
        return tuple(stage for stage in planned if stage.seconds != 0)

    @property
    def ends_at(self) -> float | None:
        """When the task reaches its outcome; None for never."""
        seconds = [stage.seconds for stage in self.stages]
        if self.behaviour.outcome == "never" or None in seconds:
            return None
        return self.accepted_at + sum(length or 0 for length in seconds)

    @property
    def failure(self) -> Problem | Custom:
        """Why the task failed, if it does."""
        return self.behaviour.failure or Problem.UNAVAILABLE

    def changes(self) -> Iterator[float]:
        """Yield the moments at which the status changes, the outcome last."""
        moment = self.accepted_at
        for stage in self.stages:
            if stage.seconds is None:
                return
            moment += stage.seconds
            yield moment
        if not self.stages:
            yield moment

    def standing(self, now: float) -> Standing:
        """Return how the task stands at *now*."""
        if self.cancelled_at is not None and now >= self.cancelled_at:
            return Standing("cancelled", Phase.CANCELLED, self.cancelled_at)
        since = self.accepted_at
        for stage in self.stages:
            if stage.seconds is None or now < since + stage.seconds:
                share = (now - since) / stage.seconds if stage.seconds else 0.0
                return Standing(stage.status, _phase_of(stage.status), since, share)
            since += stage.seconds
        if self.behaviour.outcome == "never":
            last = self.stages[-1].status if self.stages else "running"
            return Standing(last, _phase_of(last), since)
        return Standing(self.behaviour.outcome, Phase(self.behaviour.outcome), since, 1.0)

    def is_working(self, now: float) -> bool:
        """Tell whether the task occupies the account at *now*, whatever status it shows."""
        cancelled = self.cancelled_at is not None and now >= self.cancelled_at
        return not cancelled and (self.ends_at is None or now < self.ends_at)

    def is_known(self, now: float) -> bool:
        """Tell whether the provider still admits to this task at *now*."""
        after = self.behaviour.vanishes_after
        return not self.removed and (after is None or now < self.accepted_at + after)

    def is_listed(self, now: float) -> bool:
        """Tell whether the list shows this task at *now*."""
        return self.is_known(now) and now >= self.accepted_at + self.behaviour.listed_after


def _phase_of(status: str) -> Phase:
    return Phase(status) if status in set(Phase) else Phase.RUNNING
