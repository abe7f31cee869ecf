"""What shall happen in one simulation: who asks for what, what breaks when, how mean the providers are."""

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final, Literal

from sceneloom.testing.fake_provider.scenario import Behaviour, Output, Stage
from sceneloom.testing.fake_provider.words import Family, Fault, Operation, Problem
from tests.simulation.provider import Question

Kind = Literal["crash", "freeze", "cut", "shuffle", "store", "clock", "duplicate", "stop", "cancel"]
KINDS: Final[tuple[Kind, ...]] = ("freeze", "cut", "shuffle", "store", "clock", "duplicate", "stop", "cancel")
OF_GROUPS: Final[tuple[Kind, ...]] = ("freeze", "cut", "shuffle")
_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that breaks: once so many things have happened; for so many seconds, or by so many."""

    at: int
    kind: Kind
    amount: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that the seed does not decide by its dice."""

    seed: int
    projects: int = 1
    clips: int = 2
    narrated: bool = False
    workers: int = 1
    partitions: int = 2
    troubles: tuple[Trouble, ...] = ()
    crash_after: int | None = None
    """After so many happenings the only worker is killed."""
    meanness: float = 0.0
    """The chance that a request goes wrong, while the providers are mean."""
    evils: int = 6
    """How often the providers are mean in all."""
    loses_first: bool = False
    """Whether the answer to the very first order gets lost after it was accepted."""
    echoes: bool = True
    credits: bool = False
    slow_store: float = 0.0
    """The chance that the asset store takes seconds to answer."""
    slow_broker: float = 0.0
    """The chance that a message takes seconds to become durable."""
    answers: bool = True
    """Whether anybody answers questions."""

    @classmethod
    def simple(cls, seed: int = 0, *, crash_after: int | None = None) -> "Plan":
        """Plan two clips, one of them accepted with a lost answer, and one crash."""
        return cls(seed=seed, loses_first=True, crash_after=crash_after)

    @classmethod
    def of(cls, seed: int) -> "Plan":
        """Plan as the dice of *seed* want it."""
        dice = Random(f"plan {seed}")  # noqa: S311 -- dice, not secrets
        is_crowded = dice.random() < 0.5
        crashes = [Trouble(_moment(dice), "crash") for _ in range(dice.choice((0, 1, 1, 2, 3, 5)))]
        kinds = OF_GROUPS if is_crowded else KINDS
        others = [
            _trouble(dice, kinds) for _ in range(dice.choice((1, 2, 4) if is_crowded else (0, 0, 1, 3)))
        ]
        echoes = dice.random() < 0.8
        if (
            not echoes
        ):  # then a task is known by its time alone, and a clock that is set loses it: docs/simulation.md
            others = [trouble for trouble in others if trouble.kind != "clock"]
        return cls(
            seed=seed,
            projects=dice.choice((1, 1, 1, 2)),
            clips=dice.choice((1, 1, 2)),
            narrated=dice.random() < 0.4,
            workers=2 if is_crowded else 1,
            slow_store=dice.choice((0.0, 0.0, 0.1)),
            slow_broker=dice.choice((0.0, 0.0, 0.1)),
            troubles=tuple(sorted([*crashes, *others], key=lambda trouble: trouble.at)),
            meanness=dice.choice((0.0, 0.1, 0.3, 0.6)),
            evils=dice.choice((3, 6, 12)),
            echoes=echoes,
            credits=dice.random() < 0.25,
            answers=dice.random() < 0.8,
        )

    def with_(self, **changes: Any) -> "Plan":
        """Return the plan with *changes*."""
        return replace(self, **changes)


def _moment(dice: Random) -> int:
    return int(dice.choice((100, 300, 800)) * dice.random()) + 1


def _trouble(dice: Random, kinds: tuple[Kind, ...]) -> Trouble:
    kind = dice.choice(kinds)
    amount = {
        "freeze": dice.choice((3.0, 9.0, 15.0, 45.0)),
        "cut": dice.choice((3.0, 9.0, 15.0, 45.0, 80.0)),
        "store": dice.choice((5.0, 60.0)),
        "clock": dice.choice((-_HOUR, -60.0, 60.0, _HOUR)),
    }.get(kind, 0.0)
    return Trouble(_moment(dice), kind, amount)


@dataclass(slots=True)
class Mood:
    """The scenario of one simulation: right answers, or wrong ones as long as the providers are mean."""

    plan: Plan
    dice: Random
    evils: int = field(init=False)
    orders: int = 0

    def __post_init__(self) -> None:
        self.evils = self.plan.evils

    def __call__(self, question: Question) -> Behaviour:
        is_order = question.operation is Operation.SUBMIT
        self.orders += is_order
        if self.plan.loses_first and is_order and self.orders == 1:
            return self._usual(accepted=True, fault=Fault.DISCONNECT, listed_after=20.0)
        if self.evils > 0 and self.dice.random() < self.plan.meanness:
            self.evils -= 1
            return self._evil(question)
        return self._usual()

    def _usual(self, **more: Any) -> Behaviour:
        lag = self.dice.choice((0.0, 0.0, 5.0, 60.0, 115.0)) if self.plan.meanness else 0.0
        usual = {
            "queued": 1.0,
            "running": self.dice.choice((2.0, 8.0, 40.0)) if self.plan.meanness else 8.0,
            "listed_after": lag,
            "echoes_reference": self.plan.echoes,
        }
        return Behaviour.model_validate(usual | more)

    def _evil(self, question: Question) -> Behaviour:
        match question.operation:
            case Operation.SUBMIT:
                return self._evil_order(question)
            case Operation.DOWNLOAD:
                return self.dice.choice(
                    [self._usual(status=503), self._usual(output=Output(content="truncated"))]
                )
            case _:
                return self.dice.choice(
                    [
                        self._usual(error=Problem.NOT_FOUND),
                        self._usual(error=Problem.RATE_LIMITED),
                        self._usual(error=Problem.UNAVAILABLE),
                        self._usual(fault=Fault.DISCONNECT),
                        self._usual(fault=Fault.HALF_BODY),
                        self._usual(fault=Fault.HANG, latency=60.0),
                    ]
                )

    def _evil_order(self, question: Question) -> Behaviour:
        common = [
            self._usual(accepted=True, fault=Fault.DISCONNECT),
            self._usual(accepted=True, fault=Fault.HANG, latency=60.0),
            self._usual(accepted=True, error=Problem.UNAVAILABLE),
            self._usual(accepted=True, fault=Fault.HALF_BODY),
            self._usual(fault=Fault.DISCONNECT),
            self._usual(error=Problem.UNAVAILABLE),
            self._usual(error=Problem.RATE_LIMITED),
            self._usual(error=Problem.RATE_LIMITED, retry_after=7.0),
            self._usual(error=Problem.MODERATION),
            self._usual(latency=130.0, accepted=True, fault=Fault.HANG),
        ]
        if question.family is Family.BLOCKING:
            return self.dice.choice(common)
        backwards = [("running", 3), ("queued", 4), ("running", 9), ("odd", 5)]
        stages = [Stage(status=status, seconds=seconds) for status, seconds in backwards]
        tasks = [
            Behaviour(statuses=tuple(stages), echoes_reference=self.plan.echoes),
            self._usual(outcome="failed", failure=Problem.MODERATION),
            self._usual(outcome="never"),
            self._usual(without_url=True),
            self._usual(outcome="expired"),
        ]
        return self.dice.choice(common + tasks)
