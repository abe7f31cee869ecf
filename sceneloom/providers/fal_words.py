"""How fal says that something is wrong, where its requests are found, and where a result has its output.

Codes: fal.ai/docs/documentation/model-apis/request-errors and /errors.
"""

from collections.abc import Mapping
from typing import Any, Final

from models.errors import ErrorCode
from sceneloom.providers.orders import output_url
from sceneloom.providers.verdicts import Answer, Complaint, Sign, Verdicts, text_of


def complaint(answer: Answer) -> Complaint:
    """Return what *answer* says: a model's list of faults, or the infrastructure's `error_type`."""
    body = answer.json() or {}
    detail = body.get("detail")
    kind = text_of(body.get("error_type") or answer.headers.get("x-fal-error-type"))
    if isinstance(detail, list):
        faults = [fault for fault in detail if isinstance(fault, dict)]
        names = " ".join([kind, *(text_of(fault.get("type")) for fault in faults)]).strip()
        return Complaint(names, "; ".join(text_of(fault.get("msg")) for fault in faults))
    return Complaint(kind, text_of(detail or body.get("error")))


VERDICTS: Final = Verdicts(
    read=complaint,
    signs=(
        Sign("content_policy_violation", ErrorCode.MODERATION_REJECTED),
        Sign("file_download_error", ErrorCode.ASSET_FETCH_FAILED),
        Sign("(request|startup|generation)_timeout", ErrorCode.PROVIDER_TIMEOUT),
        Sign("no_media_generated", ErrorCode.OUTPUT_MISSING),
        Sign("client_cancelled|^cancell?ed", ErrorCode.PROVIDER_CANCELLED),
        Sign(
            "",
            ErrorCode.PROVIDER_QUOTA_EXHAUSTED,
            message="(?i)exhausted balance|insufficient (balance|credit)",
        ),
        Sign("^(downstream_service|internal_server|internal_error|runner_)", ErrorCode.PROVIDER_UNAVAILABLE),
        Sign(
            "file_too_large|image_load_error|unsupported_|_(dimension|duration)",
            ErrorCode.PROVIDER_BAD_REQUEST,
        ),
    ),
)


def app_of(model: str) -> str:
    """Return the part of *model* that its requests are found under: two names, after a namespace three."""
    names = model.split("/")
    return "/".join(names[: 3 if names[0] in {"workflows", "comfy"} else 2])


def media_url(body: Mapping[str, Any]) -> str | None:
    """Return the URL of the video or picture in a result, wherever its model puts it."""
    for name in ("video", "videos", "image", "images"):
        found = body.get(name)
        first = (found[0] if found else None) if isinstance(found, list) else found
        if url := output_url(first.get("url") if isinstance(first, dict) else first):
            return url
    return None
