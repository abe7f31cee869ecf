"""How a key gets into a request: as it is, or as a token that it has signed."""

import base64
import re
from collections.abc import Generator
from typing import Final

import httpx
from pydantic import SecretStr

from models.ports import Clock

_EARLY: Final = 5
_LIFE: Final = 1800
"""Seconds before now from which, and after now until which, a signed token holds."""


def key_of(key: SecretStr, *, scheme: str, header: str, signs: bool, clock: Clock) -> "Key | SignedKey":
    """Return what writes *key*; where it *signs*, an ACCESS:SECRET is sent as a token that it signs.

    Raises `ValueError` for a key that no header may hold.
    """
    stripped = SecretStr(key.get_secret_value().strip())
    if not re.fullmatch(r"[!-~]+", stripped.get_secret_value()):
        raise ValueError("a provider's key is empty, or holds a character that no HTTP header may hold")
    access, _, secret = stripped.get_secret_value().partition(":")
    if signs and access and secret:
        return SignedKey(access, SecretStr(secret), clock)
    return Key(scheme, stripped, header)


class Key(httpx.Auth):
    """Writes the key into the request at the moment it is sent, and nowhere else."""

    def __init__(self, scheme: str, key: SecretStr, header: str) -> None:
        stripped = key.get_secret_value()
        self._scheme = scheme
        self._header = header
        self._key = SecretStr(stripped)
        # RFC 7617: USER:PASSWORD travels in base64.
        sent = base64.b64encode(stripped.encode()).decode() if scheme == "Basic" else stripped
        self._sent = SecretStr(sent)

    @property
    def secrets(self) -> tuple[str, str]:
        """The key itself and as it is sent, for hiding both."""
        return self._key.get_secret_value(), self._sent.get_secret_value()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header that holds the key, or the parameter where its name begins with `?`."""
        sent = f"{self._scheme} {self._sent.get_secret_value()}".lstrip()
        if not self._header.startswith("?"):
            request.headers[self._header] = sent
            yield request
            return
        plain = request.url
        request.url = plain.copy_merge_params({self._header[1:]: sent})
        try:
            yield request
        finally:
            request.url = plain  # requests show their addresses in tracebacks


class SignedKey(httpx.Auth):
    """Sends a JWT (RFC 7519, HS256) that the secret of a pair has signed, a new one with each request."""

    def __init__(self, access: str, secret: SecretStr, clock: Clock) -> None:
        self._access = access
        self._secret = secret
        self._clock = clock

    @property
    def secrets(self) -> tuple[str, str]:
        """Both halves of the pair, for hiding them; a token is known by its looks."""
        return self._access, self._secret.get_secret_value()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header that holds the token."""
        request.headers["Authorization"] = f"Bearer {self._token()}"
        yield request

    def _token(self) -> str:
        import jwt  # noqa: PLC0415 -- takes a fifth of a second, and only this key wants it

        now = int(self._clock.now().timestamp())
        claims = {"iss": self._access, "exp": now + _LIFE, "nbf": now - _EARLY}
        return jwt.encode(claims, self._secret.get_secret_value(), algorithm="HS256")
