"""How providers prove that a message is theirs, and how we check it."""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from pydantic import SecretStr
from standardwebhooks import Webhook, WebhookVerificationError

from models.ports import Clock
from sceneloom.gateway.errors import Refused

TOLERANCE: Final = timedelta(minutes=5)
"""How far the time of a signature may be from ours, either way."""


class Scheme(Protocol):
    """Checks what proves a message."""

    async def verify(self, headers: Mapping[str, str], body: bytes) -> str:
        """Return the id of a genuine message. Raises `Refused`; `NotNow` where that cannot be told yet."""
        ...


class Unsigned:
    """For a provider that signs nothing: the token in the address is all there is, and no age can be told."""

    async def verify(self, headers: Mapping[str, str], body: bytes) -> str:  # noqa: ARG002 -- a Scheme
        """Return the hash of the body: equal messages are one message."""
        return hashlib.sha256(body).hexdigest()


class StandardWebhooks:
    """For Replicate and all others that speak Standard Webhooks 1.0 with a shared secret.

    Raises `ValueError` for a secret that is not base64.
    """

    def __init__(self, secret: SecretStr) -> None:
        self._webhook = Webhook(secret.get_secret_value())

    async def verify(self, headers: Mapping[str, str], body: bytes) -> str:
        """Return the `webhook-id`; the library allows ±5 minutes by the system's time."""
        try:
            self._webhook.verify(body, dict(headers), json_parse=False)
        except (WebhookVerificationError, ValueError) as error:  # ValueError: a header that is no signature
            raise Refused(str(error)) from error
        return headers["webhook-id"]


class ElevenLabs:
    """For `ElevenLabs-Signature: t=SECONDS,v0=HEX`: HMAC-SHA256 of `t.body`, one of the v0 must fit."""

    def __init__(self, secret: SecretStr, clock: Clock) -> None:
        self._secret = secret
        self._clock = clock

    async def verify(self, headers: Mapping[str, str], body: bytes) -> str:
        """Return the hash of time and body."""
        stamp, signatures = parse_signature(header(headers, "elevenlabs-signature"))
        signed = stamp.encode() + b"." + body
        wanted = hmac.new(self._secret.get_secret_value().encode(), signed, hashlib.sha256).hexdigest()
        if not any(hmac.compare_digest(each.encode(), wanted.encode()) for each in signatures):
            raise Refused("the signature is wrong")
        check_age(stamp, self._clock.now())
        return hashlib.sha256(signed).hexdigest()


def parse_signature(value: str) -> tuple[str, list[str]]:
    """Return the time and the v0 signatures of an `ElevenLabs-Signature`. Raises `Refused`."""
    pairs = [part.strip().partition("=") for part in value.split(",")]
    stamps = [content for name, _, content in pairs if name == "t"]
    if len(stamps) != 1:
        raise Refused("the signature has not exactly one time")
    return stamps[0], [content for name, _, content in pairs if name == "v0"]


def header(headers: Mapping[str, str], name: str) -> str:
    """Return the header *name* (in small letters). Raises `Refused` where it is missing or empty."""
    value = headers.get(name)
    if not value:
        raise Refused(f"the header {name} is missing")
    return value


def check_age(stamp: str, now: datetime) -> None:
    """Return if *stamp*, Unix seconds, is close enough to *now*. Raises `Refused`."""
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 11):
        raise Refused("the time of the signature is no number of seconds")
    signed_at = datetime.fromtimestamp(int(stamp), UTC)
    if abs(now - signed_at) > TOLERANCE:
        raise Refused(f"signed at {signed_at:%Y-%m-%dT%H:%M:%SZ}, too far from now")
