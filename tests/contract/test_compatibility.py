"""A change of a public schema that somebody could not live with is found."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from sceneloom.contract.compatibility import breaks
from sceneloom.contract.messages import Direction, schema_files
from tests.contract.documents import ROOT, SCHEMAS

RELEASED = ROOT / "docs" / "schemas" / "released"
Change = Callable[[dict[str, Any]], object]


def told(name: str, change: Change) -> list[str]:
    old, new = SCHEMAS[name], copy.deepcopy(SCHEMAS[name])
    change(new)
    assert new != old
    return breaks(old, new, schema_files()[name][0])


@pytest.mark.parametrize("path", sorted(RELEASED.glob("*.json")), ids=lambda path: path.name)
def test_what_was_released_is_not_broken(path: Any) -> None:
    direction, schema = schema_files()[path.name]

    assert breaks(json.loads(path.read_text("utf-8")), json.loads(json.dumps(schema)), direction) == []


def test_there_is_a_release() -> None:
    assert {path.name for path in RELEASED.glob("*.json")} >= {"submit-project.json", "project-snapshot.json"}


def scene(schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = schema["$defs"]["SceneRequest"]
    return found


def add_optional(schema: dict[str, Any]) -> None:
    schema["properties"] |= {"sub_title": {"type": "string"}, "subTitle": {"type": "string"}}
    schema["dependentSchemas"]["subTitle"] = {"properties": {"sub_title": False}}


SENT_FREELY: list[Change] = [
    add_optional,
    lambda s: s["$defs"]["Platform"]["enum"].append("vimeo"),
    lambda s: s["properties"]["title"].update(maxLength=200),
    lambda s: s["properties"]["title"].update(description="another word"),
    lambda s: s["required"].remove("title"),
]
SENT_WRONGLY: list[tuple[Change, str]] = [
    (lambda s: s["properties"].pop("voice"), "/voice: removed"),
    (lambda s: s["properties"].pop("aspectRatio"), "/aspectRatio: removed"),
    (lambda s: s["required"].append("voice"), "/voice: required"),
    (lambda s: s["properties"]["title"].update(type="integer"), "/title: string became integer"),
    (lambda s: s["properties"]["title"].update(maxLength=20), "/title: maxLength 20"),
    (lambda s: s["properties"]["title"].update(pattern="^x"), "/title: `pattern`"),
    (lambda s: s["$defs"]["Platform"]["enum"].remove("reels"), "/platform: 'reels'"),
    (lambda s: s["properties"]["use_cache"].update(default=False), "/use_cache: the default True"),
    (lambda s: scene(s)["required"].append("narration"), "/scenes[]/narration: required"),
    (lambda s: scene(s)["properties"].pop("picture"), "/scenes[]/picture: removed"),
    (lambda s: scene(s)["then"]["properties"]["durationSeconds"].update(maximum=5), "/scenes[]: `then`"),
    (lambda s: s["properties"]["voice"]["anyOf"].pop(), "/voice: "),
]


@pytest.mark.parametrize("change", SENT_FREELY)
def test_more_may_be_allowed_than_before(change: Change) -> None:
    assert told("project-request.json", change) == []


@pytest.mark.parametrize(("change", "reason"), SENT_WRONGLY)
def test_what_was_allowed_stays_allowed(change: Change, reason: str) -> None:
    assert any(line.startswith(reason) for line in told("project-request.json", change))


READ_FREELY: list[Change] = [
    lambda s: s["properties"].update(subtitle={"type": "string"}),
    lambda s: s["$defs"]["ErrorCode"]["x-extensible-enum"].append("too_beautiful"),
]
READ_WRONGLY: list[tuple[Change, str]] = [
    (lambda s: s["properties"].pop("video_url"), "/video_url: removed"),
    (lambda s: s["required"].remove("state"), "/state: required"),
    (lambda s: (s["properties"].update(x={}), s["required"].append("x")), "/x: required"),
    (lambda s: s["properties"]["version"].update(type="string"), "/version: integer became string"),
    (lambda s: s["properties"]["version"].update(type="number"), "/version: number became integer"),
    (lambda s: s["$defs"]["SceneStatus"]["enum"].append("Lost"), "/scenes[]/status: 'Lost'"),
    (lambda s: s["properties"]["title"].update(anyOf=[{"type": "string"}, {"type": "null"}]), "/title: "),
]


@pytest.mark.parametrize("change", READ_FREELY)
def test_more_may_be_told_than_before(change: Change) -> None:
    assert told("project-snapshot.json", change) == []


@pytest.mark.parametrize(("change", "reason"), READ_WRONGLY)
def test_old_and_new_readers_understand_old_and_new_messages(change: Change, reason: str) -> None:
    assert any(line.startswith(reason) for line in told("project-snapshot.json", change))


def test_a_reference_to_another_request_is_a_change() -> None:
    def one_form_less(schema: dict[str, Any]) -> None:
        schema["properties"]["request"]["anyOf"].pop()

    assert told("submit-project.json", one_form_less) != []
    assert schema_files()["submit-project.json"][0] is Direction.SENT
