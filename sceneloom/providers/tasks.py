"""The way of every task API: order, poll, take back. A provider's own module says only its words."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import Any, ClassVar, Final
from urllib.parse import quote

import structlog

from models.errors import ErrorCode, ProviderFailure
from models.job import Job
from models.ports import TaskReport
from models.work import ClipRequest
from sceneloom.providers import orders
from sceneloom.providers.connection import Connection
from sceneloom.providers.verdicts import Answer, Complaint, Verdicts

MOST_PAGES: Final = 20
"""How far a list is read before it counts as unreadable."""

_log = structlog.get_logger(__name__)


class Stage(Enum):
    """What a provider's word for the state of a task means."""

    UNDER_WAY = auto()
    SUCCEEDED = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class Order:
    """One POST that buys an asset."""

    path: str
    body: Mapping[str, Any]
    params: Mapping[str, str] = field(default_factory=dict[str, str])


class TaskApi(ABC):
    """A VideoProvider. A subclass names the words of its provider, and says where in an answer things are."""

    verdicts: ClassVar[Verdicts]
    stages: ClassVar[Mapping[str, Stage | ErrorCode]]
    """The provider's words for how a task stands; an error code is an end without an output."""
    waiting: ClassVar[Collection[str]] = frozenset()
    """The words for a task that has not begun, and is not billed when it is taken back."""

    def __init__(self, connection: Connection) -> None:
        self._to = connection
        self._wire = connection.wire(self.verdicts)

    async def submit(self, job: Job) -> str:
        """Order what *job* asks for; return the task's id. Raises `ProviderFailure` or `OutcomeUnknown`."""
        callback = self._to.callback(job) if self._to.callback else None
        order = await self.ordered(job, callback)
        hidden = orders.secrets_in(callback)
        answer = await self._wire.buy(order.path, order.body, params=order.params, hidden=hidden)
        body = answer.json() or {}
        task_id = orders.task_name(self.task_id(body))
        if task_id is not None:
            return task_id
        if self.refuses(body):
            raise self._wire.failure(answer, hidden)
        raise self._wire.unclear(answer, "a task id", hidden)

    async def poll(self, task_id: str) -> TaskReport:
        """Ask how the task stands. Raises `ProviderFailure`, which says nothing about the task."""
        task = self.task_in(await self._wire.read(self.path(task_id)))
        word = str(self.word(task))
        match self.stages.get(word):
            case Stage.UNDER_WAY:
                return TaskReport(progress=self.progress(task))
            case Stage.SUCCEEDED:
                return await self.finished(task)
            case Stage.FAILED:
                return self._failed(self.complaint(task))
            case ErrorCode() as code:
                return TaskReport(done=True, error_code=code, detail=f"the task is {word}")
            case None:
                _log.error(
                    "task.unknown_status", provider=self._to.entry.name, status=self._wire.redacted(word)
                )
                return TaskReport()

    async def ordered(self, job: Job, callback: str | None) -> Order:
        """Return the order for *job*, a clip. Raises `ProviderFailure` where it cannot be one."""
        clip = orders.clip_of(job)
        picture = None
        if clip.first_frame_url is not None:
            picture = await orders.picture_url(clip.first_frame_url, self._to.assets)
        return self.order(job, clip, picture, callback)

    def normalize_error(self, error: Exception) -> ErrorCode:
        """Name *error* in our words."""
        return orders.error_code(error)

    def cost_per_call(self) -> float:
        """Return the configured price of one call, in US dollars."""
        return self._to.cost_usd

    # -- what a provider says

    @abstractmethod
    def order(self, job: Job, clip: ClipRequest, picture: str | None, callback: str | None) -> Order:
        """Put the order into the provider's words; *picture* is an address or a data URI."""

    @abstractmethod
    def task_id(self, body: Mapping[str, Any]) -> object:
        """Return the id in the answer to an order."""

    @abstractmethod
    def path(self, task_id: str) -> str:
        """Return where the task is asked for."""

    @abstractmethod
    def word(self, task: Mapping[str, Any]) -> object:
        """Return the word for how *task* stands."""

    @abstractmethod
    def output(self, task: Mapping[str, Any]) -> object:
        """Return the URL of the output of a task that succeeded."""

    @abstractmethod
    def complaint(self, task: Mapping[str, Any]) -> Complaint:
        """Return why *task* failed."""

    def task_in(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the task in an answer about it."""
        return body

    def refuses(self, body: Mapping[str, Any]) -> bool:  # noqa: ARG002 -- for those who refuse with a 2xx
        """Tell whether a 2xx answer to an order surely is a refusal."""
        return False

    def progress(self, task: Mapping[str, Any]) -> float | None:  # noqa: ARG002 -- few tell
        """Return the share that is done, from 0 to 1, where the provider tells."""
        return None

    async def finished(self, task: Mapping[str, Any]) -> TaskReport:
        """Report the output of a task that succeeded."""
        url = orders.output_url(self.output(task))
        if url is None:
            return TaskReport(done=True, error_code=ErrorCode.OUTPUT_MISSING, detail="success without a URL")
        return TaskReport(done=True, progress=1.0, output_url=url)

    # -- for those who can

    async def _taken_back(self, task_id: str, method: str, path: str) -> bool:
        """Take the task back by *method* and *path*, and tell whether it surely had not begun."""
        word = str(self.word(self.task_in(await self._wire.read(self.path(task_id)))))
        if word not in self.waiting:
            return False
        return (await self._wire.ask(method, path)).is_success

    async def _pages(self, path: str, params: dict[str, str]) -> AsyncIterator[dict[str, Any]]:
        """Yield the pages of a list; whoever reads them changes *params* for the next, or stops.

        Raises `ProviderFailure` where there are too many.
        """
        for _ in range(MOST_PAGES):
            yield await self._wire.read(path, params=params)
        raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, "the list of tasks is too long to search")

    def _failed(self, said: Complaint) -> TaskReport:
        code = self.verdicts.named(said, otherwise=ErrorCode.PROVIDER_UNAVAILABLE)
        detail = self._wire.redacted(f"{said.names}: {said.message}".strip(": "))
        return TaskReport(done=True, error_code=code, detail=detail)


def quoted(task_id: str) -> str:
    """Return *task_id* fit for a path."""
    return quote(task_id, safe="")


def items_of(page: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the tasks on *page*. Raises `ProviderFailure` where it has none: then nothing is known."""
    items = page.get(name)
    if not isinstance(items, list):
        raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, "a list without items")
    return [item for item in items if isinstance(item, dict)]


def is_in_time(created: datetime | None, job: Job) -> bool:
    """Tell whether a task *created* then may be the one; one that does not say when may be."""
    first, last = orders.window(job)
    return created is None or first <= created <= last


def error_object(answer: Answer) -> Complaint:
    """Read `{error: {code, message, type, status}}`, which many speak."""
    error = (answer.json() or {}).get("error")
    if not isinstance(error, dict):
        return Complaint(message=str(error or ""))
    names = " ".join(str(error[name]) for name in ("type", "status", "code") if error.get(name) is not None)
    return Complaint(names, str(error.get("message") or ""))
