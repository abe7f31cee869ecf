"""How a dead letter is named, chosen and told of on the command line."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from sceneloom.cli.outcomes import Outcome, Stop

if TYPE_CHECKING:
    from sceneloom.operations.letters import Letter, LetterFilter
    from sceneloom.settings import Settings

_TEXTS: Final = ("topic", "error", "reason", "key")
_OFFSETS: Final = ("before", "after")
_LONGEST: Final = 240

Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="NAME=TEXT",
        help="topic=, error=, reason= or key= with * for anything; before= or after= an offset. Repeatable.",
    ),
]


def described(each: "Letter", again: set[str] | None, settings: "Settings") -> dict[str, Any]:
    """Return what is known of a letter, for scripts, but for its value; *again* are those replayed."""
    from sceneloom.operations.letter_advice import advice

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
        "advice": advice(each, settings),
    }


def in_ranges(names: Sequence[str]) -> str:
    """Write 1, 2, 3, 7 as `1 to 3, 7`."""
    ranges: list[list[str]] = []
    for name in names:
        if ranges and name.isdigit() and ranges[-1][-1].isdigit() and int(name) == int(ranges[-1][-1]) + 1:
            ranges[-1] = [ranges[-1][0], name]
        else:
            ranges.append([name])
    return ", ".join(" to ".join(each) for each in ranges)


def one_line(text: str) -> str:
    """Return *text* as `plain` does, and not longer than a few lines of a terminal."""
    line = plain(text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


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
