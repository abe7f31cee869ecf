"""How each provider speaks, by its documentation: what the contract plays."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from models.errors import ErrorCode
from sceneloom.testing.contract import Accepted, Refusal, Reply, Seen

BLOCKED = ErrorCode.MODERATION_REJECTED
QUOTA = ErrorCode.PROVIDER_QUOTA_EXHAUSTED
LIMITED = ErrorCode.PROVIDER_RATE_LIMITED
AUTH = ErrorCode.PROVIDER_AUTH
BAD = ErrorCode.PROVIDER_BAD_REQUEST
RETIRED = ErrorCode.PROVIDER_MODEL_RETIRED
FETCH = ErrorCode.ASSET_FETCH_FAILED
AWAY = ErrorCode.PROVIDER_UNAVAILABLE
TIMEOUT = ErrorCode.PROVIDER_TIMEOUT
CANCELLED = ErrorCode.PROVIDER_CANCELLED
MISSING = ErrorCode.OUTPUT_MISSING

PLAIN = (
    Refusal(400, {}, BAD),
    Refusal(401, {}, AUTH),
    Refusal(402, {}, QUOTA),
    Refusal(403, {}, AUTH),
    Refusal(404, {}, RETIRED),
    Refusal(422, {}, BAD),
    Refusal(429, {}, LIMITED),
    Refusal(400, b"<html>no</html>", BAD),
)
"""What a status alone means."""


def of_statuses(told: Callable[..., Any], *rows: tuple[int, Any, ErrorCode]) -> tuple[Refusal, ...]:
    """Return refusals whose bodies *told* makes of the middle of each row."""
    return tuple(
        Refusal(status, told(*said) if isinstance(said, tuple) else told(said), code)
        for status, said, code in rows
    )


def listing(
    name: str, item: Callable[[Accepted], Mapping[str, Any]], **more: Any
) -> Callable[[Sequence[Accepted], Seen], Reply]:
    """Answer a list with *item* for each task that was taken."""
    return lambda taken, _: Reply(200, {name: [item(task) for task in taken], **more})
