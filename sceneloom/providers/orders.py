"""What the adapters of task APIs share: how a job is put into words, and how a lost task is found again."""

import base64
import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import httpx

from models.errors import AssetMissing, ErrorCode, OutcomeUnknown, ProviderFailure
from models.job import Job
from models.ports import Absent, Adopted, AssetStore, Reconciled, Several
from models.work import ClipRequest, ImageRequest

Callback = Callable[[Job], str]
"""Returns the address, with a secret in it, at which the provider tells of the call that a job makes."""

_BEFORE: Final = timedelta(seconds=60)
_AFTER: Final = timedelta(minutes=5)
_SHORTEST_SECONDS: Final = 4
_LONGEST_NAME: Final = 2000
_LONGEST_URL: Final = 8000
_QUANTITY: Final = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?) ?[a-z]{0,7}")
_MAGIC: Final = ((b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"RIFF", "image/webp"))


def reconciled(certain: Sequence[str], alike: Sequence[str]) -> Reconciled:
    """Judge the ids of tasks that repeat our reference, and of those that only look like ours."""
    found = tuple(dict.fromkeys(certain or alike))
    match len(found):
        case 0:
            return Absent()
        case 1:
            return Adopted(found[0], certain=bool(certain))
        case _:
            return Several(found)


def agrees(shown: Mapping[str, Any], wishes: Mapping[str, Any]) -> bool:
    """Tell whether a task that a list shows as *shown* may be the order of *wishes*.

    Only another value of the same form tells that it is not: a service may leave a wish out, add to it, or
    put it into a form of its own, and a task that is missed for that would be bought a second time.
    """
    return all(_may_be(shown.get(name), wish) for name, wish in wishes.items())


def _may_be(shown: object, wish: object) -> bool:
    if isinstance(shown, Mapping) and isinstance(wish, Mapping):
        return agrees(shown, wish)
    if shown is None or isinstance(shown, Mapping | list) or isinstance(wish, Mapping | list):
        return True
    return _plain(shown) in {_plain(wish), ""}


def _plain(value: object) -> str | float:
    """Return *value* without what a service may change of it: case, spaces, `5.0` or `5s` for `5`."""
    text = " ".join(str(value).split()).casefold()
    quantity = _QUANTITY.fullmatch(text)
    return float(quantity[1]) if quantity else text


def window(job: Job) -> tuple[datetime, datetime]:
    """Return the first and the last moment at which the unclear call of *job* may have made its task."""
    first = job.intended_at or job.created_at
    return first - _BEFORE, (job.unclear_at or first) + _AFTER


def clip_of(job: Job) -> ClipRequest:
    """Return the clip that *job* asks for. Raises `ProviderFailure` where it asks for something else."""
    if not isinstance(job.request, ClipRequest):
        raise ProviderFailure(ErrorCode.INVALID_REQUEST, f"not a clip: {job.kind}")
    return job.request


def picture_of(job: Job) -> ImageRequest:
    """Return the picture that *job* asks for. Raises `ProviderFailure` where it asks for something else."""
    if not isinstance(job.request, ImageRequest):
        raise ProviderFailure(ErrorCode.INVALID_REQUEST, f"not a picture: {job.kind}")
    return job.request


def whole_seconds(clip: ClipRequest, model: str) -> int:
    """Return the length to order: whole seconds that are enough, and no fewer than a Seedance model makes."""
    shortest = 2 if re.search(r"seedance[-/]v?1(?![-.]5)\b", model) else _SHORTEST_SECONDS
    return max(shortest, math.ceil(clip.duration_seconds))


def ordered_seconds(clip: ClipRequest) -> int:
    """Return the length to order: whole seconds that are enough; admission asked what the model makes."""
    return math.ceil(clip.duration_seconds)


def reference(job: Job) -> str:
    """Name the one call that *job* is about to make, the same on every worker."""
    return f"{job.job_id}/{job.attempt}.{job.postponed}"


def safety_identifier(job: Job) -> str:
    """Name the user, hashed as providers ask, and after a hyphen the call: 49 characters."""
    user, call = (hashlib.sha256(text.encode()).hexdigest() for text in (job.user_id, reference(job)))
    return f"{user[:16]}-{call[:32]}"


def secrets_in(callback_url: str | None) -> list[str]:
    """Return what nobody may see of *callback_url*: all of it, and the token at its end by itself."""
    return [callback_url, callback_url.rpartition("/")[2]] if callback_url else []


async def picture_url(url: str, assets: AssetStore) -> str:
    """Return *url* if the provider can fetch it; a picture of our own store goes along as a data URI."""
    if not assets.owns(url):
        return url
    try:
        content = await assets.get(url)
    except AssetMissing as error:
        raise ProviderFailure(ErrorCode.ASSET_FETCH_FAILED, str(error)) from error
    media_type = next((kind for magic, kind in _MAGIC if content.startswith(magic)), "image/png")
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def data_in(picture: str) -> tuple[str, str]:
    """Return the media type and the base64 of a data URI; both empty for another address."""
    if not picture.startswith("data:"):
        return "", ""
    kind, _, content = picture.removeprefix("data:").partition(";base64,")
    return kind, content


def task_name(value: object) -> str | None:
    """Return *value* if it can name a task: what cannot be written down cannot be asked for again."""
    can_name = isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME and value.isprintable()
    return str(value) if can_name else None


def output_url(value: object) -> str | None:
    """Return *value* if it is the URL of an output: of http or https, with a host and without a user."""
    if not isinstance(value, str) or len(value) > _LONGEST_URL:
        return None
    try:
        url = httpx.URL(value)
    except (httpx.InvalidURL, ValueError):
        return None
    return value if url.scheme in {"http", "https"} and url.host and not url.userinfo else None


def error_code(error: Exception) -> ErrorCode:
    """Name *error*, raised by an adapter, in our words."""
    match error:
        case ProviderFailure(code=code):
            return code
        case OutcomeUnknown():
            return ErrorCode.SUBMIT_UNKNOWN
        case _:
            return ErrorCode.PROVIDER_UNAVAILABLE
