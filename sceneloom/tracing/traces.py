"""What a worker asks of traces, and those of a worker that makes none."""

import contextlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from faust.types.tuples import Message as Record

from models.job import Job
from models.ports import Message

_NOTHING: Final = contextlib.nullcontext()


class Traces(Protocol):
    """Makes spans, and carries their context from message to message."""

    def handling(self, record: Record, message: Any) -> AbstractContextManager[None]:
        """Make a span of the handling of *message*, which came as *record*."""
        ...

    def calling(self, what: str, job: Job) -> AbstractContextManager[None]:
        """Make a span of *what* a provider is asked to do for *job*."""
        ...

    def headers(self, message: Message) -> Mapping[str, str]:
        """Return the headers that let the handling of *message*, sent now, belong to the same trace."""
        ...

    def take(self, job: Job) -> None:
        """Note that the work on *job*, which begins later, follows from what is being handled now."""
        ...

    def drop(self, job_id: str) -> None:
        """Forget the job."""
        ...

    async def close(self) -> None:
        """Send what was not sent yet."""
        ...


class Untraced:
    """Makes no spans."""

    def handling(self, record: Record, message: Any) -> AbstractContextManager[None]:  # noqa: ARG002 -- a null object
        """Do nothing."""
        return _NOTHING

    def calling(self, what: str, job: Job) -> AbstractContextManager[None]:  # noqa: ARG002 -- a null object
        """Do nothing."""
        return _NOTHING

    def headers(self, message: Message) -> Mapping[str, str]:  # noqa: ARG002 -- a null object
        """Return none."""
        return {}

    def take(self, job: Job) -> None:
        """Do nothing."""

    def drop(self, job_id: str) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


def project_of(message: Any) -> str | None:
    """Return the project that *message* is about, None for a grant of credits, which is about none."""
    project = getattr(getattr(message, "answer", message), "project_id", None)
    return project if isinstance(project, str) else None
