"""Looks whether `.env` can be read: who reads the settings from it passes over what it cannot read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dotenv.parser import parse_stream

ENV_FILE: Final = ".env"


def env_file_faults() -> list[str]:
    """Return a line for each fault of `.env`, none of them showing what is written there."""
    file = Path(ENV_FILE)
    if file.is_dir():
        return [f"{ENV_FILE} cannot be read: it is a folder, and not a file"]
    try:
        return list(_wrong_lines(file)) if file.is_file() else []
    except (OSError, UnicodeDecodeError) as error:
        return [f"{ENV_FILE} cannot be read: {error}"]


def _wrong_lines(file: Path) -> Iterator[str]:
    with file.open(encoding="utf-8") as opened:
        for statement in parse_stream(opened):
            if statement.error:
                text = statement.original.string
                blank = text[: len(text) - len(text.lstrip())].count("\n")
                line = statement.original.line + blank
                yield f"{ENV_FILE}, line {line}: that is not NAME=VALUE, or a quote in it is not closed"
