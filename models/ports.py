"""What the domain asks of the outside, as structural types: adapters need not import this module."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

from models.commands import ProjectCommand, SceneCommand, Want
from models.credit_messages import (
    CreditMessage,
    CreditsRefused,
    CreditsReserved,
    CreditsSettled,
    ReserveCredits,
    SettleCredits,
)
from models.credits import Account, AccountSnapshot, Entry
from models.errands import Errand
from models.errors import ErrorCode
from models.events import CommandRefused, Event, ProjectRejected
from models.job import Job
from models.job_events import JobEvent
from models.project import Project
from models.request import ProjectRequest
from models.results import SceneResult
from models.shapes import Size
from models.snapshot import ProjectSnapshot
from models.work import Offer

PublicEvent = Event | ProjectRejected | CommandRefused
"""What everyone may hear of."""

Message = (
    ProjectCommand
    | SceneCommand
    | SceneResult
    | JobEvent
    | PublicEvent
    | ProjectSnapshot
    | CreditMessage
    | CreditsReserved
    | CreditsRefused
    | CreditsSettled
    | AccountSnapshot
)
"""Everything that travels on our topics."""


class Word(BaseModel):
    """One spoken word and when it sounds, in seconds from the start of its audio."""

    model_config = ConfigDict(frozen=True)

    text: str
    start: float
    end: float


class Speech(BaseModel):
    """Spoken narration: a complete WAV file, its length in seconds, and its words (empty when unknown)."""

    model_config = ConfigDict(frozen=True)

    audio: bytes
    seconds: float
    words: tuple[Word, ...]


class TaskReport(BaseModel):
    """What a provider says about a task: still running, done with an output, or failed."""

    model_config = ConfigDict(frozen=True)

    done: bool = False
    progress: float | None = None
    output_url: str | None = None
    output: bytes | None = None
    error_code: ErrorCode | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Adopted:
    """Exactly one task can be the lost one; `certain` where it repeats our reference."""

    task_id: str
    certain: bool


@dataclass(frozen=True, slots=True)
class Absent:
    """No task can be the lost one, as far as the list shows now."""


@dataclass(frozen=True, slots=True)
class Several:
    """More than one task can be the lost one: a person must choose."""

    task_ids: tuple[str, ...]


Reconciled = Adopted | Absent | Several
"""What the search for a task whose submit had no clear outcome has found."""


@runtime_checkable
class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        ...


@runtime_checkable
class TextToImageProvider(Protocol):
    """Makes a picture from words."""

    async def generate(self, prompt: str, size: Size, *, seed: int = 0) -> bytes:
        """Return an encoded picture (PNG or JPEG) of exactly *size*; equal arguments ask for equal work."""
        ...

    def cost_per_call(self) -> float:
        """Return what one call costs, in US dollars."""
        ...


@runtime_checkable
class TextToSpeechProvider(Protocol):
    """Speaks narration."""

    async def speak(self, text: str, *, language: str, voice: str | None = None) -> Speech:
        """Return *text* spoken in *language* (BCP 47, such as `en` or `fa`) by *voice* or the usual one."""
        ...

    def cost_per_call(self) -> float:
        """Return what one call costs, in US dollars."""
        ...


@runtime_checkable
class SpeechToTextProvider(Protocol):
    """Finds out when each word of a recording sounds."""

    async def transcribe(self, audio: bytes, *, language: str) -> tuple[Word, ...]:
        """Return the words of *audio* (an encoded audio file) in order."""
        ...


@runtime_checkable
class TaskProvider(Protocol):
    """Makes an asset as a task that is submitted once and then polled."""

    async def submit(self, job: Job) -> str:
        """Start the work that *job* asks for and return the provider's task id."""
        ...

    async def poll(self, task_id: str) -> TaskReport:
        """Ask how task *task_id* stands."""
        ...

    def normalize_error(self, error: Exception) -> ErrorCode:
        """Name *error*, raised by this provider, in our words."""
        ...

    def cost_per_call(self) -> float:
        """Return what one call costs, in US dollars."""
        ...


VideoProvider = TaskProvider
"""Who makes clips: all of them do it as tasks, as some makers of pictures do, too."""


@runtime_checkable
class Reconciler(Protocol):
    """A task provider with a list of its tasks, in which one that got lost can be found."""

    async def candidates(self, job: Job, *, taken: Collection[str] = ()) -> Reconciled:
        """Find the task of *job*; those that are *taken* belong to other jobs. Raises `ProviderFailure`."""
        ...


@runtime_checkable
class CallsBack(Protocol):
    """A task provider that tells of news at an address of ours."""

    def task_named(self, job: Job, name: str) -> str:
        """Return the id, as `poll` takes it, of the task of *job* that a message calls *name*."""
        ...


@runtime_checkable
class Stopper(Protocol):
    """A task provider that can take a task back."""

    async def cancel(self, task_id: str) -> bool:
        """Stop the task, and tell whether it surely is not billed. Raises `ProviderFailure`."""
        ...


