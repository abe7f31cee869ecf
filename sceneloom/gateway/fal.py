"""fal's signature: Ed25519 over four lines, by one of the keys that fal publishes.

Wire shape: docs.fal.ai/model-endpoints/webhooks.
"""

import asyncio
import base64
import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import httpx
import orjson
import structlog
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from models.ports import Clock
from sceneloom.gateway.errors import NotNow, Refused
from sceneloom.gateway.schemes import check_age, header

KEPT: Final = timedelta(hours=24)
"""How long fal allows its keys to be kept."""

PAUSE: Final = timedelta(minutes=1)
"""Between two fetches because of a signature that no known key made, so that forgers cause few."""

_FETCH_SECONDS: Final = 5.0
_LARGEST: Final = 64 * 1024
_MOST_KEYS: Final = 16
_FIELDS: Final = ("request-id", "user-id", "timestamp")

_log = structlog.get_logger(__name__)


class FalSignature:
    """A Scheme: three headers and the hash of the body, signed."""

    def __init__(self, keys: "PublishedKeys", clock: Clock) -> None:
        self._keys = keys
        self._clock = clock

    async def verify(self, headers: Mapping[str, str], body: bytes) -> str:
        """Return the request id: fal sends one message for each request."""
        request_id, user_id, stamp = (header(headers, f"x-fal-webhook-{field}") for field in _FIELDS)
        check_age(stamp, self._clock.now())
        try:
            signature = bytes.fromhex(header(headers, "x-fal-webhook-signature"))
        except ValueError as error:
            raise Refused("the signature is not hexadecimal") from error
        message = "\n".join((request_id, user_id, stamp, hashlib.sha256(body).hexdigest())).encode()
        if not await self._keys.have_signed(message, signature):
            raise Refused("no key of fal made this signature")
        return request_id


class PublishedKeys:
    """The keys in a JWKS: fetched when they are needed, kept for a day, fetched again for an unknown one."""

    def __init__(self, url: str, *, client: httpx.AsyncClient, clock: Clock) -> None:
        self._url = url
        self._client = client
        self._clock = clock
        self._keys: list[Ed25519PublicKey] = []
        self._fetched_at: datetime | None = None
        self._asked_at: datetime | None = None
        self._fetching = asyncio.Lock()

    async def have_signed(self, message: bytes, signature: bytes) -> bool:
        """Tell whether one of the keys made *signature*. Raises `NotNow` where no keys can be had."""
        if self._are_fresh() and self._fits(message, signature):
            return True
        return await self._fetch() and self._fits(message, signature)

    def _fits(self, message: bytes, signature: bytes) -> bool:
        return any(_made(key, message, signature) for key in self._keys)

    def _are_fresh(self) -> bool:
        """Tell whether the keys that we have may be used."""
        return self._fetched_at is not None and self._clock.now() - self._fetched_at < KEPT

    async def _fetch(self) -> bool:
        """Fetch the keys unless that was tried a moment ago, and tell whether there may be new ones."""
        async with self._fetching:
            now = self._clock.now()
            if self._asked_at is not None and now - self._asked_at < PAUSE:
                if not self._are_fresh():
                    raise NotNow("fal's keys cannot be fetched")
                return True  # somebody else has fetched them while we waited
            self._asked_at = now
            try:
                self._keys = _keys_in(await self._download())
            except (httpx.HTTPError, TimeoutError, ValueError) as error:
                _log.warning("gateway.keys_not_fetched", error=f"{type(error).__name__}: {error}"[:200])
                if not self._are_fresh():
                    raise NotNow("fal's keys cannot be fetched") from error
                return False
            self._fetched_at = now
            return True

    async def _download(self) -> bytes:
        async with asyncio.timeout(_FETCH_SECONDS), self._client.stream("GET", self._url) as response:
            response.raise_for_status()
            if "," in response.headers.get("content-encoding", ""):  # a bomb: nobody packs a key set twice
                raise ValueError("the key set is compressed more than once")
            content = bytearray()
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > _LARGEST:
                    raise ValueError(f"the key set is longer than {_LARGEST} bytes")
            return bytes(content)


def _keys_in(content: bytes) -> list[Ed25519PublicKey]:
    """Return the Ed25519 keys of a JWKS; those of other kinds are passed over. Raises `ValueError`."""
    key_set = orjson.loads(content)
    listed = key_set.get("keys") if isinstance(key_set, dict) else None
    listed = listed if isinstance(listed, list) else []
    found = [_key(each) for each in listed[:_MOST_KEYS] if _is_ed25519(each)]
    if not found:
        raise ValueError("the key set has no Ed25519 key")
    return found


def _is_ed25519(key: Any) -> bool:
    return isinstance(key, dict) and key.get("crv") == "Ed25519" and isinstance(key.get("x"), str)


def _key(key: Mapping[str, str]) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "=="))


def _made(key: Ed25519PublicKey, message: bytes, signature: bytes) -> bool:
    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True
