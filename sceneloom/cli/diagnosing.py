"""The command that looks whether everything is in order."""

import asyncio
from typing import TYPE_CHECKING, Final

import typer

from sceneloom.cli import console, options
from sceneloom.cli.outcomes import Outcome

if TYPE_CHECKING:
    from sceneloom.operations.examination import Finding
    from sceneloom.settings import Settings

_STYLES: Final = {"ok": "green", "warning": "yellow", "fault": "red"}


def add_to(app: typer.Typer) -> None:
    """Add the command of this module to *app*."""
    app.command()(doctor)


def doctor(
    *,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """Look whether everything that a worker needs is in order, and say what to do where it is not.

    It goes through all checks whatever it finds, and takes about ten seconds. It writes and removes an entry
    in the asset store and a topic, PREFIXdoctor-…, on the broker; no paid provider is called.

    The exit code is 1 where there is a fault. Warnings leave it at 0. With --json it is one list of
    objects: check, verdict (ok, warning, fault), found, advice.

    \b
    Examples:
      sceneloom doctor
      sceneloom doctor --json --broker kafka://kafka-1:9092
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import readable_settings

    settings, faults = readable_settings(broker=broker, topic_prefix=topic_prefix)
    found = asyncio.run(_examine(settings, faults, as_json=as_json))
    if as_json:
        console.say_json(
            [
                {
                    "check": check,
                    "verdict": finding.verdict.value,
                    "found": finding.found,
                    "advice": finding.advice or None,
                }
                for check, finding in found
            ]
        )
    count = sum(finding.verdict == "fault" for _, finding in found)
    if count:
        console.note("1 fault" if count == 1 else f"{count} faults")
        raise typer.Exit(Outcome.FAILED)


async def _examine(settings: "Settings", faults: list[str], *, as_json: bool) -> "list[tuple[str, Finding]]":
    from sceneloom.clock import SystemClock
    from sceneloom.operations.doctor import checks
    from sceneloom.operations.examination import examine

    found = []
    with console.err().status("") as status:

        def starting(check: str) -> None:
            status.update(f"looking at: {check}")
            if as_json and not console.err().is_terminal:
                console.note(f"looking at: {check}")

        async for check, finding in examine(settings, checks(faults, SystemClock()), starting):
            found.append((check, finding))
            if not as_json:
                console.say(
                    f"{finding.verdict:<8} {check:<12} {finding.found}", style=_STYLES[finding.verdict]
                )
                if finding.advice:
                    console.say(f"{'':<21} → {finding.advice}")
    return found
