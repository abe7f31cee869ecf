"""The documents are sound by the words of their own specifications, and hang together."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from sceneloom import dead_letters
from sceneloom.publisher import cloud_event
from sceneloom.settings import Settings
from sceneloom.topics import DEAD_LETTERS, PROJECT_EVENTS, topic_specs
from tests.contract.documents import ASYNCAPI, ROOT, SCHEMAS, headers_of
from tests.stage import a_completion

OFFICIAL = Path(__file__).parent / "asyncapi-3.0.0.json.gz"


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_every_schema_is_a_json_schema(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])


def test_the_asyncapi_document_is_what_the_official_schema_of_asyncapi_allows() -> None:
    official = Draft7Validator(json.loads(gzip.decompress(OFFICIAL.read_bytes())))

    assert [error.message for error in official.iter_errors(ASYNCAPI)] == []
    broken = {**ASYNCAPI, "operations": {"x": {"action": "dance"}}}
    assert not official.is_valid(broken)


def references(part: Any) -> list[str]:
    if isinstance(part, list):
        return [found for each in part for found in references(each)]
    if not isinstance(part, dict):
        return []
    own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
    return own + [found for each in part.values() for found in references(each)]


def test_every_reference_of_the_asyncapi_document_leads_somewhere() -> None:
    found = references(ASYNCAPI)
    for reference in found:
        file, _, steps = reference.partition("#/")
        place: Any = ASYNCAPI
        if file:
            assert (ROOT / "docs" / file).exists(), reference
        for step in steps.split("/") if steps else ():
            place = place[step]

    assert len(found) > 70
    assert {Path(each).name for each in found if ".json" in each} | {
        "project-request.json",
        "video-job.json",
    } == set(SCHEMAS)


def test_every_topic_for_others_is_in_the_document_and_no_other() -> None:
    internal = {"scene-requests", "job-events", "scene-results", "credit-results"}
    topics = {
        spec.name
        for spec in topic_specs(Settings(_env_file=None, credits="table"))
        if "changelog" not in spec.name
    }

    assert set(ASYNCAPI["channels"]) == topics - internal


def test_an_event_has_the_headers_that_the_document_names() -> None:
    _, headers = cloud_event(a_completion("p1"))
    texts = {name: value.decode() for name, value in headers.items()}
    headers_schema = SCHEMAS["event-headers.json"]

    assert [error.message for error in headers_of("ProjectCompleted").iter_errors(texts)] == []
    assert set(texts) == set(headers_schema["required"])
    assert not headers_of("ProjectCompleted").is_valid(texts | {"ce_specversion": "2.0"})
    assert PROJECT_EVENTS in ASYNCAPI["channels"]


def test_a_dead_letter_has_the_headers_that_the_document_names() -> None:
    constants = {
        value for name, value in vars(dead_letters).items() if name.isupper() and isinstance(value, str)
    }

    assert set(SCHEMAS["dead-letter-headers.json"]["properties"]) == constants
    assert DEAD_LETTERS in ASYNCAPI["channels"]


def test_the_official_schema_is_credited() -> None:
    assert OFFICIAL.name in (ROOT / "NOTICE").read_text("utf-8")
