"""Reads the keys of a request: snake_case or camelCase, each once, and none that nobody knows."""

import difflib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeGuard

from models.faults import MOST_FAULTS, Fault, Place, either, fault, name_of, path_of, shown

Raw: TypeAlias = Mapping[Any, object]
"""Keys and values as a parser gives them: the keys may be anything."""

_MEANT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "budget": "max_cost_usd",
        "caption": "narration",
        "duration": "duration_seconds",
        "length": "duration_seconds",
        "format": "aspect_ratio",
        "image": "picture",
        "locale": "language",
        "name": "title",
        "photo": "picture",
        "ratio": "aspect_ratio",
        "script": "narration",
        "seconds": "duration_seconds",
        "seed": "variation",
        "size": "aspect_ratio",
        "text": "narration",
        "tts": "speech",
        "user": "user_id",
        "video": "clip",
        "voiceover": "narration",
    }
)
"""What people write for our keys where the letters alone do not tell."""


def is_mapping(value: object) -> TypeGuard[Raw]:
    """Tell whether *value* is a set of keys and values, of whatever types."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Tell whether *value* is a list, of whatever items."""
    return isinstance(value, list | tuple)


def spelled(raw: Raw, known: Sequence[str], at: Place, faults: list[Fault]) -> dict[str, object]:
    """Return *raw*, found *at* that place, under its *known* keys; a null is as good as no value.

    What has no known key, or is given in two spellings, is added to *faults*.
    """
    ours = {_camel(key): key for key in known} | {str(key): str(key) for key in known}
    content: dict[str, object] = {}
    written: dict[str, object] = {}
    for key, value in raw.items():
        name = ours.get(key) if isinstance(key, str) else None
        if name is None:
            if len(faults) < 2 * MOST_FAULTS:
                faults.append(_unknown(key, known, at))
        elif name in written:
            text = f"is given twice, as {written[name]} and as {key}; keep one"
            faults.append(fault((*at, name), "duplicate_key", text))
        else:
            written[name] = key
            if value is not None:
                content[name] = value
    return content


def nearest(word: str, known: Sequence[str]) -> str | None:
    """Return the one of *known* that *word* most likely meant, if any is near."""
    if len(word) > 64:
        return None
    plain = {_plain(name): name for name in known}
    meant = _MEANT.get(_plain(word))
    if meant in known:
        return meant
    close = difflib.get_close_matches(_plain(word), plain, n=1, cutoff=0.6)
    return plain[close[0]] if close else None


def _unknown(key: object, known: Sequence[str], at: Place) -> Fault:
    word = key if isinstance(key, str) else shown(key)
    near = nearest(word, known)
    advice = f"did you mean {near}?" if near else f"the keys here are {either(known)}"
    where = f"{name_of(at)}: " if at else ""
    return Fault(path_of((*at, word)), "unknown_key", f"{where}there is no key {shown(key)}; {advice}")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _plain(word: str) -> str:
    return "".join(letter for letter in word.lower() if letter.isalnum())
