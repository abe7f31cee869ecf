"""The fake provider as a process."""

import asyncio
import contextlib
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from sceneloom.testing.fake_provider.clocks import HandClock, RunningClock
from sceneloom.testing.fake_provider.ledger import Entry
from sceneloom.testing.fake_provider.scenario_file import ScenarioInvalid
from sceneloom.testing.fake_provider.server import TEST_KEY, FakeProvider


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What the one who starts the process may choose."""

    scenario: Path | None = None
    """A scenario file, YAML or JSON; without one every job succeeds at once."""
    host: str = "127.0.0.1"
    port: int = 8091
    """0 for any free port; the URL is printed."""
    keys: tuple[str, ...] = (TEST_KEY,)
    """The keys that clients may use."""
    ledger: Path | None = None
    """Where the ledger is kept as JSON lines; an existing one is continued."""
    speed: float = 1.0
    """How many times faster than real time; 0 for a clock that only `POST /_advance` moves."""
    quiet: bool = False
    """Print the URL, but no line for each request."""


def run(options: Options) -> int:
    """Serve until Ctrl-C or SIGTERM. Returns the exit code: 0, 2 for a bad scenario, 1 for a taken port."""
    try:
        return asyncio.run(_serve(options))
    except ScenarioInvalid as error:
        sys.stderr.write(f"The scenario cannot be played:\n{error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"The fake provider cannot start: {error.strerror or error}\n")
        return 1


async def _serve(options: Options) -> int:
    stopped = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    provider = FakeProvider(
        options.scenario,
        clock=RunningClock(options.speed) if options.speed else HandClock(),
        keys=options.keys,
        ledger_file=options.ledger,
        host=options.host,
        port=options.port,
    )
    async with provider:
        _say(f"Fake provider at {provider.url}")
        if not options.quiet:
            provider.ledger.listen(_print_line)
        await stopped.wait()
        ledger = provider.ledger
        _say(f"{len(ledger.accepted())} jobs accepted, ${ledger.billed_usd():.2f} billed")
    return 0


def _print_line(entry: Entry) -> None:
    if entry.answer is None and entry.fault is None:
        return
    told = entry.fault or str(entry.answer)
    job = f" {entry.task_id}" if entry.task_id else ""
    money = f" ${entry.billed_usd:.2f}" if entry.accepted else ""
    rule = f" by {entry.rule}" if entry.rule else ""
    _say(f"{entry.at:%H:%M:%S} {entry.family} {entry.operation} {told}{job}{money}{rule}")


def _say(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # whoever read our output has gone; clients have not
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
