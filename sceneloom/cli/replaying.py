"""The command that sends dead letters back to where they died."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sceneloom.cli import console, options
from sceneloom.cli.ages import OlderThan
from sceneloom.cli.letter_words import Filters, filter_of, in_ranges, plain, text_of
from sceneloom.cli.outcomes import Outcome, Stop

if TYPE_CHECKING:
    from sceneloom.operations.letters import LetterFilter
    from sceneloom.operations.replay import Plan
    from sceneloom.settings import Settings


def add_to(app: typer.Typer) -> None:
    """Add the command of this module to *app*."""
    app.command()(replay)


def replay(
    letters: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LETTER]...", help="OFFSET or PARTITION:OFFSET, from `list`.", show_default=False
        ),
    ] = None,
    *,
    filters: Filters = None,
    older_than: OlderThan = None,
    everything: Annotated[bool, typer.Option("--all", help="All that there are.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be sent.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Also what was replayed before.")] = False,
    anyway: Annotated[bool, typer.Option("--anyway", help="Also what would die again, or did.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """Send dead letters to the topics where they died, to be tried once more.

    Key, value and the message's own headers are sent unchanged, to the partition of the key; the header
    `sceneloom-replayed` says which letter it was. The letter stays. Repair first what it died of: a message
    that workers of this release could not read, a command for a project that still is not there, and a grant
    whose id is taken would die again, and are left out with the reason; --anyway sends them all the same, as
    for workers of a newer release. What has died again after a replay is left out, too, unless you name it.

    A letter whose replay is still on its topic (they keep 7 days) is left out; --again sends it all the same.
    Two people who replay at the same moment do not see each other. The exit code is 1 where a letter could
    not be sent.

    \b
    Examples:
      sceneloom dead-letters replay 12 15
      sceneloom dead-letters replay --filter topic=job-events --filter after=100 --dry-run
      sceneloom dead-letters replay --all --older-than 10m --yes --json
    """  # noqa: D301 -- \b keeps the lines of an example apart
    if not (letters or filters or older_than or everything):
        raise Stop("which ones? Name letters, or give --filter, --older-than or --all", Outcome.INVALID)
    from sceneloom.cli.configuration import load_settings
    from sceneloom.operations.replay import Fate

    settings = load_settings(broker=broker, topic_prefix=topic_prefix)
    plans = asyncio.run(
        _choose(settings, letters or (), filter_of(filters, older_than), again=again, anyway=anyway)
    )
    able = [plan for plan in plans if plan.fate is Fate.SEND]
    if not as_json:
        _tell_plans(plans, dry_run=dry_run)
    if able and not dry_run and not yes:
        _ask(len(able))
    sent: dict[str, str] = {}
    try:
        if able and not dry_run:
            _send(settings, able, sent)
    finally:
        if as_json:
            doubtful = None if dry_run else _unanswered(able, sent)
            console.say_json([_outcome(plan, sent, doubtful, dry_run=dry_run) for plan in plans])
    if not as_json and sent:
        console.note(_how_far(able, sent))
    if any(plan.fate in {Fate.IMPOSSIBLE, Fate.IN_VAIN} for plan in plans) or any(sent.values()):
        raise typer.Exit(Outcome.FAILED)


async def _choose(
    settings: "Settings", names: Sequence[str], wanted: "LetterFilter", *, again: bool, anyway: bool
) -> "list[Plan]":
    from sceneloom.clock import SystemClock
    from sceneloom.operations.letters import envelopes, named
    from sceneloom.operations.replay import planned, replayed_before

    there = await envelopes(settings)
    among = named(there, names) if names else there
    now = SystemClock().now()
    chosen = [each for each in among if wanted.wants(each, now, prefix=settings.topic_prefix)]
    before = set() if again else await replayed_before(settings, chosen)
    asked_for = [each.name for each in among] if names else ()
    return await planned(settings, chosen, before, named=asked_for, anyway=anyway)


def _send(settings: "Settings", able: "Sequence[Plan]", sent: dict[str, str]) -> None:
    """Send what can be sent and note it in *sent*. Raises `Stop`, which says how far it came."""
    from sceneloom.operations.replay import replay
    from sceneloom.topic_admin import BrokerUnreachable

    def report(letter: str, why_not: str) -> None:
        sent[letter] = why_not
        if why_not:
            console.complain(f"dead letter {letter} was not sent: {why_not}")

    try:
        asyncio.run(replay(settings, able, report))
    except KeyboardInterrupt:
        raise Stop(f"stopped: {_how_far(able, sent)}", Outcome.INTERRUPTED) from None
    except BrokerUnreachable as error:
        raise Stop(f"{error}\n{_how_far(able, sent)}", Outcome.UNREACHABLE) from error


def _ask(count: int) -> None:
    question = f"send {'this one' if count == 1 else f'these {count}'}?"
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:
        raise Stop("nothing was sent: where nobody can be asked, say --yes", Outcome.INVALID) from None
    if not agreed:
        raise Stop("nothing was sent")


def _tell_plans(plans: "Sequence[Plan]", *, dry_run: bool) -> None:
    from sceneloom.operations.replay import Fate

    if not plans:
        console.note("no dead letter is like that")
    words = "would be sent to" if dry_run else "goes to"
    for plan in plans:
        letter = plan.letter
        if plan.fate is Fate.SEND:
            key = "without key" if letter.key is None else f"key {plain(text_of(letter.key))}"
            line = f"{words} {plan.letter.topic}[{plan.partition}], {key}, {letter.size} bytes"
        else:
            line = f"is not sent: {plain(plan.why)}"
        console.say(f"{letter.name}: {line}")


def _outcome(plan: "Plan", sent: dict[str, str], doubtful: str | None, *, dry_run: bool) -> dict[str, Any]:
    from sceneloom.operations.replay import Fate

    name = plan.letter.name
    why = sent.get(name, plan.why)
    if plan.fate is not Fate.SEND:
        outcome = "replayed before" if plan.fate is Fate.DONE_BEFORE else "refused"
    elif dry_run:
        outcome = "would be sent"
    elif name in sent:
        outcome = "failed" if why else "sent"
    else:
        outcome = "unknown" if name == doubtful else "not sent"
    return {
        "letter": name,
        "topic": plan.letter.topic,
        "partition": plan.partition,
        "outcome": outcome,
        "reason": why or None,
    }


def _how_far(able: "Sequence[Plan]", sent: dict[str, str]) -> str:
    done = [name for name, why_not in sent.items() if not why_not]
    line = f"{len(done)} of {len(able)} sent" + (f": {in_ranges(done)}" if done else "")
    doubtful = _unanswered(able, sent)
    return f"{line}; {doubtful} may have been sent, nobody answered" if doubtful else line


def _unanswered(able: "Sequence[Plan]", sent: dict[str, str]) -> str | None:
    """Return the letter whose sending was broken off: they go one after another, in this order."""
    return next((plan.letter.name for plan in able if plan.letter.name not in sent), None)
