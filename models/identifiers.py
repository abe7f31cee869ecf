"""Names of things, made the same way everywhere, so that doing a thing twice names it the same."""

import hashlib
import json
import re
import uuid
import zlib
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import StringConstraints

_NAMESPACE: Final = uuid.UUID("6f1d1f0e-6a53-5a3c-9e0b-5ce9e100a001")
IDENTIFIER: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

FILM: Final = "film"
"""The scene id of work that belongs to the whole project: the render."""

CREDITS: Final = "credits"
"""The scene id of what belongs to no scene but to the account of the user: a refused reservation."""

Identifier = Annotated[str, StringConstraints(pattern=IDENTIFIER)]
"""1-64 of A-Z, a-z, 0-9, dot, underscore, hyphen; safe as a Kafka key, a file name and part of a URL."""


def is_identifier(text: str) -> bool:
    """Tell whether *text* can name a project."""
    return re.fullmatch(IDENTIFIER, text) is not None


def scene_id(number: int) -> str:
    """Name the scene with *number*, counted from 1: `scene-001`."""
    return f"scene-{number:03d}"


def job_id(project_id: str, scene: str, kind: str) -> str:
    """Name the job that makes one asset of one scene: `PROJECT/scene-001/image`."""
    return f"{project_id}/{scene}/{kind}"


def event_id(*parts: object) -> str:
    """Name a message by what it says, as a UUIDv5: the same parts always give the same id."""
    return str(uuid.uuid5(_NAMESPACE, "\x1f".join(str(part) for part in parts)))


def share_of(name: str) -> float:
    """Return a number from 0 up to 1 that follows from *name*, and is spread evenly over many names."""
    return zlib.crc32(name.encode()) / 2**32


def fingerprint(content: Mapping[str, object]) -> str:
    """Hash *content* (JSON values) as sha256 hex; the order of keys does not matter."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
