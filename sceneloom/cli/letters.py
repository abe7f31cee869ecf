"""The commands that look at dead letters: list and show."""

import asyncio
import base64
import contextlib
import json
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sceneloom.cli import console, options, replaying
from sceneloom.cli.ages import OlderThan, age_words
from sceneloom.cli.letter_words import (
    Filters,
    described,
    filter_of,
    in_ranges,
    one_line,
    plain,
    text_of,
)

if TYPE_CHECKING:
    from sceneloom.operations.letters import Letter
    from sceneloom.settings import Settings

_app = typer.Typer(help="List, show and replay messages that could not be used.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module to *app*."""
    replaying.add_to(_app)
    app.add_typer(_app, name="dead-letters")


@_app.command("list")
def list_(
    *,
    filters: Filters = None,
    older_than: OlderThan = None,
    replayed: Annotated[
        bool, typer.Option("--replayed", help="Look into the topics for what was replayed; may take a while.")
    ] = False,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """List the dead letters, the oldest first.

    A letter stays on its topic for 30 days, whatever becomes of it. That it was replayed is known only from
    the message that was sent: with --replayed the topics are searched for those, and they keep messages for
    7 days. A message that died again after its replay is a letter of its own, and names the one before.

    Below the list stands what to do; a long reason is cut short, and `show` and --json have all of it.

    \b
    Examples:
      sceneloom dead-letters list
      sceneloom dead-letters list --filter topic=project-requests --filter error=Unreadable
      sceneloom dead-letters list --older-than 1d --replayed --json
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import load_settings
    from sceneloom.clock import SystemClock
    from sceneloom.operations.letters import envelopes
    from sceneloom.operations.replay import replayed_before

    settings = load_settings(broker=broker, topic_prefix=topic_prefix)
    wanted = filter_of(filters, older_than)
    everything = asyncio.run(envelopes(settings))
    now = SystemClock().now()
    found = [each for each in everything if wanted.wants(each, now, prefix=settings.topic_prefix)]
    again = asyncio.run(replayed_before(settings, found)) if replayed else None
    if as_json:
        console.say_json([described(each, again, settings) for each in found])
        return
    if not found:
        there = len(everything)
        console.note(f"none of the {there} dead letters is like that" if there else "there is no dead letter")
        return
    _show_letters(settings, found, again, now)


def _show_letters(settings: "Settings", found: "list[Letter]", again: set[str] | None, now: datetime) -> None:
    """Show each letter on lines that fit any terminal, and below them what to do about which."""
    from sceneloom.operations.letter_advice import advice

    width = max(len(each.name) for each in found)
    for each in found:
        topic = each.topic.removeprefix(settings.topic_prefix)
        place = f"{topic}[{each.origin_partition}]@{each.origin_offset}" if topic else "nobody knows where"
        age = age_words(now - each.died_at)
        console.say(f"{each.name:>{width}}  {age:<8}  {plain(place)}  {plain(each.error)}")
        for line in _details(each, again):
            console.say_under(line, indent=width + 2)
    about: dict[str, list[str]] = {}
    for each in found:
        about.setdefault(advice(each, settings), []).append(each.name)
    console.note("\nwhat to do, by `sceneloom dead-letters replay` where it says replay:")
    for what, names in about.items():
        console.note_under(f"{in_ranges(names)}: {what}", indent=2)


def _details(each: "Letter", again: set[str] | None) -> Iterator[str]:
    key = "no key" if each.key is None else f"key {one_line(text_of(each.key))}"
    size = f"{each.omitted} bytes, left out" if each.omitted else f"{each.size} bytes"
    remark = _remark(each, again)
    yield f"{key}, {size}" + (f"; {remark}" if remark else "")
    if each.reason:
        yield one_line(each.reason)


@_app.command()
def show(
    letter: Annotated[str, typer.Argument(metavar="LETTER", help="OFFSET or PARTITION:OFFSET, from `list`.")],
    *,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """Show one dead letter: where it came from, why it is here, its headers and its value.

    A value that is no text is shown as base64; with --json under `value_base64`.

    \b
    Example:
      sceneloom dead-letters show 12
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import load_settings
    from sceneloom.operations.letters import find
    from sceneloom.operations.replay import replayed_before

    settings = load_settings(broker=broker, topic_prefix=topic_prefix)

    async def read() -> "tuple[Letter, set[str]]":
        there = await find(settings, letter)
        return there, await replayed_before(settings, [there])

    found, again = asyncio.run(read())
    if as_json:
        console.say_json(described(found, again, settings) | _content(found))
        return
    for name, value in described(found, again, settings).items():
        if value not in (None, ""):
            console.say(f"{name.replace('_', ' '):<16} {plain(str(value))}")
    for name, raw in found.headers:
        console.say(f"header           {plain(name)}: {plain(text_of(raw))}")
    console.say("")
    console.say(_readable(found))


def _remark(each: "Letter", again: set[str] | None) -> str:
    remarks = [f"replay of {plain(each.replay_of)}, died again"] if each.replay_of else []
    remarks += ["replayed"] if again and each.name in again else []
    return "; ".join(remarks)


def _content(letter: "Letter") -> dict[str, Any]:
    headers = [[name, text_of(value)] for name, value in letter.headers]
    if letter.value is None:
        return {"headers": headers, "value": None}
    try:
        return {"headers": headers, "value": letter.value.decode()}
    except UnicodeDecodeError:
        return {"headers": headers, "value_base64": base64.b64encode(letter.value).decode()}


def _readable(letter: "Letter") -> str:
    """Write the value for people: JSON on lines of its own, other text as it is, anything else as base64."""
    if letter.omitted is not None:
        return f"(the value, {letter.omitted} bytes, was left out)"
    if letter.value is None:
        return "(no value: a tombstone)"
    try:
        text = letter.value.decode()
    except UnicodeDecodeError:
        return f"(no text; base64) {base64.b64encode(letter.value).decode()}"
    with contextlib.suppress(json.JSONDecodeError):
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return "\n".join(plain(line) for line in text.split("\n"))
