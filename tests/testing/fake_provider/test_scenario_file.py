from pathlib import Path
from typing import Any

import pytest

from sceneloom.testing.fake_provider import Behaviour, Scenario, ScenarioInvalid, read_scenario


def test_nothing_is_a_scenario_in_which_everything_succeeds() -> None:
    assert read_scenario(None) == Scenario()


@pytest.mark.parametrize("name", ["scenario.yaml", "scenario.json"])
def test_yaml_and_json_say_the_same(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    texts = {
        "scenario.yaml": "rules:\n  - when: {prompt: nine, to_call: 3}\n    then: {error: unavailable}\n",
        "scenario.json": '{"rules": [{"when": {"prompt": "nine", "to_call": 3},'
        ' "then": {"error": "unavailable"}}]}',
    }
    file.write_text(texts[name])
    rule = read_scenario(file).rules[0]
    assert (rule.when.prompt, rule.when.to_call, rule.then.error) == ("nine", 3, "unavailable")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"rulez": []}, "rulez: there is no such key; did you mean rules?"),
        (
            {"rules": [{"then": {"latncy": 3}}]},
            "rules[0].then.latncy: there is no such key; did you mean latency?",
        ),
        (
            {"rules": [{"when": {"prompt_matches": "("}, "then": {}}]},
            "rules[0].when.prompt_matches: this is not",
        ),
        ({"rules": [{"when": {"from_call": 5, "to_call": 2}, "then": {}}]}, "to_call comes before from_call"),
        ({"rules": [{"when": {}}]}, "rules[0].then: Field required"),
        ({"defaults": {"fault": "hang", "status": 503}}, "exclude each other"),
        ({"defaults": {"body": {"a": 1}}}, "body needs status"),
        ({"defaults": {"status": 200}}, "a status below 400 needs body"),
        ({"defaults": {"accepted": True}}, "accepted goes with error, status or fault"),
        ({"defaults": {"failure": "moderation"}}, "failure needs outcome: failed"),
        (
            {"defaults": {"running": 3, "statuses": [{"status": "queued"}]}},
            "statuses replaces queued and running",
        ),
        (
            {"defaults": {"statuses": [{"status": "queued"}, {"status": "running"}]}},
            "only the last of statuses may be without seconds",
        ),
        ({"defaults": {"latency": -1}}, "defaults.latency"),
        ({"defaults": {"cost_usd": float("nan")}}, "defaults.cost_usd"),
        (
            {"defaults": {"fault": "hang"}, "rules": [{"then": {"error": "unavailable"}}]},
            "rules[0] does not go with",
        ),
        ([], "scenario"),
    ],
)
def test_a_fault_is_named_with_its_place(content: Any, said: str) -> None:
    with pytest.raises(ScenarioInvalid) as refused:
        read_scenario(content)
    assert said in str(refused.value)


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(ScenarioInvalid) as refused:
        read_scenario({"seeds": 1, "defaults": {"outcome": "lost"}})
    assert len(str(refused.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "there is no file"), ("rules: [", "not valid YAML"), ("seed: 1\nseed: 2", "given twice")],
)
def test_a_file_that_cannot_be_read_is_a_clear_error(tmp_path: Path, text: str | None, said: str) -> None:
    file = tmp_path / "scenario.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ScenarioInvalid, match=said):
        read_scenario(file)


def test_a_rule_inherits_what_it_does_not_say() -> None:
    defaults = Behaviour(queued=2, running=5, cost_usd=0.5)
    assert Behaviour(running=1).over(defaults) == Behaviour(queued=2, running=1, cost_usd=0.5)
    own = Behaviour.model_validate({"statuses": [{"status": "queued", "seconds": 1}]})
    assert own.over(defaults).queued == 0
    failing = Behaviour.model_validate({"outcome": "failed", "failure": "moderation"})
    assert Behaviour(outcome="succeeded").over(failing).failure is None
