"""Whatever arrives, the answer is a request or faults, and never anything else."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings

from models.checks import parse_request
from models.faults import Fault, RequestRefused
from models.request import ProjectRequest
from tests.models.any_request import any_json, nearly_sound

_patiently = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


def _answer(raw: object) -> ProjectRequest | tuple[Fault, ...]:
    try:
        return parse_request(raw)
    except RequestRefused as refusal:
        return refusal.faults


def _check_answer(raw: object) -> None:
    before = repr(raw)
    answer = _answer(raw)
    assert repr(raw) == before
    if isinstance(answer, ProjectRequest):
        assert parse_request(json.loads(answer.model_dump_json())) == answer
        return
    assert answer
    for fault in answer:
        assert fault.rule.replace("_", "").isalpha()
        assert fault.message
        assert len(fault.message) < 400
        assert (fault.path + fault.message).isprintable()


@_patiently
@given(any_json)
def test_any_json_gives_a_request_or_faults(raw: object) -> None:
    _check_answer(raw)


@_patiently
@given(nearly_sound())
def test_a_good_request_with_something_changed_gives_a_request_or_faults(raw: dict[str, Any]) -> None:
    _check_answer(raw)


@_patiently
@given(nearly_sound())
def test_a_fault_in_one_scene_does_not_hide_those_of_another(raw: dict[str, Any]) -> None:
    scenes = raw.get("scenes")
    if not isinstance(scenes, list) or "model" in raw:
        return
    raw["scenes"] = [*scenes[:50], {"prompt": "x", "visual": "clip", "duration_seconds": 99}]
    answer = _answer(raw)
    assert isinstance(answer, tuple)
    if answer[0].rule not in {"too_deep", "too_large"}:
        last = len(raw["scenes"]) - 1
        assert f"scenes[{last}].duration_seconds" in {fault.path for fault in answer}
