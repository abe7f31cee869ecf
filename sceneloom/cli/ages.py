"""Ages, as people write them on a command line and read them in a table."""

import re
from datetime import timedelta
from typing import Annotated, Final

import typer

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_LONGEST: Final = timedelta(days=36500)


def parse_age(text: str) -> timedelta:
    """Return the time that *text* names: `90s`, `15m`, `1.5h`, `2d`. Raises `typer.BadParameter`."""
    match = _AGE.fullmatch(text.strip().lower())
    if match is None:
        raise typer.BadParameter(f"{text!r} is no age: write a number and s, m, h or d, as in 90s or 1.5h")
    seconds = float(match[1]) * _UNITS[match[2]]
    if seconds > _LONGEST.total_seconds():
        raise typer.BadParameter(f"{text!r} is longer than a hundred years")
    return timedelta(seconds=seconds)


def age_words(age: timedelta) -> str:
    """Write *age* in its two largest units: `3d 4h`, `12m 5s`; one in the future as `-5s`."""
    seconds = round(abs(age.total_seconds()))
    parts: list[str] = []
    for unit, size in reversed(_UNITS.items()):
        count, seconds = divmod(seconds, size)
        if count or parts:
            parts.append(f"{count}{unit}")
    words = " ".join(part for part in parts[:2] if not part.startswith("0")) or "0s"
    return f"-{words}" if age < timedelta() and words != "0s" else words


OlderThan = Annotated[
    timedelta | None,
    typer.Option("--older-than", metavar="AGE", parser=parse_age, help="Only older ones: 90s, 15m, 1h, 2d."),
]
