"""Keeps secrets out of what providers say, before anybody logs it."""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

_MASK: Final = "***"
_LONGEST: Final = 300
_SECRETS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<=\?)(?<!\s\?)[^\s\"'<>?=]+=[^\s\"'<>]*",
        r"(?i)\b(?:bearer|basic|key|token)\s+(?=\S*[\d*])[\w.~+/:=*-]{8,}",
        (
            r"(?i)\b(?:api[-_ ]?key|secret|password|signature|token)(?: provided)?"
            r"[\"']?\s*[:=]\s*[\"']?[^\s\"',}]{4,}"
        ),
        r"\b(?:sk|pk|rk|ak|ark|fal|key|xai|luma-api|whsec|whsk)[-_][\w*.-]{6,}",
        r"\bAIza[\w-]{10,}",
        r"\b[0-9a-f]{8}-[0-9a-f-]{27}:[0-9a-f]{16,}",
        r"\beyJ[\w-]+\.[\w-]+\.[\w-]*",
        r"(?<=/)[\w-]{43}(?![\w-])",
    )
)
"""How secrets look: signed queries, Authorization, named or prefixed keys, fal's pairs, JWTs, our tokens."""


def redacted(text: str, hidden: Iterable[str] = ()) -> str:
    """Return *text* as one short line without anything in *hidden*, or anything that looks like a key."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    for secret in hidden:
        for form in {secret, quote(secret, safe="")} - {""}:
            line = re.sub(re.escape(form), _MASK, line, flags=re.IGNORECASE)
    for pattern in _SECRETS:
        line = pattern.sub(_MASK, line)
    # Cut last: half a key would not be recognised as one.
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
