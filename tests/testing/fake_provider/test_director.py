from typing import Any

import pytest

from sceneloom.testing.fake_provider.director import Call, Director
from sceneloom.testing.fake_provider.scenario_file import read_scenario
from sceneloom.testing.fake_provider.words import Family, Operation
from tests.testing.fake_provider.stage import rules


def submit(prompt: str = "a fox", model: str = "seedance-2-0", path: str = "/api/v3/tasks") -> Call:
    return Call(Family.TASKS, Operation.SUBMIT, path, model=model, prompt=prompt)


def poll(task_id: str) -> Call:
    return Call(Family.TASKS, Operation.POLL, f"/tasks/{task_id}", task_id=task_id)


def ruled(director: Director, call: Call) -> bool:
    return director.direct(call)[1] is not None


@pytest.mark.parametrize(
    ("when", "applies"),
    [
        ({}, True),
        ({"family": "tasks"}, True),
        ({"family": "queue"}, False),
        ({"operation": "poll"}, False),
        ({"path": "/api/*"}, True),
        ({"path": "/v1/*"}, False),
        ({"model": "seedance-*"}, True),
        ({"model": "seedance"}, False),
        ({"prompt": "FOX"}, True),
        ({"prompt": "wolf"}, False),
        ({"prompt_matches": r"^a f.x$"}, True),
        ({"prompt_matches": r"^fox"}, False),
        ({"prompt": "fox", "model": "kling"}, False),
        ({"probability": 0}, False),
    ],
)
def test_a_rule_applies_when_all_its_conditions_are_met(when: dict[str, Any], *, applies: bool) -> None:
    assert ruled(Director(read_scenario(rules((when, {})))), submit()) is applies


def test_the_first_rule_that_applies_decides() -> None:
    scenario = rules(({"prompt": "wolf"}, {"latency": 1}), ({}, {"latency": 2}), ({}, {"latency": 3}))
    director = Director(read_scenario(scenario))
    behaviour, name = director.direct(submit())
    assert (behaviour.latency, name) == (2, "rules[1]")


def test_a_rule_can_be_for_some_calls_only() -> None:
    director = Director(read_scenario(rules(({"prompt": "fox", "from_call": 2, "to_call": 3}, {}))))
    assert [ruled(director, submit()) for _ in range(4)] == [False, True, True, False]
    assert not ruled(director, submit("a wolf"))


def test_calls_that_an_earlier_rule_decided_count_for_later_rules_too() -> None:
    director = Director(
        read_scenario(rules(({"to_call": 2}, {"latency": 1}), ({"from_call": 3}, {"latency": 2})))
    )
    assert [director.direct(submit())[0].latency for _ in range(3)] == [1, 1, 2]


def test_calls_can_be_counted_for_each_prompt() -> None:
    director = Director(read_scenario(rules(({"to_call": 1, "count_by": "prompt"}, {}))))
    asked = [submit("a"), submit("b"), submit("a"), submit("b")]
    assert [ruled(director, call) for call in asked] == [True, True, False, False]


def test_polls_are_counted_for_each_task() -> None:
    director = Director(read_scenario(rules(({"operation": "poll", "from_call": 2}, {}))))
    assert [ruled(director, poll(name)) for name in "abab"] == [False, False, True, True]


def test_chance_is_the_same_for_the_same_seed() -> None:
    def play(seed: int) -> list[bool]:
        director = Director(read_scenario(rules(({"probability": 0.3}, {}), seed=seed)))
        return [ruled(director, submit()) for _ in range(200)]

    assert play(1) == play(1)
    assert play(1) != play(2)
    assert 40 <= sum(play(1)) <= 80


def test_defaults_are_for_jobs_and_not_for_the_questions_about_them() -> None:
    director = Director(read_scenario({"defaults": {"latency": 9}}))
    assert director.direct(submit())[0].latency == 9
    assert director.direct(poll("a"))[0].latency == 0
