"""What a later release might write: everything of today, with fields and words that today nobody knows."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

FIELD: Final = "since_next"
"""A field that the release after this one adds to everything that it writes."""

WORD: Final = "a_later_word"


def with_fields(value: Any) -> Any:
    """Return the JSON of *value* with one more field in each of its objects."""
    return _object(value, more={FIELD: {"reason": WORD, "count": 1}})


def with_words(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the JSON of *value* with one word that nobody knows today, and where it stands."""
    for path in _words(value, ()):
        told = _object(value, more={})
        inner = told
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = WORD
        yield ".".join(map(str, path)), told


def _object(value: Any, more: Mapping[str, object]) -> Any:
    if isinstance(value, BaseModel) or is_dataclass(value):
        return {name: _object(inner, more) for name, inner in _fields(value)} | {**more}
    match value:
        case Mapping():
            return {str(key): _object(inner, more) for key, inner in value.items()}
        case tuple() | list():
            return [_object(inner, more) for inner in value]
        case _:
            return to_jsonable_python(value)


def _words(value: Any, at: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, BaseModel) or is_dataclass(value):
        for name, inner in _fields(value):
            yield from _words(inner, (*at, name))
    match value:
        case Enum():
            yield at
        case tuple() | list():
            for number, inner in enumerate(value):
                yield from _words(inner, (*at, number))
        case _:
            pass


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    names = (
        type(value).model_fields if isinstance(value, BaseModel) else [each.name for each in fields(value)]
    )
    for name in names:
        yield name, getattr(value, name)
