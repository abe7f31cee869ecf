"""What each release has stored, as files: one folder a release, one file a place, one stored thing a line."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter

from sceneloom.codec import encode
from tests.stored.places import PLACES, Place
from tests.stored.variants import variants

HERE: Final = Path(__file__).parent
NEXT: Final = "next"
"""The folder of what the release to come will store: it may be written anew, the others never."""


@dataclass(frozen=True)
class Line:
    """One stored thing: its key, its JSON, and what it meant to the release that wrote it."""

    key: str
    value: Any
    means: Mapping[str, object]

    @property
    def raw(self) -> bytes:
        """The bytes as they were stored."""
        return json.dumps(self.value, ensure_ascii=False, separators=(",", ":")).encode()


def releases(folder: Path = HERE) -> list[str]:
    """Return the names of all releases of which something is kept, the oldest first."""
    return sorted(path.name for path in folder.iterdir() if (path / "tables").is_dir())


def read(release: str, place: Place, folder: Path = HERE) -> list[Line]:
    """Return what *release* stored at *place*; nothing where it knew no such place."""
    path = _file(folder, release, place)
    if not path.exists():
        return []
    return [Line(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def write(release: str, folder: Path = HERE) -> None:
    """Write what the code of today would store, as that of *release*."""
    for place in PLACES.values():
        path = _file(folder, release, place)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = (
            json.dumps(
                {"key": line.key, "value": line.value, "means": line.means},
                ensure_ascii=False,
                separators=(",", ":"),
            )
            for line in today(place)
        )
        path.write_text("".join(f"{line}\n" for line in dict.fromkeys(lines)), "utf-8")


def today(place: Place) -> Iterator[Line]:
    """Yield everything that the code of today may store at *place*, each variant of each field once."""
    for kind in place.kinds:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        for raw in variants(kind):
            value = adapter.validate_python(raw)
            key, means = place.key(value), place.means(value)
            yield Line(key, json.loads(encode(value)), means)
            if place.sparse:
                short = value.model_dump(mode="json", exclude_defaults=True) | {"type": value.type}
                yield Line(key, short, means)


def facts(place: Place, line: Line) -> Iterator[str]:
    """Yield what *line* shows: which fields there are, absent or present, and which words they hold."""
    yield from _facts(line.value, place.name)


def _facts(value: Any, at: str) -> Iterator[str]:
    match value:
        case dict():
            kind = value.get("type") or value.get("kind")
            for name, inner in value.items():
                yield from _facts(inner, f"{at}/{kind}.{name}" if isinstance(kind, str) else f"{at}/{name}")
        case list():
            yield f"{at}: {'some' if value else 'none'}"
            for inner in value:
                yield from _facts(inner, f"{at}[]")
        case int() | float() if not isinstance(value, bool):
            yield f"{at}: a number"
        case _:
            yield f"{at}: {value}"


def encoded(value: Any) -> Any:
    """Return the JSON that the code of today writes for *value*."""
    return json.loads(encode(value)) if isinstance(value, BaseModel) else value


def _file(folder: Path, release: str, place: Place) -> Path:
    return folder / release / f"{place.name}.jsonl"
