"""How Ark says that something is wrong, and how a task stands.

Codes: docs.byteplus.com/en/docs/ModelArk/1299023.
"""

from types import MappingProxyType
from typing import Final

from models.errors import ErrorCode
from sceneloom.providers.verdicts import Answer, Complaint, Sign, Verdicts, text_of

UNDER_WAY: Final = frozenset({"queued", "running"})
SUCCEEDED: Final = "succeeded"
FAILED: Final = "failed"
STOPPED: Final = MappingProxyType(
    {"cancelled": ErrorCode.PROVIDER_CANCELLED, "expired": ErrorCode.PROVIDER_TIMEOUT}
)


def _complaint(answer: Answer) -> Complaint:
    return complaint_in((answer.json() or {}).get("error"))


def complaint_in(error: object) -> Complaint:
    """Return what an `error` object says, in an answer or in a failed task."""
    if not isinstance(error, dict):
        return Complaint()
    message = f"{text_of(error.get('param'))} {text_of(error.get('message'))}".strip()
    return Complaint(text_of(error.get("code")), message)


VERDICTS: Final = Verdicts(
    read=_complaint,
    signs=(
        Sign("SensitiveContentDetected|RiskDetection", ErrorCode.MODERATION_REJECTED),
        Sign("^QuotaExceeded", ErrorCode.PROVIDER_RATE_LIMITED, message="(?i)queue|concurren"),
        Sign("AccountOverdue|^QuotaExceeded|SetLimitExceeded", ErrorCode.PROVIDER_QUOTA_EXHAUSTED),
        Sign("RateLimitExceeded|ServerOverloaded|ModelLoading", ErrorCode.PROVIDER_RATE_LIMITED),
        Sign("ClosedEndpoint|NotFound|ModelNotOpen|Shutdown", ErrorCode.PROVIDER_MODEL_RETIRED),
        Sign("Authentication|AccessDenied", ErrorCode.PROVIDER_AUTH),
        Sign(
            "^InvalidParameter",
            ErrorCode.ASSET_FETCH_FAILED,
            message=r"(?is)(image|video|audio)_?url.*(download|fetch|access|timed? ?out)"
            r"|(download|fetch).*(image|video|audio)",
        ),
        Sign("^(MissingParameter|InvalidParameter|InvalidEndpoint)", ErrorCode.PROVIDER_BAD_REQUEST),
    ),
)
