"""Runs the measurements, prints a table, and fails where a promise is not kept.

python -m benchmarks [--jobs 50000] [--seconds 120] [--json FILE]
"""

import argparse
import asyncio
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks import agents, polling

MOST_MB: Final = 1000.0
MOST_LATE_SECONDS: Final = 1.0


def main() -> int:
    """Measure, tell, and return 1 where polls were late or the memory too large."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure one worker with many paid jobs in flight, in real time and without Kafka.",
        epilog="Exits with 1 where a poll is more than 1 s late or the process takes more than 1 GB.",
    )
    parser.add_argument("--jobs", type=int, default=50_000, help="accepted jobs in flight (default: 50000)")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long to poll (default: 120)")
    parser.add_argument("--messages", type=int, default=5_000, help="messages for the agent (default: 5000)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured here too")
    chosen = parser.parse_args()
    if chosen.jobs < 1 or chosen.messages < 1 or chosen.seconds <= 0:
        parser.error("--jobs, --messages and --seconds must be more than 0")
    polled = asyncio.run(polling.measure(chosen.jobs, chosen.seconds))
    handled = asyncio.run(agents.measure(chosen.jobs, chosen.messages))
    kept = polled.late_max <= MOST_LATE_SECONDS and polled.peak_mb <= MOST_MB
    machine = {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }
    told = {"machine": machine, "polling": asdict(polled), "agents": asdict(handled), "kept": kept}
    if chosen.json:
        chosen.json.write_text(json.dumps(told, indent=2) + "\n", "utf-8")
    _print(told)
    return 0 if kept else 1


def _print(told: dict[str, Any]) -> None:
    console = Console()
    for name in ("machine", "polling", "agents"):
        table = Table("what", "measured", title=name, title_justify="left")
        for what, value in told[name].items():
            table.add_row(what.replace("_", " "), str(value))
        console.print(table)
    console.print("promise kept: at most 1 s late, under 1 GB" if told["kept"] else "PROMISE NOT KEPT")


if __name__ == "__main__":
    sys.exit(main())
