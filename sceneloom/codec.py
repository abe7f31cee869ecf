"""The wire format: UTF-8 JSON, checked against the models at the border."""

from typing import Any, Final, TypeVar, cast

import orjson
from faust.serializers.codecs import Codec
from pydantic import BaseModel, TypeAdapter, ValidationError

from models.errors import DomainError
from models.values import Value

MAX_BYTES: Final = 900_000
"""A message or a row stays below Kafka's usual limit of 1 MB."""


_LONGEST_WORDS: Final = 400

T = TypeVar("T")


class Unreadable(DomainError):
    """The bytes are not a message that we know."""


def encode(message: BaseModel) -> bytes:
    """Return *message* as JSON."""
    return message.model_dump_json().encode()


def decode(adapter: TypeAdapter[T], content: bytes | None) -> T:
    """Return the message that *content* holds. Raises `Unreadable`, which names the field and the rule."""
    if content is None:
        raise Unreadable("the message is empty (a tombstone)")
    if len(content) > MAX_BYTES:
        raise Unreadable(f"the message has {len(content)} bytes; {MAX_BYTES} are allowed")
    try:
        return adapter.validate_json(content)
    except ValidationError as error:
        raise Unreadable(_explain(error)) from error


class RowCodec(Codec):
    """Reads and writes the rows of one table, which hold a `Value` or one of several."""

    def __init__(self, row: Any) -> None:
        super().__init__()
        self._row: TypeAdapter[Value] = TypeAdapter(row)

    def _loads(self, s: bytes) -> Any:
        try:
            return self._row.validate_json(s)
        except ValidationError as error:
            raise Unreadable(_explain(error)) from None  # its text shows what was in the row

    def _dumps(self, s: Any) -> bytes:
        return encode(cast("Value", s))


def version_of(row: bytes) -> int:
    """Return the version of a stored row."""
    return int(orjson.loads(row)["version"])


def _explain(error: ValidationError) -> str:
    faults = []
    for fault in error.errors(include_url=False, include_input=False)[:5]:
        path = shortened(".".join(str(part) for part in fault["loc"]))
        message = shortened(fault["msg"])
        faults.append(f"{path}: {message}" if path else message)
    return "; ".join(faults)


def shortened(text: str) -> str:
    """Return *text*, which may be as long as a message, as one line that is fit for a log and a header."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return line if len(line) <= _LONGEST_WORDS else f"{line[:_LONGEST_WORDS]}…"
