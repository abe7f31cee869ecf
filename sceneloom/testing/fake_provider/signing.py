"""fal's webhook signature: Ed25519 over four lines, with the public key in a JWKS."""

import base64
from hashlib import sha256
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_USER: Final = "fake-user"


class Signer:
    """Signs with a key of its own, made anew for each server, or with one that nobody knows."""

    def __init__(self) -> None:
        self._key = Ed25519PrivateKey.generate()
        self._false_key = Ed25519PrivateKey.generate()

    def key_set(self) -> dict[str, list[dict[str, str]]]:
        """Return the JWKS with the public key."""
        public = base64.urlsafe_b64encode(self._key.public_key().public_bytes_raw()).rstrip(b"=").decode()
        return {"keys": [{"kty": "OKP", "crv": "Ed25519", "use": "sig", "kid": "fake-1", "x": public}]}

    def headers(self, body: bytes, *, request_id: str, stamp: int, forged: bool = False) -> dict[str, str]:
        """Return the headers for *body* sent at *stamp* (unix seconds)."""
        lines = (request_id, _USER, str(stamp), sha256(body).hexdigest())
        key = self._false_key if forged else self._key
        return {
            "X-Fal-Webhook-Request-Id": request_id,
            "X-Fal-Webhook-User-Id": _USER,
            "X-Fal-Webhook-Timestamp": str(stamp),
            "X-Fal-Webhook-Signature": key.sign("\n".join(lines).encode()).hex(),
        }
