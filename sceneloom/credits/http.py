"""Another company's ledger of credits over HTTP; docs/credits.md is what that company has to keep to."""

import asyncio
from typing import Final

import httpx
from pydantic import SecretStr

from models.credit_messages import (
    CreditOrder,
    CreditsRefused,
    CreditsReserved,
    CreditsSettled,
    ReserveCredits,
    SettleCredits,
)
from models.errors import ErrorCode, ProviderFailure
from models.identifiers import event_id
from models.ports import Clock
from sceneloom.providers.redaction import redacted
from sceneloom.providers.verdicts import retry_after

ANSWER_SECONDS: Final = 20.0
"""How long the ledger may take to answer one request."""

_REFUSED: Final = 402
_TOO_OLD: Final = 410
_LATER: Final = frozenset({408, 409, 425})
_AUTH: Final = frozenset({401, 403})


class HttpLedger:
    """A `models.ports.CreditLedger` that speaks HTTP.

    Each order has an Idempotency-Key that follows from its content, so that it may be sent again whenever the
    outcome of a request is not clear.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        *,
        base_url: str,
        key: SecretStr,
        clock: Clock,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._client = client
        self._base_url = base_url.rstrip("/")
        self._key = key
        self._clock = clock
        self._answer_seconds = answer_seconds

    async def reserve(self, order: ReserveCredits, /) -> CreditsReserved | CreditsRefused:
        """Ask the ledger to hold what the project still needs. Raises `ProviderFailure`."""
        response = await self._post("reservations", order)
        about = order.model_dump(exclude={"type", "micros"})
        if response.status_code == _REFUSED:
            return CreditsRefused.model_validate(about)
        if response.is_success:
            return CreditsReserved.model_validate(about)
        raise self._failure(response)

    async def settle(self, order: SettleCredits, /) -> CreditsSettled:
        """Tell the ledger what the project has spent in all. Raises `ProviderFailure`."""
        response = await self._post("settlements", order)
        if response.is_success or response.status_code == _TOO_OLD:  # then a newer one has settled it
            return CreditsSettled.model_validate(order.model_dump(exclude={"type", "micros"}))
        raise self._failure(response)

    async def _post(self, path: str, order: CreditOrder) -> httpx.Response:
        key = event_id("credits", path, order.user_id, order.project_id, order.version)
        headers = {"Idempotency-Key": key}
        if self._key.get_secret_value():
            headers["Authorization"] = f"Bearer {self._key.get_secret_value()}"
        try:
            async with asyncio.timeout(self._answer_seconds):
                return await self._client.post(
                    f"{self._base_url}/{path}", json=body_of(order), headers=headers
                )
        except (httpx.HTTPError, TimeoutError, OSError) as error:
            detail = self._redacted(f"{path}: {type(error).__name__} {error}")
        # Raised out here: the cause is named but not chained, as its frames hold the request and so the key.
        raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, detail)

    def _failure(self, response: httpx.Response) -> ProviderFailure:
        wait = retry_after(response.headers, self._clock.now())
        detail = self._redacted(f"HTTP {response.status_code} {response.text[:2000]}")
        return ProviderFailure(_code(response), detail, retry_after=wait)

    def _redacted(self, text: str) -> str:
        return redacted(text, [self._key.get_secret_value()])


def body_of(order: CreditOrder) -> dict[str, str | int]:
    """Return what the ledger is sent for *order*, as JSON."""
    return {
        "user_id": order.user_id,
        "project_id": order.project_id,
        "version": order.version,
        "amount_micros": order.micros,
        "currency": "USD",
    }


def _code(response: httpx.Response) -> ErrorCode:
    status = response.status_code
    if status in _AUTH:
        return ErrorCode.PROVIDER_AUTH
    if status == httpx.codes.TOO_MANY_REQUESTS:
        return ErrorCode.PROVIDER_RATE_LIMITED
    if response.is_client_error and status not in _LATER:
        return ErrorCode.PROVIDER_BAD_REQUEST
    return ErrorCode.PROVIDER_UNAVAILABLE
