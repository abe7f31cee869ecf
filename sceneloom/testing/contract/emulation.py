"""How a provider speaks, as tables: what the contract plays, and what it expects of the adapter."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import Any

from models.errors import ErrorCode
from models.work import JobKind
from sceneloom.providers.catalogue import Kind
from sceneloom.providers.services import Service


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it came."""

    method: str
    path: str
    """Below the address of the service."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """By lower-case names."""
    content: bytes

    @property
    def body(self) -> Any:
        """The JSON in it, or None."""
        try:
            return json.loads(self.content)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer; *body* is JSON, or bytes as they are."""

    status: int = 200
    body: Any = field(default_factory=dict[str, Any])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Fault(Enum):
    """What a connection does instead of an answer."""

    HANG = auto()
    DISCONNECT = auto()
    HALF = auto()


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer to an order that says for certain that nothing was bought, and what it means."""

    status: int
    body: Any
    code: ErrorCode
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Accepted:
    """An order that was taken."""

    task_id: str
    order: Seen
    created: datetime


@dataclass(frozen=True, slots=True)
class Search:
    """Where lost tasks are looked for; `{id}` stands for any name. `found` answers for what was taken."""

    path: str
    found: Callable[[Sequence[Accepted], Seen], Reply]


@dataclass(frozen=True, slots=True)
class TakeBack:
    """How a task is taken back, the word for one that still waits, and that for one that was taken back."""

    method: str
    path: str
    waiting: str
    taken_back: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskEmulation:
    """A service that makes clips or pictures as tasks. `{id}` in a path stands for the id of a task."""

    service: Service
    kind: JobKind = JobKind.CLIP
    model: str
    ordered_as: str = ""
    """How an order names the model, where not as the settings do."""
    resolution: str = ""
    submit: str
    poll: str
    accepted: Callable[[str], Any]
    """The answer to an order, with the id of its task."""
    task: Callable[[str, str, str], Any]
    """What a poll is told of a task: by id, by the word for how it stands, and the URL of its output."""
    under_way: Sequence[str]
    succeeded: str
    ended: Mapping[str, ErrorCode] = field(default_factory=dict[str, ErrorCode])
    """Words for an end without an output."""
    failures: Sequence[tuple[Any, ErrorCode]] = ()
    """What a poll is told of a task that failed, and what that means."""
    refusals: Sequence[Refusal]
    search: Search | None = None
    take_back: TakeBack | None = None
    others: Mapping[str, Callable[[str, str], Reply]] = field(default_factory=dict[str, Any])
    """Further paths of a task, and the answers by id and URL of the output."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CallEmulation:
    """A service that makes a picture or speech, or times the words of speech, in one call."""

    service: Service
    kind: Kind
    model: str
    resolution: str = ""
    voice: str = ""
    submit: str
    made: Callable[[Seen], Reply]
    """The answer to an order."""
    others: Mapping[str, Callable[[Seen], Reply]] = field(default_factory=dict[str, Any])
    """Further paths that are read after an order; `*` stands for any letters."""
    unusable: Sequence[Reply] = ()
    """Answers of success that hold no output."""
    refusals: Sequence[Refusal]


Emulation = TaskEmulation | CallEmulation