@runtime_checkable
class AssetStore(Protocol):
    """Keeps finished files under the hash of their content; a URL, once given, stays true."""

    def owns(self, url: str) -> bool:
        """Tell whether *url* names an asset of this store."""
        ...

    async def put(self, content: bytes, *, media_type: str) -> str:
        """Store *content* unless it is there already, whole or not at all, and return its URL."""
        ...

    async def put_file(self, path: Path, *, media_type: str) -> str:
        """Store the file at *path* as `put` does, without reading it into memory at once."""
        ...

    async def get(self, url: str) -> bytes:
        """Return the content at *url*. Raises `AssetMissing` where there is none."""
        ...

    async def get_file(self, url: str, path: Path) -> None:
        """Write the content at *url* to *path*, whole or not at all. Raises `AssetMissing`."""
        ...

    async def verify(self, url: str) -> None:
        """Return if the content at *url* is there and whole. Raises `AssetMissing` or `BadMedia`."""
        ...

    async def remember(self, key: str, entry: Mapping[str, object]) -> None:
        """Keep a small JSON *entry* under *key* (of letters, digits and `/._-`), replacing an older one."""
        ...

    async def recall(self, key: str) -> Mapping[str, object] | None:
        """Return the entry under *key*, or None."""
        ...

    async def claim(self, key: str, entry: Mapping[str, object]) -> bool:
        """Keep *entry* under *key* only where there is none; of many at once, exactly one is told True.

        False may also mean that the caller's own earlier try got through, so an entry should name its owner.
        """
        ...


@runtime_checkable
class ProjectStore(Protocol):
    """Keeps the projects of this worker's partitions, and remembers every change for the next worker."""

    def get(self, project_id: str, /) -> Project | None:
        """Return the project, or None where there is none."""
        ...

    def put(self, project: Project, /) -> None:
        """Keep *project* as the latest; only while handling a message of its partition."""
        ...

    def open_projects(self, partitions: Collection[int], /) -> Iterable[Project]:
        """Return the projects of *partitions* that still have work to do."""
        ...


@runtime_checkable
class JobStore(Protocol):
    """Keeps the jobs of this worker's partitions, and remembers every change for the next worker."""

    def get(self, job_id: str, /) -> Job | None:
        """Return the latest attempt at the job, or None where there is none."""
        ...

    def put(self, job: Job, /) -> None:
        """Keep *job* as the latest; only while handling a message of its partition."""
        ...

    def jobs(self, partitions: Collection[int], /) -> Iterable[Job]:
        """Return all jobs of *partitions*."""
        ...

    def jobs_of(self, project_id: str, /) -> Iterable[Job]:
        """Return the jobs of one project."""
        ...


@runtime_checkable
class JobQueue(Protocol):
    """Where jobs wait to be worked on by this worker. Answers at once."""

    def take(self, job: Job, /) -> None:
        """Work on *job* when it is due; a job already taken is taken once, in its latest form."""
        ...

    def hint(self, job: Job, provider_task_id: str | None, /) -> None:
        """Look at *job* at once, as there may be news of it, under that task id where the hint names one."""
        ...

    def drop(self, job: Job, /) -> None:
        """Stop working on *job*, which is over."""
        ...


@runtime_checkable
class CreditStore(Protocol):
    """Keeps the accounts of this worker's partitions, and remembers every change for the next worker."""

    def account(self, user_id: str, /) -> Account:
        """Return the account, which is empty where nobody has asked for it yet."""
        ...

    def entry(self, user_id: str, name: str, /) -> Entry | None:
        """Return the entry *name* of the account, or None where there is none."""
        ...

    def put(self, account: Account, /) -> None:
        """Keep *account* and its last entry, both or neither; only while handling a message of its user."""
        ...


@runtime_checkable
class ErrandStore(Protocol):
    """Keeps the errands of this worker's partitions, and remembers every change for the next worker."""

    def get(self, user_id: str, project_id: str, /) -> Errand | None:
        """Return the latest errand of the project, or None where there is none."""
        ...

    def put(self, errand: Errand, /) -> None:
        """Keep *errand* as the latest of its project; only while handling a message of its user."""
        ...

    def unanswered(self, partitions: Collection[int], /) -> Iterable[Errand]:
        """Return the errands of *partitions* that the ledger has not answered yet."""
        ...


@runtime_checkable
class ErrandQueue(Protocol):
    """Where errands wait for this worker to run them. Answers at once."""

    def take(self, errand: Errand, /) -> None:
        """Run *errand*, in place of an older one of its project."""
        ...


@runtime_checkable
class CreditLedger(Protocol):
    """Another company's ledger of credits. To ask it again for the same order changes nothing there.

    Both raise `ProviderFailure` where there is no clear answer.
    """

    async def reserve(self, order: ReserveCredits, /) -> CreditsReserved | CreditsRefused:
        """Hold what the project still needs, and release what an older version of it held."""
        ...

    async def settle(self, order: SettleCredits, /) -> CreditsSettled:
        """Charge what the project has spent in all, and hold nothing for it."""
        ...


@runtime_checkable
class Publisher(Protocol):
    """Sends messages to the topics that carry them, keyed by project or by user."""

    async def publish(self, message: Message, /) -> None:
        """Send *message*; the offset of what caused it waits until the broker has it."""
        ...


@runtime_checkable
class Admission(Protocol):
    """Checks a request before any work is done and any money is spent."""

    def check(self, raw: object, *, folder: Path | None) -> ProjectRequest:
        """Return the request that *raw* holds. Raises `RequestRefused` with all its faults.

        Relative picture paths start at *folder*; without one, every picture must be a URL.
        """
        ...


@runtime_checkable
class Offers(Protocol):
    """Knows who makes what, and at what price."""

    def offer_for(self, want: Want, /) -> Offer:
        """Return who makes what *want* asks for: the wished provider, or the configured one."""
        ...

    def fallback_for(self, job: Job, /) -> Offer | None:
        """Return who may make the asset of *job*, whose provider cannot be had, or None.

        Asked again and again about each that follows, it comes to None: nobody is named twice.
        """
        ...
