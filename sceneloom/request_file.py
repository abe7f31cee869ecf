"""Reads a request's file, YAML or JSON, into plain values: what stands in the file, and nothing more."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NoReturn

import yaml

from models.faults import Fault, RequestRefused, shown

MOST_BYTES: Final = 1_000_000
"""Comments and indentation may fill a file beyond what the request itself may weigh."""

_TAG: Final = "tag:yaml.org,2002:"
_HINTS: Final = (
    ("mapping values are not allowed", "put a text that holds a colon in quotes"),
    ("'\\t'", "indent with spaces, not tabs"),
    ("could not find expected ':'", "each line of a scene is a key, a colon, a space and a value"),
    ("expected <block end>", "lines that belong together start in the same column"),
    ("found undefined alias", "put a text that starts with * in quotes"),
    ("while scanning a quoted scalar", "a quote is opened and never closed"),
    ("expected a single document", "one file holds one request"),
)


def load(path: Path) -> object:
    """Read the file at *path*: JSON where it ends in `.json`, else YAML. Raises `RequestRefused`."""
    text = _text_of(path)
    try:
        return _from_json(text) if path.suffix.lower() == ".json" else _from_yaml(text)
    except RecursionError as error:
        _refuse("too_deep", "the file is nested far too deeply", error)


def _text_of(path: Path) -> str:
    name = shown(str(path))
    try:
        if path.is_dir():
            _refuse("missing_file", f"{name} is a folder; name a file in it")
        if not path.exists():
            _refuse("missing_file", f"there is no file {name}")
        if not path.is_file():
            _refuse("missing_file", f"{name} is not a plain file")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is not a file name"
        _refuse("missing_file", f"the file {name} cannot be read: {reason}", error)
    if len(content) > MOST_BYTES:
        _refuse("too_large", f"the file is larger than {MOST_BYTES // 1000} kB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = _position(content[: error.start].decode("utf-8-sig"))
        _refuse("syntax", f"{where}: this is not UTF-8 text; save the file as UTF-8", error)


def _position(before: str) -> str:
    *above, line = before.split("\n")
    return f"line {len(above) + 1}, column {len(line) + 1}"


def _refuse(rule: str, message: str, cause: Exception | None = None) -> NoReturn:
    raise RequestRefused([Fault("", rule, message)]) from cause


def _from_json(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_once_each)
    except json.JSONDecodeError as error:
        problem = error.msg[:1].lower() + error.msg[1:]
        where = f"line {error.lineno}, column {error.colno}"
        _refuse("syntax", f"{where}: this is not valid JSON: {problem}", error)
    except ValueError as error:
        _refuse("syntax", "the file holds a number with far too many digits", error)


def _once_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content: dict[str, object] = {}
    for key, value in pairs:
        if key in content:
            _refuse("duplicate_key", f"the key {shown(key)} is given twice; keep one")
        content[key] = value
    return content


class _CoreLoader(yaml.BaseLoader):
    """Knows the plain values of YAML 1.2's core schema: `9:16`, `no`, `on` and dates stay texts."""


for _name, _pattern, _first in (
    ("null", r"(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", list("-+0123456789")),
    (
        "float",
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
        list("-+.0123456789"),
    ),
):
    _CoreLoader.add_implicit_resolver(f"{_TAG}{_name}", re.compile(_pattern), _first)


def _int(text: str) -> int:
    return int(text, 0) if text[:2] in {"0o", "0x"} else int(text)


def _float(text: str) -> float:
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


_SCALARS: Final[Mapping[str, Callable[[str], object]]] = MappingProxyType(
    {
        f"{_TAG}null": lambda _text: None,
        f"{_TAG}bool": lambda text: text.lower() == "true",
        f"{_TAG}int": _int,
        f"{_TAG}float": _float,
        f"{_TAG}str": str,
    }
)


def _from_yaml(text: str) -> object:
    try:
        node = yaml.compose(text, Loader=_CoreLoader)
    except yaml.MarkedYAMLError as error:
        _refuse_yaml(error.problem_mark, _in_plain_words(error), error)
    except yaml.reader.ReaderError as error:
        where = _position(text[: error.position])
        problem = f"this is the invisible character U+{ord(text[error.position]):04X}; remove it"
        _refuse("syntax", f"{where}: {problem}", error)
    return None if node is None else _value(node, {})


def _in_plain_words(error: yaml.MarkedYAMLError) -> str:
    said = f"{error.context or ''} {error.problem or ''}"
    hint = next((hint for words, hint in _HINTS if words in said), None)
    return f"this is not valid YAML: {error.problem}{f' ({hint})' if hint else ''}"


def _refuse_yaml(
    mark: yaml.Mark | None, problem: str, cause: Exception | None = None, *, rule: str = "syntax"
) -> NoReturn:
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    _refuse(rule, f"{where}{problem}", cause)


def _value(node: yaml.Node, known: dict[int, object]) -> object:
    """Return what *node* says. A node that aliases repeat is read once, so few cannot become billions."""
    if id(node) in known:
        return known[id(node)]
    value: object
    match node:
        case yaml.ScalarNode():
            value = _scalar(node)
        case yaml.SequenceNode():
            _refuse_tag(node, "seq")
            value = [_value(item, known) for item in node.value]
        case yaml.MappingNode():
            _refuse_tag(node, "map")
            value = _mapping(node, known)
        case _:
            _refuse_yaml(node.start_mark, "this is neither a value, a list nor a set of keys")
    known[id(node)] = value
    return value


def _scalar(node: yaml.ScalarNode) -> object:
    read = _SCALARS.get(node.tag)
    if read is None:
        _refuse_yaml(node.start_mark, f"the tag {shown(node.tag)} is not known here; leave it out")
    try:
        return read(node.value)
    except ValueError as error:
        _refuse_yaml(node.start_mark, f"{shown(node.value)} is not a number that can be read", error)


def _refuse_tag(node: yaml.Node, usual: str) -> None:
    if node.tag != f"{_TAG}{usual}":
        _refuse_yaml(node.start_mark, f"the tag {shown(node.tag)} is not known here; leave it out")


def _mapping(node: yaml.MappingNode, known: dict[int, object]) -> dict[object, object]:
    content: dict[object, object] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            _refuse_yaml(key_node.start_mark, "a key is a word, not a list or a set of keys")
        key = _scalar(key_node)
        if key in content:
            problem = f"the key {shown(key)} is given twice; keep one"
            _refuse_yaml(key_node.start_mark, problem, rule="duplicate_key")
        content[key] = _value(value_node, known)
    return content
