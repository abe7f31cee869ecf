"""What every maker of assets offers to the workshop."""

from collections.abc import Callable, Collection
from typing import Protocol, runtime_checkable

from models.errors import OutcomeUnknown
from models.job import Job
from models.ports import Reconciled, TaskReport
from models.work import Output

__all__ = ["Maker", "OutcomeUnknown", "Progress", "TaskMaker"]

Progress = Callable[[float], None]
"""Hears shares from 0 to 1 while the work goes on."""


@runtime_checkable
class Maker(Protocol):
    """Makes an asset by one call that waits for it."""

    async def make(self, job: Job, *, progress: Progress) -> Output:
        """Return the stored, checked output of *job*.

        Raises `ProviderFailure` where the call surely bought nothing, `OutcomeUnknown` where nobody can tell.
        """
        ...


@runtime_checkable
class TaskMaker(Protocol):
    """Makes an asset as a task: submitted once, polled until it is done, then collected."""

    async def submit(self, job: Job) -> str:
        """Start the task and return the provider's id of it. Raises as `Maker.make` does."""
        ...

    async def poll(self, job: Job) -> TaskReport:
        """Ask how the task of *job* stands; whatever it raises says nothing about the task."""
        ...

    async def find(self, job: Job, *, taken: Collection[str]) -> Reconciled | None:
        """Look for the task of a submit without clear outcome; None where the provider has no list."""
        ...

    async def confirm(self, job: Job, named: str) -> str | None:
        """Return the id of the task that a webhook calls *named*; None where the provider sends none.

        Raises `ProviderFailure` where the provider does not say that it has such a task.
        """
        ...

    async def take_back(self, job: Job) -> bool:
        """Have the provider stop the task of *job*, and tell whether it surely is not billed."""
        ...

    async def collect(self, job: Job, report: TaskReport) -> Output:
        """Return the stored, checked output of a task that is done."""
        ...
