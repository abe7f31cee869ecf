"""Tells what a new schema breaks for those who go by the old one.

What others were allowed to send must stay allowed. What we write now must be what readers were told, and what
we wrote before, which topics still hold, must be what new readers are told.

It knows the keywords that our schemas use. Of any other keyword, and of a condition that changed, it says so,
for a person to judge: better one question too many.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sceneloom.contract.messages import Direction
from sceneloom.contract.shaping import Schema

_NOTES: Final = frozenset(
    {"$schema", "$defs", "title", "description", "examples", "x-extensible-enum", "default", "$ref"}
)
_AT_LEAST: Final = frozenset({"minimum", "minLength", "minItems"})
_AT_MOST: Final = frozenset({"maximum", "maxLength", "maxItems"})
_SHAPE: Final = frozenset(
    {"type", "enum", "const", "properties", "required", "additionalProperties", "items"}
)
_JUDGED: Final = _NOTES | _AT_LEAST | _AT_MOST | _SHAPE | {"anyOf"}

Files = Mapping[str, Schema]


def breaks(old: Schema, new: Schema, direction: Direction) -> list[str]:
    """Return what *new* breaks for those who go by *old*, each with the path of the key."""
    told = _Narrowing(old, new).found(old, new, "")
    match direction:
        case Direction.SENT:
            told += _changed_defaults(old, new)
        case Direction.READ:
            told += _Narrowing(new, old).found(new, old, "")
    return list(dict.fromkeys([*_lost(old, new), *told]))


class _Narrowing:
    """Finds what a value may be under the schema *wide* that it may not be under the schema *narrow*."""

    def __init__(self, wide: Schema, narrow: Schema) -> None:
        self._wide_root, self._narrow_root = wide, narrow

    def found(self, wide: Any, narrow: Any, at: str) -> list[str]:
        if isinstance(wide, bool) or isinstance(narrow, bool):
            return [] if narrow is True or wide is False or wide == narrow else [f"{at or '/'}: not allowed"]
        wide, narrow = _resolved(wide, self._wide_root), _resolved(narrow, self._narrow_root)
        if "anyOf" in wide or "anyOf" in narrow:
            return [*self._in_choices(wide, narrow, at), *self._elsewhere(wide, narrow, at)]
        return [
            *_types(wide, narrow, at),
            *_bounds(wide, narrow, at),
            *self._fields(wide, narrow, at),
            *self._elsewhere(wide, narrow, at),
        ]

    def _in_choices(self, wide: Schema, narrow: Schema, at: str) -> list[str]:
        targets = narrow.get("anyOf", [narrow])
        reasons = []
        for choice in wide.get("anyOf", [wide]):
            answers: list[list[str]] = [self.found(choice, target, at) for target in targets]
            if all(answers):
                reasons += min(answers)
        return reasons

    def _fields(self, wide: Schema, narrow: Schema, at: str) -> Iterator[str]:
        for name in narrow.get("required", ()):
            if name not in wide.get("required", ()):
                yield f"{at}/{name}: required here, and not there"
        ours, theirs = wide.get("properties", {}), narrow.get("properties", {})
        rest = narrow.get("additionalProperties", True)
        for name, field in ours.items():
            if name in theirs or rest is not True:
                yield from self.found(field, theirs.get(name, rest), f"{at}/{name}")
        if wide.get("additionalProperties", True) is not False or rest is not False:
            yield from self.found(wide.get("additionalProperties", True), rest, f"{at}/*")
        if "items" in narrow:
            yield from self.found(wide.get("items", True), narrow["items"], f"{at}[]")

    def _elsewhere(self, wide: Schema, narrow: Schema, at: str) -> Iterator[str]:
        """Ask about each rule that is not judged here, and is not the same."""
        for key in sorted(narrow.keys() - _JUDGED):
            rule = narrow[key]
            if key == "dependentSchemas":  # a rule about a key that cannot be there narrows nothing
                rule = {name: each for name, each in rule.items() if name in wide.get("properties", {})}
            if _spelled_out(wide.get(key)) != _spelled_out(rule):
                yield f"{at or '/'}: `{key}` differs"


def _types(wide: Schema, narrow: Schema, at: str) -> Iterator[str]:
    ours, theirs = wide.get("type"), narrow.get("type")
    if theirs is not None and ours != theirs and (ours, theirs) != ("integer", "number"):
        yield f"{at or '/'}: {ours or 'anything'} became {theirs}"
    allowed = _words(narrow)
    if allowed is not None:
        for word in [None] if _words(wide) is None else _words(wide) or ():
            if word not in allowed:
                yield f"{at or '/'}: {word or 'any value'!r} is not one of {allowed}"


def _words(schema: Schema) -> list[Any] | None:
    return [schema["const"]] if "const" in schema else schema.get("enum")


def _bounds(wide: Schema, narrow: Schema, at: str) -> Iterator[str]:
    for key in sorted(narrow.keys() & (_AT_LEAST | _AT_MOST)):
        ours, theirs = wide.get(key), narrow[key]
        if ours is None or (ours < theirs if key in _AT_LEAST else ours > theirs):
            yield f"{at or '/'}: {key} {theirs}, was {ours}"


def _lost(old: Schema, new: Schema) -> Iterator[str]:
    known = {place for place, _ in _fields_of(new, new)}
    for place, _ in _fields_of(old, old):
        if place not in known:
            yield f"{place}: removed"


def _changed_defaults(old: Schema, new: Schema) -> Iterator[str]:
    now = dict(_fields_of(new, new))
    for place, field in _fields_of(old, old):
        if place in now and field.get("default") != now[place].get("default"):
            yield f"{place}: the default {field.get('default')!r} became {now[place].get('default')!r}"


def _fields_of(schema: Any, root: Schema, at: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield every field of *schema*, however deep, with its place."""
    if not isinstance(schema, dict):
        return
    schema = _resolved(schema, root)
    for choice in schema.get("anyOf", ()):
        yield from _fields_of(choice, root, at)
    yield from _fields_of(schema.get("items"), root, f"{at}[]")
    for name, field in schema.get("properties", {}).items():
        if isinstance(field, dict):
            yield f"{at}/{name}", field
            yield from _fields_of(field, root, f"{at}/{name}")


def _resolved(schema: Schema, root: Schema) -> Schema:
    """Follow a reference inside the document; one to another file stays: that file is compared itself."""
    reference = str(schema.get("$ref", ""))
    if not reference.startswith("#/"):
        return schema | {"const": reference} if reference else schema
    found: Any = root
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return _resolved({**found, **{key: value for key, value in schema.items() if key != "$ref"}}, root)


def _spelled_out(rule: Any) -> Any:
    """Return *rule* without the words that only people read."""
    if isinstance(rule, dict):
        return {key: _spelled_out(value) for key, value in rule.items() if key != "description"}
    return [_spelled_out(each) for each in rule] if isinstance(rule, list) else rule
