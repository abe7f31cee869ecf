"""Reads scenarios, and says what is wrong with one in words that help to mend it."""

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ValidationError

from models.faults import RequestRefused
from sceneloom import request_file
from sceneloom.testing.fake_provider import scenario as parts
from sceneloom.testing.fake_provider.scenario import Scenario


class ScenarioInvalid(ValueError):
    """The scenario cannot be played; the message names every fault and where it stands."""


_KEYS: Final = sorted(
    {
        name
        for kind in vars(parts).values()
        if isinstance(kind, type) and issubclass(kind, BaseModel)
        for name in kind.model_fields
    }
)


def read_scenario(source: Scenario | Mapping[str, object] | Path | None) -> Scenario:
    """Return the scenario that *source* is or holds (a path: JSON where it ends so, else YAML).

    Raises `ScenarioInvalid`.
    """
    if isinstance(source, Scenario):
        return source
    content = _content(source) if isinstance(source, Path) else source
    try:
        return Scenario.model_validate({} if content is None else content)
    except ValidationError as error:
        raise ScenarioInvalid("\n".join(_faults(error))) from error


def _content(path: Path) -> object:
    try:
        return request_file.load(path)
    except RequestRefused as error:
        raise ScenarioInvalid("\n".join(fault.message for fault in error.faults)) from error


def _faults(error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_url=False, include_context=False):
        yield f"{_place(fault['loc'])}: {_words(fault)}"


def _place(location: tuple[int | str, ...]) -> str:
    place = ""
    for step in location:
        place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else step
    return place or "scenario"


def _words(fault: Mapping[str, object]) -> str:
    if fault["type"] != "extra_forbidden":
        return str(fault["msg"]).removeprefix("Value error, ")
    location = fault["loc"]
    key = str(location[-1]) if isinstance(location, tuple) else ""
    near = difflib.get_close_matches(key, _KEYS, n=1)
    return "there is no such key" + (f"; did you mean {near[0]}?" if near else "")
