"""How a command ends: its exit code, and the one clear line for everything that can go wrong."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final


class Outcome(IntEnum):
    """The exit codes, the same for every command."""

    DONE = 0
    FAILED = 1
    INVALID = 2
    UNREACHABLE = 3
    TIMED_OUT = 4
    INTERRUPTED = 130


class Stop(Exception):
    """Ends the command with *outcome* after one line to the user."""

    def __init__(self, message: str, outcome: Outcome = Outcome.FAILED) -> None:
        super().__init__(message)
        self.outcome = outcome


def no_such_project(project_id: str) -> Stop:
    """Return what to say where nobody has heard of the project."""
    return Stop(
        f"there is no project {project_id} yet: nobody submitted it, or no worker has taken it up "
        "(start one with `sceneloom worker`)"
    )


# Named by text, so that a command that needs none of these modules does not load them.
_OUTCOMES: Final[Mapping[str, Outcome]] = MappingProxyType(
    {
        "sceneloom.topic_admin.BrokerUnreachable": Outcome.UNREACHABLE,
        "sceneloom.topic_admin.TopicsMissing": Outcome.UNREACHABLE,
        "sceneloom.topic_admin.TopicMismatch": Outcome.INVALID,
        "sceneloom.topic_admin.TopicsRefused": Outcome.INVALID,
        "sceneloom.monitoring.group.GroupUnreadable": Outcome.UNREACHABLE,
        "sceneloom.monitoring.serving.PortTaken": Outcome.INVALID,
        "sceneloom.table_folder.TablesInUse": Outcome.INVALID,
        "sceneloom.table_folder.FolderUnusable": Outcome.INVALID,
        "sceneloom.brokers.BrokerUnavailable": Outcome.UNREACHABLE,
        "sceneloom.assets.errors.AssetStoreUnavailable": Outcome.FAILED,
        "sceneloom.demo.WorkerDied": Outcome.FAILED,
        "sceneloom.demo.NoExample": Outcome.INVALID,
        "sceneloom.operations.letters.LetterMissing": Outcome.FAILED,
        "sceneloom.operations.losses.WorkersRun": Outcome.FAILED,
        "sceneloom.story.NotAsTold": Outcome.FAILED,
        "sceneloom.deals.ProviderMisset": Outcome.INVALID,
        "sceneloom.providers.services.BadService": Outcome.INVALID,
        "models.errors.AssetMissing": Outcome.FAILED,
        "models.errors.BadMedia": Outcome.FAILED,
    }
)


def outcome_of(error: BaseException) -> Outcome | None:
    """Return the exit code for *error*, None where it is a bug of ours and deserves its traceback."""
    if isinstance(error, Stop):
        return error.outcome
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__)
    return next((_OUTCOMES[name] for name in names if name in _OUTCOMES), None)
