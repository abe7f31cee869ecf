"""Decides which rule of the scenario is for a request."""

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from sceneloom.testing.fake_provider.scenario import Behaviour, Scenario, When
from sceneloom.testing.fake_provider.words import Family, Operation


@dataclass(frozen=True, slots=True)
class Call:
    """What a rule can look at."""

    family: Family
    operation: Operation
    path: str
    model: str = ""
    prompt: str = ""
    task_id: str | None = None


class Director:
    """Plays one scenario, and counts the calls for each of its rules."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._behaviours = [rule.then.over(scenario.defaults) for rule in scenario.rules]
        self._calls: Counter[tuple[int, str]] = Counter()

    def direct(self, call: Call) -> tuple[Behaviour, str | None]:
        """Return what happens to *call*, and the name of the rule that says so, if one does.

        Every rule counts the calls that meet its conditions, also those that an earlier rule decided.
        """
        applying = list(self._applying(call))
        if not applying:
            return self._otherwise(call), None
        first = applying[0]
        return self._behaviours[first], self.scenario.rules[first].name or f"rules[{first}]"

    def _otherwise(self, call: Call) -> Behaviour:
        # Defaults tell how a job goes; a poll, a list or a download is only disturbed by a rule of its own.
        return self.scenario.defaults if call.operation is Operation.SUBMIT else Behaviour()

    def _applying(self, call: Call) -> Iterator[int]:
        for index, rule in enumerate(self.scenario.rules):
            if not _meets(call, rule.when):
                continue
            counted = (index, _counted_by(rule.when, call))
            self._calls[counted] += 1
            if self._is_its_turn(rule.when, counted):
                yield index

    def _is_its_turn(self, when: When, counted: tuple[int, str]) -> bool:
        number = self._calls[counted]
        if number < when.from_call or (when.to_call is not None and number > when.to_call):
            return False
        if when.probability == 1:
            return True
        dice = random.Random(f"{self.scenario.seed}/{counted}/{number}")  # noqa: S311 -- the same each time
        return dice.random() < when.probability


def _counted_by(when: When, call: Call) -> str:
    match when.count_by:
        case "prompt":
            return call.prompt
        case "rule":
            return ""
        case _:
            return call.task_id or ""


def _meets(call: Call, when: When) -> bool:
    return (
        call.operation is when.operation
        and when.family in {None, call.family}
        and (when.path is None or fnmatchcase(call.path, when.path))
        and (when.model is None or fnmatchcase(call.model, when.model))
        and (when.prompt is None or when.prompt.casefold() in call.prompt.casefold())
        and (when.prompt_matches is None or re.search(when.prompt_matches, call.prompt) is not None)
    )
