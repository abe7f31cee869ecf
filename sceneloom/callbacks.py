"""The address at which a provider tells of one call, and the token in it that nobody else can make."""

import base64
import hashlib
import hmac
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from pydantic import SecretStr

from models.job import Job

PREFIX: Final = "/webhooks"
_PURPOSE: Final = "sceneloom webhook 1\n"
"""Stands before what is signed, so that the secret's signature of anything else is no token."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one attempt at a job: what a webhook is about."""

    provider: str
    job_id: str
    attempt: int
    call: int

    @property
    def project_id(self) -> str:
        """The project of the job."""
        return self.job_id.partition("/")[0]

    def token(self, secret: SecretStr) -> str:
        """Return the HMAC-SHA256 of the call under *secret*: 43 characters that are safe in a URL."""
        signed = f"{_PURPOSE}{self.provider}\n{self.job_id}\n{self.attempt}\n{self.call}"
        mac = hmac.digest(secret.get_secret_value().encode(), signed.encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()

    def is_proven_by(self, token: str, secret: SecretStr) -> bool:
        """Tell whether *token* is the one of this call, in the same time for every wrong one."""
        return hmac.compare_digest(token.encode(), self.token(secret).encode())


def callback_url(base_url: str, secret: SecretStr, provider: str, job: Job) -> str:
    """Return where *provider* tells of the call that *job* is about to make; keep it out of logs."""
    call = Call(provider, job.job_id, job.attempt, job.postponed)
    where = f"{provider}/{quote(job.job_id)}/{call.attempt}/{call.call}"
    return f"{base_url.rstrip('/')}{PREFIX}/{where}/{call.token(secret)}"
