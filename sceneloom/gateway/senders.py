"""Who may send webhooks, how each proves it, and where its message names the task."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx

from models.ports import Clock
from sceneloom.gateway.fal import FalSignature, PublishedKeys
from sceneloom.gateway.schemes import ElevenLabs, Scheme, StandardWebhooks, Unsigned
from sceneloom.settings import Settings

_TASK: Final = re.compile(r"[\w.:-]{1,200}", re.ASCII)

Content = Mapping[str, Any]
"""The JSON object of a message."""


@dataclass(frozen=True, slots=True)
class Sender:
    """One kind of sender: the proof that it owes, and the task that its message is about."""

    scheme: Scheme
    task: Callable[[Content], object]

    def task_in(self, content: Content) -> str | None:
        """Return the provider's name of the task, None where there is none that could be one."""
        name = self.task(content)
        return name if isinstance(name, str) and _TASK.fullmatch(name) else None


def senders(settings: Settings, *, client: httpx.AsyncClient, clock: Clock) -> dict[str, Sender]:
    """Return the senders by the name in their addresses; some are there only when their secret is set.

    Raises `ValueError`, naming the setting, for a secret that cannot be one.
    """
    keys = PublishedKeys(settings.fal_jwks_url, client=client, clock=clock)
    known = {
        "ark": Sender(Unsigned(), _id),
        "fal": Sender(FalSignature(keys, clock), lambda content: content.get("request_id")),
    }
    if settings.standard_webhook_secret.get_secret_value():
        try:
            known["standard"] = Sender(StandardWebhooks(settings.standard_webhook_secret), _id)
        except ValueError as error:
            raise ValueError("SCENELOOM_STANDARD_WEBHOOK_SECRET: it is not base64, as whsec_… is") from error
    if settings.elevenlabs_webhook_secret.get_secret_value():
        signed = ElevenLabs(settings.elevenlabs_webhook_secret, clock)
        known["elevenlabs"] = Sender(signed, lambda content: _inner(content).get("request_id"))
    return known


def _id(content: Content) -> object:
    """Return the id of the object that the message is, or that it wraps."""
    return _inner(content).get("id") or content.get("id")


def _inner(content: Content) -> Content:
    inner = content.get("data")
    return inner if isinstance(inner, dict) else {}
