"""What the schemas of project-requests allow is what is understood there, and the other way round."""

import copy
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from pydantic.alias_generators import to_camel

from models.checks import parse_request
from models.faults import RequestRefused
from models.request import ProjectRequest, SceneRequest
from models.video_job import ASKED, TOLD
from sceneloom.admission import load
from sceneloom.codec import Unreadable
from sceneloom.intake import read_for_projects
from sceneloom.topics import PROJECT_REQUESTS
from tests.contract.documents import ROOT, payloads_of, validator
from tests.models.any_request import any_json, nearly_sound
from tests.models.requests import a_job, a_request
from tests.test_docs import REQUESTS, blocks_in

ON_THE_TOPIC = validator(*payloads_of(PROJECT_REQUESTS))
A_REQUEST = validator("project-request.json", "video-job.json")
UNSAYABLE = {"bad_character", "blank", "script_too_long", "too_large", "too_deep"}
"""The rules that a JSON Schema cannot express."""

_patiently = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])


def on_the_wire(raw: Any) -> Any:
    """Return *raw* as a careful producer sends it: texts trimmed, whole numbers without a point."""
    match raw:
        case dict():
            return {str(key): on_the_wire(value) for key, value in raw.items()}
        case list():
            return [on_the_wire(each) for each in raw]
        case str():
            return raw.strip()
        case float() if raw.is_integer() and abs(raw) < 2**53:
            return int(raw)
        case _:
            return raw


def refusals(raw: Any) -> set[str]:
    try:
        parse_request(raw)
    except RequestRefused as refused:
        return {fault.rule for fault in refused.faults}
    return set()


def check(raw: Any) -> None:
    wire = on_the_wire(raw)
    try:
        wire = orjson.loads(orjson.dumps(wire))
    except TypeError:
        reject()  # numbers and texts that JSON on a topic does not have
    rules = refusals(wire)
    errors = [f"{error.json_path}: {error.message}" for error in A_REQUEST.iter_errors(wire)]

    assert errors or rules <= UNSAYABLE, (rules, wire)
    assert rules or not errors, (errors, wire)


def renamed(raw: Any, rename: Any) -> Any:
    match raw:
        case dict():
            return {rename(key): renamed(value, rename) for key, value in raw.items()}
        case list():
            return [renamed(each, rename) for each in raw]
        case _:
            return raw


EDGES: list[Any] = [
    *(
        None,
        True,
        False,
        [],
        {},
        ["x"],
        {"x": "y"},
        {"image": "x"},
        {"image": "-x"},
        {"film": "x"},
        {"clip": None},
    ),
    *(-1, 0, 0.4, 0.5, 1, 1.5, 10, 10.5, 60, 60.5, 2**63 - 1, 2**63, 1e300),
    *(
        "x" * length
        for length in (0, 1, 35, 36, 64, 65, 100, 101, 120, 121, 128, 129, 2000, 2001, 2048, 2049)
    ),
    *("en", "e", "pt-BR", "pt_BR", "zh-Hans-CN", "en-", "9:16", "16:9", "4:3", "image", "clip", "speech"),
    *("shorts", "youtube", "vimeo", "queued", "running", "-x", "a.b", "a b", "5"),
]
"""Values near some rule about some key."""

BASES: list[dict[str, Any]] = [
    a_request(scenes=[{"prompt": "rain", "visual": "clip"}, {"prompt": "rain", "visual": "image"}]),
    a_request(scenes=[{"prompt": "rain"}]),
    a_job(),
]
_ABSENT = object()


