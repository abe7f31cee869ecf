"""JSON Schemas (2020-12) of our models, for those who send them and for those who read them."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from pydantic import BaseModel

Schema = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

OPEN_ENUMS: Final = frozenset({"ErrorCode", "ProjectState"})
"""Words that a later release may add to: a reader must do with one that it does not know."""

NOTHING: Final[Schema] = {"type": "null"}

_INSIDE: Final = ("properties", "$defs", "dependentSchemas")
_LISTS: Final = ("anyOf", "allOf", "oneOf")
_ONE: Final = ("items", "additionalProperties", "propertyNames", "not", "if", "then", "else")


def sent(model: type[BaseModel]) -> Schema:
    """Return the schema of a *model* that others write; its `type`, where it has one, must be given."""
    schema = _tidied(model.model_json_schema(mode="validation"))
    return named(model.__name__, described(model), _with_type(schema))


def read(model: type[BaseModel]) -> Schema:
    """Return the schema of a *model* that we write.

    A field with a default is written too, but need not be there: topics still hold what older releases wrote.
    """
    schema = _tidied(model.model_json_schema(mode="serialization"))
    for name in OPEN_ENUMS & set(schema.get("$defs", ())):
        words = schema["$defs"][name]
        words["x-extensible-enum"] = words.pop("enum")
    each_schema(schema, lambda part: part.pop("default", None))
    return named(model.__name__, described(model), _with_type(schema))


def named(title: str, description: str, schema: Schema) -> Schema:
    """Return *schema* as a document of its own."""
    rest = {key: value for key, value in schema.items() if key not in {"title", "description"}}
    return {"$schema": DIALECT, "title": title, "description": description} | rest


def described(model: type[BaseModel]) -> str:
    """Return what *model* says of itself, as one paragraph."""
    return " ".join((model.__doc__ or "").split())


def or_nothing(schema: Schema) -> Schema:
    """Return *schema* for a key whose null is as good as a missing key."""
    if NOTHING in schema.get("anyOf", ()) or schema == NOTHING:
        return schema
    notes = {key: schema[key] for key in ("default", "description") if key in schema}
    rest = {key: value for key, value in schema.items() if key not in notes}
    return {"anyOf": [rest, dict(NOTHING)]} | notes


def each_schema(schema: Schema, act: Callable[[Schema], object]) -> None:
    """Call *act* with *schema* and with each schema in it."""
    act(schema)
    for part in _parts(schema):
        each_schema(part, act)


def _with_type(schema: Schema) -> Schema:
    """Say that the `type` must be there, where a message has one: by it readers tell what it is."""
    if "type" in schema["properties"]:
        schema["required"] = ["type", *schema.get("required", ())]
        schema["properties"]["type"].pop("default", None)
    return schema


def _parts(schema: Schema) -> Iterator[Schema]:
    for key in _INSIDE:
        yield from (part for part in schema.get(key, {}).values() if isinstance(part, dict))
    for key in _LISTS:
        yield from schema.get(key, ())
    for key in _ONE:
        if isinstance(schema.get(key), dict):
            yield schema[key]


def _tidied(schema: Schema) -> Schema:
    """Drop the titles that only repeat a key, and the defaults that say no more than that null is allowed."""

    def tidy(part: Schema) -> None:
        part.pop("title", None)
        if "default" in part and part["default"] is None:
            del part["default"]
        if "description" in part:
            part["description"] = " ".join(part["description"].split())

    each_schema(schema, tidy)
    return schema
