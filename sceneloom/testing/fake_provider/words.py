"""The words of scenarios and of the ledger."""

from enum import StrEnum


class Family(StrEnum):
    """Which kind of provider answers."""

    TASKS = "tasks"
    QUEUE = "queue"
    BLOCKING = "blocking"


class Operation(StrEnum):
    """What a client asks for; a blocking call is a submit."""

    SUBMIT = "submit"
    POLL = "poll"
    RESULT = "result"
    LIST = "list"
    CANCEL = "cancel"
    DOWNLOAD = "download"


class Problem(StrEnum):
    """What can go wrong, before a family puts it into its own words and status."""

    INVALID_REQUEST = "invalid_request"
    UNAUTHORIZED = "unauthorized"
    QUOTA_EXHAUSTED = "quota_exhausted"
    FORBIDDEN = "forbidden"
    MODERATION = "moderation"
    NOT_FOUND = "not_found"
    MODEL_NOT_FOUND = "model_not_found"
    CONFLICT = "conflict"
    ASSET_FETCH = "asset_fetch"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    UNAVAILABLE = "unavailable"
    TIMEOUT = "timeout"
    OUTPUT_MISSING = "output_missing"


class Fault(StrEnum):
    """What happens to the connection instead of a proper answer."""

    HANG = "hang"
    DISCONNECT = "disconnect"
    HALF_BODY = "half_body"