def changed(raw: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield *raw* with each known key at each edge, and without it."""
    inner = [("scenes", number) for number in range(len(raw.get("scenes", ())))]
    top = [*ProjectRequest.model_fields, *ASKED, *TOLD, "id", "other"]
    for key, value in itertools.product(top, [*EDGES, _ABSENT]):
        yield {name: each for name, each in (raw | {key: value}).items() if each is not _ABSENT}
    for _, number in inner:
        for key, value in itertools.product([*SceneRequest.model_fields, "other"], [*EDGES, _ABSENT]):
            scenes = copy.deepcopy(raw["scenes"])
            scenes[number] = {k: v for k, v in (scenes[number] | {key: value}).items() if v is not _ABSENT}
            yield raw | {"scenes": scenes}


@pytest.mark.parametrize("spelling", [str, to_camel])
@pytest.mark.parametrize("base", BASES, ids=["clip and image", "image", "job"])
def test_the_schema_and_the_parser_agree_about_each_key_at_each_edge(base: Any, spelling: Any) -> None:
    for raw in changed(base):
        check(renamed(raw, spelling))


@pytest.mark.parametrize("scenes", [0, 1, 100, 101])
def test_the_schema_and_the_parser_agree_about_the_number_of_scenes(scenes: int) -> None:
    check(a_request(scenes=[{"prompt": "rain"}] * scenes, platform="youtube"))


@_patiently
@given(nearly_sound())
def test_the_schema_and_the_parser_agree_about_what_is_nearly_a_request(raw: dict[str, Any]) -> None:
    check(raw)


@_patiently
@given(any_json)
def test_the_schema_and_the_parser_agree_about_anything(raw: object) -> None:
    check(raw)


@pytest.mark.parametrize("raw", [a_job(id="j1"), a_request(user_id="u", max_cost_usd=2, use_cache=False)])
def test_keys_are_allowed_in_either_spelling_and_not_in_both(raw: dict[str, Any]) -> None:
    camel = renamed(raw, to_camel)

    assert camel != raw
    assert A_REQUEST.is_valid(raw)
    assert A_REQUEST.is_valid(camel)
    assert not A_REQUEST.is_valid(raw | camel)


@pytest.mark.parametrize(
    "path", sorted(p for p in (ROOT / "examples").iterdir() if p.is_file()), ids=lambda p: p.name
)
def test_every_example_is_what_the_schema_allows(path: Path) -> None:
    assert [error.message for error in A_REQUEST.iter_errors(load(path))] == []


@pytest.mark.parametrize("block", blocks_in(REQUESTS, "json"))
def test_every_message_in_the_page_about_requests_is_what_the_schemas_allow(block: str) -> None:
    assert ON_THE_TOPIC.is_valid(orjson.loads(block))


@pytest.mark.parametrize("block", blocks_in(REQUESTS, "yaml"))
def test_every_request_in_the_page_about_requests_is_what_the_schema_allows(block: str) -> None:
    assert A_REQUEST.is_valid(yaml.safe_load(block.replace("9:16", '"9:16"')))


COMMANDS: list[dict[str, Any]] = [
    {"type": "SubmitProject", "project_id": "p1", "command_id": "c", "request": a_request()},
    {"type": "SubmitProject", "project_id": "p1", "request": a_job()},
    {"type": "CancelProject", "project_id": "p1", "expected_version": 3},
    {
        "type": "RetryProject",
        "project_id": "p1",
        "changes": {"scene_id": "s", "max_cost_usd": 2, "providers": {}},
    },
    {
        "type": "ApproveResend",
        "project_id": "p1",
        "job_id": "j",
        "decision": "adopt",
        "provider_task_id": "t",
    },
    {"type": "ApproveResend", "project_id": "p1", "job_id": "j", "decision": "resend"},
    a_request(),
    a_job(id="p1"),
]
_values: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, 7, "word", "", [], {}, "two words", "adopt", "give_up", "CancelProject"]
)
_names = st.sampled_from(["type", "project_id", "command_id", "changes", "provider_task_id", "other"])


@st.composite
def nearly_commands(draw: st.DrawFn) -> dict[str, Any]:
    raw: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(COMMANDS)))
    for _ in range(draw(st.integers(0, 3))):
        holder = raw.get("changes") if draw(st.booleans()) else raw
        holder = holder if isinstance(holder, dict) else raw
        name = draw(st.sampled_from(list(holder)) if holder and draw(st.booleans()) else _names)
        if draw(st.booleans()):
            holder.pop(name, None)
        else:
            holder[name] = copy.deepcopy(draw(_values))  # what is drawn may be shared with other cases
    return raw


def is_understood(raw: dict[str, Any]) -> bool:
    key = str(raw.get("project_id") or raw.get("id") or "p1")
    try:
        command = read_for_projects(key.encode(), orjson.dumps(raw))
        if command.type == "SubmitProject":
            parse_request(dict(command.request))
    except (Unreadable, RequestRefused):
        return False
    return True


@_patiently
@given(nearly_commands())
def test_a_message_is_understood_if_and_only_if_the_schemas_allow_it(raw: dict[str, Any]) -> None:
    assert ON_THE_TOPIC.is_valid(raw) == is_understood(raw), raw


def test_the_messages_to_start_from_are_sound() -> None:
    assert [is_understood(raw) for raw in COMMANDS] == [True] * len(COMMANDS)
