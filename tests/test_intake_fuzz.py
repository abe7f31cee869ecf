"""Any bytes on our topics are a message, or a reason why they are none, and nothing else."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from models.errors import DomainError
from sceneloom import intake
from sceneloom.codec import decode, encode
from sceneloom.topics import CREDITS_INPUT, ERRANDS_INPUT, PROJECTS_INPUT, SCENES_INPUT, key_of
from tests.fakes import a_request
from tests.fuzzing import any_json, nearly, patiently
from tests.models.requests import a_job

pytestmark = pytest.mark.fuzz

Read = Callable[[bytes | None, bytes | None], Any]
READERS: dict[str, tuple[Read, TypeAdapter[Any]]] = {
    "projects": (intake.read_for_projects, PROJECTS_INPUT),
    "scenes": (intake.read_for_scenes, SCENES_INPUT),
    "credits": (intake.read_for_credits, CREDITS_INPUT),
    "errands": (intake.read_for_errands, ERRANDS_INPUT),
}
KEY = "film-1"


def example(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> Any:  # noqa: PLR0911 -- one match reads best whole
    """Return a small value that fits the JSON *schema*, whose references are to *parts*."""
    if "$ref" in schema:
        return example(parts[schema["$ref"].rpartition("/")[2]], parts)
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return example(choices[0], parts)
    match schema.get("type"):
        case "object":
            return {name: example(each, parts) for name, each in schema.get("properties", {}).items()}
        case "array":
            item = schema.get("items") or (schema.get("prefixItems") or [{}])[0]
            return [example(item, parts)]
        case "string":
            return {"date-time": "2026-03-04T05:06:07Z"}.get(schema.get("format", ""), KEY)
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return True
        case _:
            return None


def messages(adapter: TypeAdapter[Any]) -> Iterator[dict[str, Any]]:
    """Yield a sound message of each kind that *adapter* reads."""
    schema = adapter.json_schema()
    for each in schema["oneOf"]:
        message = example(each, schema["$defs"])
        yield message | ({"decision": "adopt"} if "decision" in message else {})


def read(name: str, key: bytes | None, value: bytes | None) -> Any:
    """Return what is read, None where it is refused by a reason in one line; anything else raises."""
    reader, adapter = READERS[name]
    message: Any = None
    why = None
    try:
        message = reader(key, value)
    except DomainError as refused:
        why = str(refused)
    if why is not None:
        assert 0 < len(why) < 4000
        assert "\n" not in why
        return None
    assert message is not None
    # Whatever was taken can be passed on, and is the same to whoever reads it then.
    assert decode(adapter, encode(message)) == message
    assert key_of(message).encode() == key
    return message


@pytest.mark.parametrize("name", READERS)
def test_the_examples_are_messages(name: str) -> None:
    examples = list(messages(READERS[name][1]))
    unread = [
        each["type"] for each in examples if read(name, KEY.encode(), json.dumps(each).encode()) is None
    ]
    assert len(examples) >= 3
    assert unread == []


@pytest.mark.parametrize("name", READERS)
@patiently(40)
@given(key=st.none() | st.binary(max_size=20), value=st.none() | st.binary(max_size=200))
def test_any_bytes_are_refused_with_a_reason_or_read(
    name: str, key: bytes | None, value: bytes | None
) -> None:
    read(name, key, value)


@pytest.mark.parametrize("name", READERS)
@patiently(30)
@given(key=st.sampled_from([KEY.encode(), b"other", b"\xff"]), value=any_json)
def test_any_json_is_refused_with_a_reason_or_read(name: str, key: bytes, value: Any) -> None:
    read(name, key, json.dumps(value).encode())


@pytest.mark.parametrize("name", READERS)
@patiently(80)
@given(data=st.data())
def test_a_message_with_something_changed_is_refused_with_a_reason_or_read(
    name: str, data: st.DataObject
) -> None:
    sound = [*messages(READERS[name][1])]
    sound += [{"title": "x", **a_request(1)}, a_job(id=KEY)] if name == "projects" else []
    value = data.draw(nearly(data.draw(st.sampled_from(sound))))
    read(name, KEY.encode(), json.dumps(value).encode())


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "value",
    [
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"1" * 800_000,
        b'{"type": ' + b'"' + b"x" * 890_000 + b'"}',
        b'"\xed\xa0\x80"',
        b'{"type": "\\ud800"}',
        b"\xef\xbb\xbf{}",
        b"{}\x00",
        b"NaN",
        b"x" * 1_000_000,
    ],
    ids=["lists", "objects", "number", "text", "surrogate", "escape", "mark", "NUL", "NaN", "size"],
)
def test_bytes_that_strain_a_parser_are_refused(name: str, value: bytes) -> None:
    assert read(name, KEY.encode(), value) is None
