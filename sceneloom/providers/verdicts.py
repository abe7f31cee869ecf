"""What an HTTP answer of a provider means: a table of signs for each provider, one of statuses for all."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import httpx

from models.errors import ErrorCode

_BY_STATUS: Final = MappingProxyType(
    {
        401: ErrorCode.PROVIDER_AUTH,
        402: ErrorCode.PROVIDER_QUOTA_EXHAUSTED,
        403: ErrorCode.PROVIDER_AUTH,
        404: ErrorCode.PROVIDER_MODEL_RETIRED,
        408: ErrorCode.PROVIDER_UNAVAILABLE,
        410: ErrorCode.PROVIDER_MODEL_RETIRED,
        429: ErrorCode.PROVIDER_RATE_LIMITED,
    }
)
_LONGEST_WAIT: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole HTTP answer. Its content is never part of its repr: it may be large, and it is not ours."""

    status: int
    headers: httpx.Headers = field(repr=False)
    content: bytes = field(repr=False)

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    def json(self) -> dict[str, Any] | None:
        """Return the JSON object that is the body, or None where it is anything else."""
        try:
            body = json.loads(self.content)
        except (ValueError, RecursionError):
            return None
        return body if isinstance(body, dict) else None


class Complaint(NamedTuple):
    """What a provider says is wrong: its own names for it, such as type and code, and its words."""

    names: str = ""
    message: str = ""


class Sign(NamedTuple):
    """What a complaint means whose names, and where given its message, match these regular expressions."""

    names: str
    code: ErrorCode
    message: str = ""

    def fits(self, complaint: Complaint) -> bool:
        """Tell whether *complaint* shows this sign."""
        return bool(re.search(self.names, complaint.names) and re.search(self.message, complaint.message))


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdicts:
    """How one provider says that something is wrong.

    The first of `signs` that fits decides, then the status. `untouched` pairs a 5xx status with the names
    under which the provider documents that it did not take the request, so that it may be sent again.
    """

    read: Callable[[Answer], Complaint]
    signs: tuple[Sign, ...]
    untouched: tuple[tuple[int, str], ...] = ()

    def code(self, answer: Answer) -> ErrorCode:
        """Return what *answer*, which is not a success, means."""
        return self.named(self.read(answer), otherwise=_usual(answer.status))

    def named(self, complaint: Complaint, *, otherwise: ErrorCode) -> ErrorCode:
        """Return what *complaint* means, or *otherwise* where no sign fits."""
        return next((sign.code for sign in self.signs if sign.fits(complaint)), otherwise)

    def is_refusal(self, answer: Answer) -> bool:
        """Tell whether *answer* to a paid request says for certain that nothing was accepted."""
        if answer.status == 408:  # what had arrived until the timeout may have been enough
            return False
        names = self.read(answer).names
        documented = any(
            status == answer.status and re.search(said, names) for status, said in self.untouched
        )
        return 400 <= answer.status < 500 or documented


def text_of(value: object) -> str:
    """Return *value* as text, which is empty where a provider left it out."""
    return "" if value is None else str(value)


def retry_after(headers: httpx.Headers, now: datetime) -> float | None:
    """Return the seconds that the provider wants us to wait, at most a day; None where it does not say.

    Knows seconds, an HTTP date (RFC 9110, 10.2.3), and OpenAI's `retry-after-ms`. A date is compared with the
    answer's own Date, and with *now* only where that is missing.
    """
    milliseconds, wish = headers.get("retry-after-ms"), headers.get("retry-after", "")
    seconds = _number(milliseconds, 0.001) if milliseconds is not None else None
    if seconds is None:
        seconds = _number(wish, 1.0)
    if seconds is None and (moment := _moment(wish)) is not None:
        seconds = (moment - (_moment(headers.get("date", "")) or now)).total_seconds()
    return None if seconds is None else min(_LONGEST_WAIT, max(0.0, seconds))


def _usual(status: int) -> ErrorCode:
    other = ErrorCode.PROVIDER_UNAVAILABLE if not 400 <= status < 500 else ErrorCode.PROVIDER_BAD_REQUEST
    return _BY_STATUS.get(status, other)


def _number(text: str, unit: float) -> float | None:
    try:
        number = float(text) * unit
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
