"""Values of a model, made from its fields alone: each variant of each field is in at least one of them.

The same models give the same values, so that a change of what is written can be seen as a change of a file.
"""

import dataclasses
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import AwareDatetime, BaseModel

from models.commands import SubmitProject
from models.credits import Entry
from models.job import Job
from models.lifecycle import JobStatus, SubmitState
from models.request import ProjectRequest

MOMENTS: Final = ("2026-11-30T12:34:56Z", "2026-11-30T12:34:56.789012Z")

_OPEN: Final[Mapping[tuple[type, str], Any]] = {
    (SubmitProject, "request"): ProjectRequest,
    (Entry, "name"): Literal["grant/1", "project/project-1"],
}
"""What stands in fields whose type does not tell."""

_AT_LEAST: Final[Mapping[type, int]] = {Job: len(JobStatus) * (1 + len(SubmitState))}
"""So many values bring each state of a row together with each of its calls: 7 and 5 share no divisor."""

_PLAIN: Final[Mapping[Any, Callable[[str], list[object]]]] = {
    type(None): lambda _: [None],
    bool: lambda _: [False, True],
    int: lambda name: [2 + len(name)],
    float: lambda name: [1.5 + len(name) / 16],
    str: lambda name: [f"{name.replace('_', '')[:8]}-1"],
    datetime: lambda _: list(MOMENTS),
    AwareDatetime: lambda _: list(MOMENTS),
}


def variants(kind: Any, name: str = "") -> list[object]:  # noqa: PLR0911 -- one case for each way to write a type
    """Return values, as JSON knows them, that a field called *name* of type *kind* may have."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        least = max(getattr(rule, "min_length", None) or 0 for rule in inner[1:])
        return [value for value in variants(inner[0], name) if not (least and value == [])]
    if origin in (Union, types.UnionType):
        # What may be absent is absent first.
        choices = sorted(inner, key=lambda choice: choice is not type(None))
        return [value for choice in choices for value in variants(choice, name)]
    if origin is Literal:
        return [value.value if isinstance(value, Enum) else value for value in inner]
    if origin is tuple:
        return _lists(variants(inner[0], name))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(variants(inner[0], "key"), variants(inner[1], name))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [member.value for member in kind]
    if kind in _PLAIN:
        return _PLAIN[kind](name)
    return list(_records(kind))


def _lists(values: list[object]) -> list[object]:
    return [[], *([value] for value in values), values[:2]]


def _mapping(keys: list[object], values: list[object]) -> list[object]:
    return [{}, {key: values[number % len(values)] for number, key in enumerate(keys)}]


def _records(kind: type) -> Iterator[object]:
    fields = {name: variants(_OPEN.get((kind, name), told), name) for name, told in _fields(kind)}
    for number in range(max(_AT_LEAST.get(kind, 1), *(len(values) for values in fields.values()))):
        yield {name: values[number % len(values)] for name, values in fields.items()}


def _fields(kind: type) -> Iterator[tuple[str, Any]]:
    if dataclasses.is_dataclass(kind):
        yield from typing.get_type_hints(kind).items()
    elif issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            yield name, Annotated[field.annotation, None, *field.metadata]
    else:
        raise TypeError(f"{kind!r}: tell tests/stored/variants.py what such a field may hold")
