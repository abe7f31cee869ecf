"""The commands that look at dead letters: list and show."""

import asyncio
import base64
import contextlib
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sceneloom.cli import console, options, replaying
from sceneloom.cli.ages import OlderThan, age_words
from sceneloom.cli.letter_words import Filters, described, filter_of, plain, text_of

if TYPE_CHECKING:
    from sceneloom.operations.letters import Letter

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
        console.say_json([described(each, again) for each in found])
        return
    if not found:
        there = len(everything)
        console.note(f"none of the {there} dead letters is like that" if there else "there is no dead letter")
        return
    table = console.table("letter", "age", "from", "key", "size", "error", "reason", "")
    for each in found:
        place = f"{each.topic}[{each.origin_partition}]@{each.origin_offset}" if each.topic else "?"
        size = f"({each.omitted} left out)" if each.omitted else str(each.size)
        table.add_row(
            each.name,
            age_words(now - each.died_at),
            plain(place),
            plain(text_of(each.key)),
            size,
            plain(each.error),
            plain(each.reason),
            _remark(each, again),
        )
    console.show(table)


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
        console.say_json(described(found, again) | _content(found))
        return
    for name, value in described(found, again).items():
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
