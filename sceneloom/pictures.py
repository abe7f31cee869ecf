"""Looks at the users' own pictures before any work is done for them."""

import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from models.errors import BadMedia
from models.faults import shown
from sceneloom.assets.checks import check_image

MOST_BYTES: Final = 20_000_000
SMALLEST_SIDE: Final = 256
"""Pixels on the shorter side; less would be a blur on a phone."""

_URL: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://|https?:|data:)", re.IGNORECASE)

Broken = tuple[str, str]
"""The rule that a picture breaks, and what follows its name in a message."""


def broken_picture(picture: str, folder: Path | None) -> Broken | None:
    """Tell what is wrong with *picture*, a path or URL; without a *folder*, files are out of reach.

    A file is decoded whole; a URL is judged by its form alone.
    """
    if _URL.match(picture) and not _is_file_url(picture):
        return _broken_url(picture)
    if folder is None:
        advice = "submit the request with the command line, which stores it, or give a URL"
        return "local_file", f"is the local file {shown(picture)}, which the worker cannot see; {advice}"
    return _broken_file(picture, folder)


def picture_path(picture: str, folder: Path) -> Path | None:
    """Return where *picture*, a path from *folder* or a `file:` URL, lies; None for any other URL."""
    if _is_file_url(picture):
        return Path(url2pathname(urlsplit(picture).path))
    return None if _URL.match(picture) else folder / Path(picture).expanduser()


def _is_file_url(picture: str) -> bool:
    return picture[:7].lower() == "file://"


def _broken_url(url: str) -> Broken | None:
    try:
        parts = urlsplit(url)
        complete = bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, a bracket too few
        return "bad_url", f"is {shown(url)}, which is no URL; copy it from a browser"
    if parts.scheme not in {"http", "https"}:
        return "bad_url", f"is {shown(url)}; only pictures at http:// or https:// can be fetched"
    if parts.username or parts.password:
        return "bad_url", "holds a name or password in its URL; use a URL that needs none"
    return None if complete else ("bad_url", f"is {shown(url)}, which names no site")


def _broken_file(picture: str, folder: Path) -> Broken | None:
    name = shown(picture)
    try:
        path = picture_path(picture, folder)
        if path is None or not path.is_file():
            return "missing_file", f"is {name}, and there is no such file in {str(folder)!r}"
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: ~name of nobody
        reason = getattr(error, "strerror", None) or "it is no file name"
        return "missing_file", f"is {name}, which cannot be read: {reason}"
    if len(content) > MOST_BYTES:
        return "too_large", f"is {name}, which is larger than {MOST_BYTES // 1_000_000} MB"
    try:
        check_image(content, smallest_side=SMALLEST_SIDE)
    except BadMedia as error:
        return _rule_of(error), f"is {name}, and cannot be used: {error}"
    return None


def _rule_of(error: BadMedia) -> str:
    said = str(error)
    if "too large" in said:
        return "too_large"
    return "too_small" if "too small" in said else "not_an_image"
