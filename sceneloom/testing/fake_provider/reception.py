"""Writes each request into the ledger, without secrets, and looks at its key."""

from collections.abc import Collection

from aiohttp import web

from sceneloom.testing.fake_provider.answers import Answer
from sceneloom.testing.fake_provider.clocks import Time
from sceneloom.testing.fake_provider.dialect import Dialect
from sceneloom.testing.fake_provider.director import Call
from sceneloom.testing.fake_provider.ledger import Entry, Ledger
from sceneloom.testing.fake_provider.words import Problem


class Reception:
    """Where a request arrives."""

    def __init__(self, ledger: Ledger, clock: Time, keys: Collection[str]) -> None:
        self._ledger = ledger
        self._clock = clock
        self._keys = frozenset(keys)

    def receive(self, request: web.Request, call: Call, *, reference: str | None = None) -> Entry:
        """Write down that *request* came."""
        key = request.headers.get("Idempotency-Key")
        texts = {
            "path": request.path,
            "model": call.model,
            "prompt": call.prompt,
            "idempotency_key": key,
            "reference": reference,
            "task_id": call.task_id,
        }
        return self._ledger.receive(
            at=self._clock.now(),
            family=call.family,
            operation=call.operation,
            method=request.method,
            **{name: text and self._without_keys(text) for name, text in texts.items()},
        )

    def _without_keys(self, text: str) -> str:
        for key in self._keys:
            text = text.replace(key, "***")
        return text

    def refusal(self, request: web.Request, dialect: Dialect) -> Answer | None:
        """Return the 401 that a request without one of our keys deserves."""
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        is_known = scheme == dialect.scheme and key.strip() in self._keys
        return None if is_known else dialect.problem(Problem.UNAUTHORIZED)
