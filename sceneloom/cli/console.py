"""Where a command writes: data to standard output, everything else to standard error."""

import functools
import json
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_FILE_WIDTH: Final = 1000


@functools.cache
def _console(*, errors: bool) -> "Console":
    from rich.console import Console

    console = Console(stderr=errors, highlight=False, emoji=False, markup=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = _FILE_WIDTH  # a file or a pipe has no edge to wrap at
    return console


def out() -> "Console":
    """Return the console of standard output."""
    return _console(errors=False)


def err() -> "Console":
    """Return the console of standard error."""
    return _console(errors=True)


def say(text: str = "", *, style: str | None = None) -> None:
    """Write a line of data."""
    out().print(text, style=style)


def note(text: str, *, style: str | None = None) -> None:
    """Write a line that is not data."""
    err().print(text, style=style)


def say_under(text: str, *, indent: int) -> None:
    """Write a line of data that goes on, where it is too long, *indent* columns from the left."""
    from rich.padding import Padding

    out().print(Padding(text, (0, 0, 0, indent), expand=False), soft_wrap=False)


def note_under(text: str, *, indent: int) -> None:
    """Write a line that is not data, as `say_under` does."""
    from rich.padding import Padding

    err().print(Padding(text, (0, 0, 0, indent), expand=False), soft_wrap=False)


def complain(text: str) -> None:
    """Write what went wrong."""
    note(f"error: {text}", style="red")


def warn(text: str) -> None:
    """Write what is odd, but does not stop us."""
    note(f"warning: {text}", style="yellow")


def say_json(value: Any) -> None:
    """Write *value* as one line of JSON."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")
    sys.stdout.flush()


def table(*columns: str) -> "Table":
    """Return an empty table with these columns, which fits into any terminal."""
    from rich.table import Table

    return Table(*columns, box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))


def show(content: "Table") -> None:
    """Write a table."""
    out().print(content, soft_wrap=False)
