"""Writes the figures of `make faults` and `make soak` into docs/reliability.md.

python -m tests.faults.table [--faults faults.json] [--soak soak.json]
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.faults.scenario import SCENARIOS
from tests.faults.scenarios import load

_PAGE: Final = Path("docs/reliability.md")


def main() -> int:
    """Write what the files hold, each between its marks."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.table", description=__doc__)
    parser.add_argument("--faults", type=Path, default=Path("faults.json"))
    parser.add_argument("--soak", type=Path, default=Path("soak.json"))
    asked = parser.parse_args()
    load()
    page = _PAGE.read_text()
    if asked.faults.exists():
        page = _between("faults", _faults(json.loads(asked.faults.read_text())), page)
    if asked.soak.exists():
        page = _between("soak", _soak(json.loads(asked.soak.read_text())), page)
    _PAGE.write_text(page)
    return 0


def _between(mark: str, text: str, page: str) -> str:
    begin, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    return re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n{text}\n{end}", page, flags=re.DOTALL)


def _faults(results: list[Mapping[str, Any]]) -> str:
    lines = ["| | scenario | without | runs | kills | figures |", "|---|---|---|---|---|---|"]
    for each in results:
        figures = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in each["figures"].items())
        held = "" if each["ok"] else "**failed** "
        without = SCENARIOS[each["scenario"]].without
        cells = [each["scenario"], held + each["name"], without, each["runs"], each["kills"], figures]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def _soak(soak: Mapping[str, Any]) -> str:
    held = "I1 to I5 held" if not soak["violations"] else f"**violated**: {'; '.join(soak['violations'])}"
    return (
        f"`make soak` with seed {soak['seed']}: {soak['kills']} kill -9 in {soak['minutes']:g} minutes and "
        f"{soak['rounds']} rounds, {soak['projects']} projects, {soak['accepted']} jobs accepted and "
        f"${soak['billed_usd']:.2f} billed; {held}. All work had ended at most {soak['settled_s']:g} s after "
        "the last kill of a round."
    )


if __name__ == "__main__":
    sys.exit(main())
