"""How a dead letter is named, chosen and told of on the command line."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from sceneloom.cli.outcomes import Outcome, Stop

if TYPE_CHECKING:
    from sceneloom.operations.letters import Letter, LetterFilter

_TEXTS: Final = ("topic", "error", "reason", "key")
_OFFSETS: Final = ("before", "after")

Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="NAME=TEXT",
        help="topic=, error=, reason= or key= with * for anything; before= or after= an offset. Repeatable.",
    ),
]


def described(each: "Letter", again: set[str] | None) -> dict[str, Any]:
    """Return what is known of a letter, for scripts, but for its value; *again* are those replayed."""
    return {
        "letter": each.name,
        "died_at": each.died_at.isoformat(),
        "topic": each.topic,
        "partition": each.origin_partition,
        "offset": each.origin_offset,
        "written_at": each.written_at.isoformat() if each.written_at else None,
        "key": None if each.key is None else text_of(each.key),
        "size": each.size,
        "omitted_size": each.omitted,
        "error": each.error,
        "reason": each.reason,
        "replay_of": each.replay_of,
        "replayed": None if again is None else each.name in again,
    }


def plain(text: str) -> str:
    """Return *text* in one line, without anything that a terminal would obey."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def filter_of(filters: list[str] | None, older_than: timedelta | None) -> "LetterFilter":
    """Return what `--filter` and `--older-than` ask for. Raises `Stop` for one that cannot be."""
    from sceneloom.operations.letters import LetterFilter

    texts: dict[str, str] = {}
    offsets: dict[str, int] = {}
    for each in filters or ():
        name, equals, text = each.partition("=")
        if name in _TEXTS and text:
            texts[name] = text
        elif name in _OFFSETS and text.isascii() and text.isdigit():
            offsets[name] = int(text)
        elif name in _OFFSETS and equals:
            raise Stop(f"--filter {each}: {text!r} is no offset", Outcome.INVALID)
        else:
            known = ", ".join(f"{known}=" for known in (*_TEXTS, *_OFFSETS))
            raise Stop(f"--filter {each}: write NAME=TEXT with one of {known}", Outcome.INVALID)
    return LetterFilter(
        topic=texts.get("topic"),
        error=texts.get("error"),
        reason=texts.get("reason"),
        key=texts.get("key"),
        before=offsets.get("before"),
        after=offsets.get("after"),
        older_than=older_than,
    )


def text_of(raw: bytes | None) -> str:
    """Return *raw* as text; what is none is written as escapes."""
    return "" if raw is None else raw.decode(errors="backslashreplace")
