"""Whatever arrives, the answer is a request or faults, and never anything else."""

import copy
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.checks import parse_request
from models.faults import Fault, RequestRefused
from models.request import ProjectRequest, SceneRequest
from tests.models.requests import a_job, a_request, a_scene

_patiently = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])

_keys = st.one_of(
    st.sampled_from([*ProjectRequest.model_fields, *SceneRequest.model_fields, "aspectRatio", "model", "id"]),
    st.text(st.characters(), max_size=12),
)
_leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -(10**400), 2**63, 2**64, -0.0, 1e308]),
    st.floats(),
    st.text(st.characters(), max_size=30),
    st.sampled_from(["9:16", "clip", "shorts", "en", "\ud800", "\x00", "x" * 2001, "{}", "{text}", "%s"]),
)
_json = st.recursive(
    _leaves,
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(_keys, parts, max_size=5),
    max_leaves=20,
)


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
@given(_json)
def test_any_json_gives_a_request_or_faults(raw: object) -> None:
    _check_answer(raw)


@st.composite
def _mutated(draw: st.DrawFn) -> dict[str, Any]:
    full = a_request(
        user_id="ann", language="en", max_cost_usd=1, voice="v", providers={"image": "x"}, platform="reels",
        scenes=[a_scene(visual="clip", duration_seconds=3, variation=1, picture="a.png"), a_scene()],
    )  # fmt: skip
    raw: dict[str, Any] = copy.deepcopy(draw(st.sampled_from([full, a_job(id="job-1")])))
    for _ in range(draw(st.integers(1, 4))):
        holder: Any = raw
        while True:
            places = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not places:
                break
            place = draw(st.sampled_from(places))
            inner = holder[place]
            if isinstance(inner, dict | list) and inner and draw(st.booleans()):
                holder = inner
                continue
            match draw(st.sampled_from(["drop", "replace", "add", "twice"])):
                case "drop":
                    del holder[place]
                case "replace":
                    holder[place] = draw(_json)
                case "add" if isinstance(holder, dict):
                    holder[draw(_keys)] = draw(_json)
                case _ if isinstance(holder, list):
                    holder.append(inner)
                case _:
                    pass
            break
    return raw


@_patiently
@given(_mutated())
def test_a_good_request_with_something_changed_gives_a_request_or_faults(raw: dict[str, Any]) -> None:
    _check_answer(raw)


@_patiently
@given(_mutated())
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
