"""Calls to the client's callback address: sent, late, twice, forged, stale, or lost."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import aiohttp

from sceneloom.testing.fake_provider.clocks import Time
from sceneloom.testing.fake_provider.dialect import Dialect
from sceneloom.testing.fake_provider.tasks import Phase, Standing, Task
from sceneloom.testing.fake_provider.words import Family

FORGED_URL: Final = "https://forged.invalid/output"
_PAUSES: Final = {
    Family.TASKS: (1.0, 5.0),
    Family.QUEUE: (5.0, 15.0, 45.0, 135.0, 405.0, 900.0, 1500.0, 1800.0, 2395.0),
    Family.BLOCKING: (),
}
"""Seconds between the tries of one message: three in all for tasks, ten in two hours for the queue."""
_TIMEOUT: Final = aiohttp.ClientTimeout(total=15)
_STALE: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One try to deliver a message; `answer` is None where nobody answered."""

    at: datetime
    task_id: str
    status: str
    attempt: int
    forged: bool
    answer: int | None


@dataclass(frozen=True, slots=True)
class _Message:
    task: Task
    body: bytes
    headers: dict[str, str]
    status: str
    forged: bool


class Webhooks:
    """Sends the callbacks of all tasks."""

    def __init__(self, clock: Time) -> None:
        self._clock = clock
        self._dialects: dict[str, Dialect] = {}
        self._session: aiohttp.ClientSession | None = None
        self.deliveries: list[Delivery] = []

    def follow(self, task: Task, dialect: Dialect) -> None:
        """Plan the messages of *task*."""
        if task.order.callback_url is None:
            return
        self._dialects[task.id] = dialect
        if task.behaviour.webhook.forged:
            self._plan(task, Standing("succeeded", Phase.SUCCEEDED, task.accepted_at), forged=True)
        for moment in task.changes():
            self._clock.later(moment - self._clock.elapsed(), partial(self._reached, task, moment))

    def changed(self, task: Task) -> None:
        """Say how *task* stands now, beside what was planned."""
        if task.id in self._dialects:
            self._plan(task, task.standing(self._clock.elapsed()))

    async def _reached(self, task: Task, moment: float) -> None:
        if task.cancelled_at is None:
            self._plan(task, task.standing(moment))

    def _plan(self, task: Task, standing: Standing, *, forged: bool = False) -> None:
        wishes = task.behaviour.webhook
        if wishes.lost and not forged:
            return
        dialect = self._dialects[task.id]
        content = dialect.callback(task, standing, url=FORGED_URL if forged else None)
        if content is None:
            return
        body = json.dumps(content).encode()
        delay = 0.0 if forged else wishes.delay
        for _ in range(1 if forged else wishes.copies):
            self._clock.later(
                delay, partial(self._sign_and_send, dialect, task, body, standing.status, forged)
            )

    async def _sign_and_send(
        self,
        dialect: Dialect,
        task: Task,
        body: bytes,
        status: str,
        forged: bool,  # noqa: FBT001 -- for partial
    ) -> None:
        signed = self._clock.now() - (_STALE if task.behaviour.webhook.stale else timedelta())
        headers = dialect.signature(body, task, int(signed.timestamp()), forged=forged)
        headers["Content-Type"] = "application/json"
        await self._send(_Message(task, body, headers, status, forged), 1)

    async def _send(self, message: _Message, attempt: int) -> None:
        answer = await self._post(message)
        self.deliveries.append(
            Delivery(self._clock.now(), message.task.id, message.status, attempt, message.forged, answer)
        )
        pauses = _PAUSES[message.task.family]
        is_done = answer is not None and 200 <= answer < 300
        if not is_done and not message.forged and attempt <= len(pauses):
            again: Callable[[], Awaitable[None]] = partial(self._send, message, attempt + 1)
            self._clock.later(pauses[attempt - 1], again)

    async def _post(self, message: _Message) -> int | None:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=_TIMEOUT)
        try:
            async with self._session.post(
                str(message.task.order.callback_url),
                data=message.body,
                headers=message.headers,
                allow_redirects=False,
            ) as response:
                return response.status
        except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError, ValueError):
            return None

    def clear(self) -> None:
        """Forget what was delivered."""
        self.deliveries.clear()

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None
