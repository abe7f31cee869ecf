"""What is wrong with a request, in words its author understands, and where it is."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from models.errors import DomainError

Place: TypeAlias = tuple[str | int, ...]
"""The keys and positions (counted from 0) that lead to a value, such as `("scenes", 2, "prompt")`."""

MOST_FAULTS: Final = 100
"""How many faults one refusal lists; nobody reads more."""

_RULE: Final = "sceneloom"
_SCENE: Final = re.compile(r"scenes\[(\d+)\]")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Fault:
    """One broken rule: a path like `scenes[2].prompt` (from 0), a stable word, and plain English."""

    path: str
    rule: str
    message: str


class RequestRefused(DomainError):
    """The request breaks rules; `faults` holds all of them: of the whole first, then scene by scene."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = _shortened(tuple(sorted(faults, key=_scene_of)))
        super().__init__("; ".join(fault.message for fault in self.faults))

    def __reduce__(self) -> tuple[type["RequestRefused"], tuple[tuple[Fault, ...]]]:
        return (type(self), (self.faults,))


def _scene_of(found: Fault) -> int:
    scene = _SCENE.match(found.path)
    return int(scene[1]) if scene else -1


def _shortened(faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
    if len(faults) <= MOST_FAULTS:
        return faults
    more = len(faults) - MOST_FAULTS + 1
    return (*faults[: MOST_FAULTS - 1], Fault("", "more_faults", f"and {more} more faults"))


def fault(place: Place, rule: str, text: str) -> Fault:
    """Make a fault whose message names *place* and then says *text*, such as `is missing`."""
    return Fault(path_of(place), rule, f"{name_of(place)} {text}")


def broken(rule: str, text: str) -> PydanticCustomError:
    """Make the error that a validator raises so that `faults_of` gives *rule* and *text* unchanged."""
    return PydanticCustomError(_RULE, "{text}", {"rule": rule, "text": text})


def faults_of(error: ValidationError) -> tuple[tuple[Place, Fault], ...]:
    """Say what *error* found, in our own words, each fault with its place."""
    details = error.errors(include_url=False)
    return tuple(
        (detail["loc"], fault(detail["loc"], *_said(detail)))
        for detail in details
        if not _follows_from_another(detail)
    )


def _follows_from_another(detail: ErrorDetails) -> bool:
    match detail["type"]:
        case "default_factory_not_called":
            return True
        case "too_short":
            return bool(detail["input"])  # every entry is faulty, so that no sound one is left
        case _:
            return False


def path_of(place: Place) -> str:
    """Write *place* as a path: `scenes[2].prompt`."""
    path = ""
    for step in place:
        if isinstance(step, int):
            path += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            path += f".{step}" if path else step
        else:
            path += f"[{json.dumps(step[:40])}]"
    return path


def name_of(place: Place) -> str:
    """Name *place* as a person would, scenes counted from 1: `scene 3: prompt`."""
    match place:
        case ():
            return "the request"
        case ("scenes", int(index)):
            return f"scene {index + 1}"
        case ("scenes", int(index), *rest):
            return f"scene {index + 1}: {path_of(tuple(rest))}"
        case _:
            return path_of(place)


def shown(value: object) -> str:
    """Show a short, printable form of any *value* that a request may hold."""
    match value:
        case str():
            return repr(value if len(value) <= 40 else f"{value[:39]}…")
        case bool():
            return "true" if value else "false"
        case int() if value.bit_length() > 64:
            return "a number with very many digits"
        case int() | float():
            return f"{value:.10g}" if isinstance(value, float) else str(value)
        case _:
            return kind_of(value)


_KINDS: Final[tuple[tuple[type, str], ...]] = (
    (bool, "true or false"),
    (int, "a number"),
    (float, "a number"),
    (str, "text"),
    (list, "a list"),
    (tuple, "a list"),
    (Mapping, "a set of keys and values"),
    (type(None), "empty"),
)


def kind_of(value: object) -> str:
    """Say what kind of thing *value* is: `a number`, `a list`."""
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "nothing that JSON can hold")


def either(choices: Iterable[str]) -> str:
    """Join *choices* as a person would: `a, b or c`."""
    *most, last = choices
    return f"{', '.join(most)} or {last}" if most else last


def _must_be(wanted: str) -> Callable[[ErrorDetails], tuple[str, str]]:
    return lambda detail: ("wrong_type", f"is {kind_of(detail['input'])}; it must be {wanted}")


def _not_text(detail: ErrorDetails) -> tuple[str, str]:
    value = detail["input"]
    advice = "; put it in quotes" if isinstance(value, bool | int | float) else ""
    return "wrong_type", f"is {kind_of(value)}; it must be text{advice}"


def _too_long(detail: ErrorDetails) -> tuple[str, str]:
    most = detail.get("ctx", {})["max_length"]
    return "too_long", f"has {len(str(detail['input']))} characters; at most {most} are allowed"


def _out_of_range(words: str, bound: str) -> Callable[[ErrorDetails], tuple[str, str]]:
    return lambda detail: (
        "out_of_range",
        f"is {shown(detail['input'])}; it must be {words} {detail.get('ctx', {})[bound]:g}",
    )


def _unknown_value(detail: ErrorDetails) -> tuple[str, str]:
    choices = re.findall(r"'([^']*)'", str(detail.get("ctx", {})["expected"]))
    return "unknown_value", f"is {shown(detail['input'])}; use {either(choices)}"


def _half_character(_detail: ErrorDetails) -> tuple[str, str]:
    return "bad_character", "holds half of a character (a lone surrogate); write it again"


def _not_identifier(detail: ErrorDetails) -> tuple[str, str]:
    allowed = "1 to 64 of A-Z, a-z, 0-9, dot, underscore and hyphen, first a letter or digit"
    return "bad_name", f"is {shown(detail['input'])}; use {allowed}"


_WORDINGS: Final[Mapping[str, Callable[[ErrorDetails], tuple[str, str]]]] = MappingProxyType(
    {
        "missing": lambda _detail: ("required", "is missing"),
        "string_type": _not_text,
        "string_too_long": _too_long,
        "string_unicode": _half_character,
        "string_pattern_mismatch": _not_identifier,
        "bool_type": _must_be("true or false"),
        "float_type": _must_be("a number"),
        "finite_number": lambda _detail: ("out_of_range", "is not a finite number"),
        "greater_than_equal": _out_of_range("at least", "ge"),
        "less_than_equal": _out_of_range("at most", "le"),
        "enum": _unknown_value,
        "tuple_type": _must_be("a list"),
        "model_type": _must_be("a set of keys and values"),
        "mapping_type": _must_be("a set of keys and values"),
        "too_short": lambda _detail: ("required", "needs at least one entry"),
        "too_long": lambda detail: (
            "too_many",
            f"has {len(detail['input'])} entries; at most {detail.get('ctx', {})['max_length']} are allowed",
        ),
    }
)


def _said(detail: ErrorDetails) -> tuple[str, str]:
    if detail["type"] == _RULE:
        context = detail.get("ctx", {})
        return str(context["rule"]), str(context["text"])
    wording = _WORDINGS.get(detail["type"])
    return (
        wording(detail)
        if wording
        else ("wrong_value", f"is {shown(detail['input'])}, which is not understood")
    )
