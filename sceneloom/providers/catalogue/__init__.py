"""The catalogue: what each provider offers, what it costs, and what is gone. Data, one TOML file a service.

A value that no primary source confirms is named in the `unconfirmed` of its model or service.
"""

import functools
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from sceneloom.providers.catalogue.entries import Aid, Capabilities, Entry, Gone, Kind, Model
from sceneloom.providers.catalogue.limits import Misfit, misfits

__all__ = [
    "Aid",
    "Capabilities",
    "Entry",
    "Gone",
    "Kind",
    "Misfit",
    "Model",
    "entries",
    "gone",
    "misfits",
    "read_entry",
]

_GONE: Final = "gone.toml"


def read_entry(text: str) -> Entry:
    """Read one service from TOML. Raises `ValueError` that names what is wrong."""
    return Entry.model_validate(tomllib.loads(text))


@functools.cache
def entries() -> Mapping[str, Entry]:
    """Return our own services by name, in the order of their names."""
    found = (
        read_entry(file.read_text("utf-8"))
        for file in sorted(files(__name__).iterdir(), key=lambda file: file.name)
        if file.name.endswith(".toml") and file.name != _GONE
    )
    return {entry.name: entry for entry in found}


@functools.cache
def gone() -> Mapping[str, Gone]:
    """Return the services and models that people still ask for, and that were shut down."""
    raw = tomllib.loads((files(__name__) / _GONE).read_text("utf-8"))
    return {name: Gone.model_validate(facts) for name, facts in raw.items()}
