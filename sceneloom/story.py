"""The founding story: a provider is down for one scene, the worker is killed, a retry buys what is missing.

Everything is real but the money: the broker, the workers, the HTTP calls, the pictures and the film. The
provider is the fake one, and its ledger is the judge.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx
from pydantic import SecretStr

from models.commands import RetryProject, SubmitProject
from models.errors import ErrorCode
from models.events import Receipt
from models.identifiers import job_id
from models.job_events import JobEvent, JobFailed, JobPostponed, JobSucceeded
from models.policy import RETRIES
from models.work import JobKind
from sceneloom.client import Reader, job_event_in
from sceneloom.clock import SystemClock
from sceneloom.demo import Demo
from sceneloom.testing.fake_provider import TEST_KEY, FakeProvider, Ledger
from sceneloom.topics import JOB_EVENTS

PRICE_USD: Final = 0.15
CALLS: Final = RETRIES[ErrorCode.PROVIDER_UNAVAILABLE].calls
"""So many calls are made for the missing scene until the policy gives up."""

_PROJECT: Final = "founding-story"
_SCENES: Final = (
    ("a blank sheet of paper on a desk at night", "We had a story to tell."),
    ("twelve small lamps in a row, all dark", "Twelve scenes, and little money."),
    ("a lighthouse on a cliff, its lamp lit", "The first picture was easy."),
    ("a small boat leaving a harbour at dawn", "The second one followed it."),
    ("waves under a wide grey sky", "Each one was paid for."),
    ("a gull above the sea", "Half of the way was done."),
    ("rain on the window of a cabin", "Then the weather turned."),
    ("dark clouds over high waves", "Clouds came up from the west."),
    ("a lighthouse whose lamp has gone out", "And the ninth lamp went dark."),
    ("a sailor who waits beside a lantern", "Others would start all over."),
    ("a calm sea in the morning", "We kept what we had."),
    ("twelve small lamps in a row, all lit", "And lit the missing one."),
)
_MISSING: Final = 9
_MISSING_PROMPT: Final = _SCENES[_MISSING - 1][0]
_CENT: Final = 0.01
_MARGIN: Final = timedelta(seconds=1)
"""A call that is this far away is surely not made before the worker is dead."""

WORKING: Final[dict[str, Any]] = {
    "name": "all is well",
    "defaults": {"cost_usd": PRICE_USD, "running": 0.3},
}
DOWN: Final[dict[str, Any]] = {
    **WORKING,
    "name": f"scene {_MISSING} is down",
    "rules": [{"name": "down", "when": {"prompt": _MISSING_PROMPT}, "then": {"error": "overloaded"}}],
}

Tell = Callable[[str], None]
"""Says one line of the story."""


class NotAsTold(Exception):
    """The story went another way than it must for its point; the message says which."""


def order() -> SubmitProject:
    """Return the order: one picture and one short narration for each scene."""
    scenes = [{"prompt": prompt, "narration": narration} for prompt, narration in _SCENES]
    request = {"title": "Twelve lamps", "aspect_ratio": "1:1", "scenes": scenes}
    return SubmitProject(project_id=_PROJECT, command_id="order", request=request)


def order_again() -> RetryProject:
    """Return the retry of the failed project."""
    return RetryProject(project_id=_PROJECT, command_id="order-again")


def paying(provider: FakeProvider) -> dict[str, Any]:
    """Return the settings of a worker that buys its pictures at *provider*, one after another."""
    return {
        "image_provider": "openai",
        "openai_key": SecretStr(TEST_KEY),
        "openai_url": f"{provider.url}/v1",
        "openai_image_usd": PRICE_USD,
        "parallel_paid": 1,
    }


@dataclass(frozen=True, slots=True)
class Killed:
    """A worker that was killed while no paid call was in flight: what it had bought, what was refused."""

    pid: int
    bought: int
    refused: int


async def break_it(demo: Demo, tell: Tell) -> Killed:
    """Kill the worker once only the missing scene waits, start another, and return when that has given up.

    Raises `NotAsTold` where the scene is given up before.
    """
    clock, pictures, killed = SystemClock(), _Pictures(), None
    async with Reader(demo.settings, JOB_EVENTS, project_id=_PROJECT) as reader:
        async for record in reader.news():
            event = job_event_in(record)
            if event is not None:
                pictures.note(event, tell)
            if pictures.given_up:
                break
            if killed is None and pictures.all_but_one and pictures.due > clock.now() + _MARGIN:
                killed = Killed(demo.kill_worker(), len(pictures.bought), pictures.refused)
                demo.start_worker()
                tell(
                    f"CRASH: the worker (process {killed.pid}) is killed with SIGKILL, and a new one starts. "
                    f"{killed.bought} pictures are bought, scene {_MISSING} waits for its call"
                )
    if killed is None:
        raise NotAsTold(f"scene {_MISSING} was given up before all others were bought: try again")
    return killed


class _Pictures:
    """How the paid pictures stand, as job-events tell it."""

    def __init__(self) -> None:
        jobs = [job_id(_PROJECT, f"scene-{n:03}", JobKind.IMAGE) for n in range(1, len(_SCENES) + 1)]
        self._missing = jobs.pop(_MISSING - 1)
        self._others = frozenset(jobs)
        self.bought: set[str] = set()
        self.refused = 0
        self.due = datetime.min.replace(tzinfo=UTC)
        self.given_up = False

    @property
    def all_but_one(self) -> bool:
        """Whether only the missing scene is without its picture."""
        return self.bought == self._others

    def note(self, event: JobEvent, tell: Tell) -> None:
        """Remember what *event* says, and tell what happens to the missing scene."""
        match event:
            case JobSucceeded(job_id=job) if job in self._others:
                self.bought.add(job)
            case JobPostponed(job_id=self._missing):
                self.refused, self.due = event.call + 1, event.due_at
                wait = (event.due_at - event.occurred_at).total_seconds()
                tell(
                    f"scene {_MISSING}, call {self.refused} of {CALLS}: overloaded, nothing is bought; "
                    f"the next one in {wait:.1f} s"
                )
            case JobFailed(job_id=self._missing):
                self.given_up = True
                tell(f"scene {_MISSING}, call {event.call + 1} of {CALLS}: overloaded; it is given up")
            case _:
                pass


async def recover(provider: FakeProvider) -> None:
    """Let *provider* work again, as one would from outside: by its control path."""
    async with httpx.AsyncClient(base_url=provider.url, trust_env=False) as client:
        (await client.post("/_scenario", json=WORKING)).raise_for_status()


@dataclass(frozen=True, slots=True)
class Audit:
    """What the provider's ledger says at the end; *faults* are the points where the receipt differs."""

    jobs: int
    usd: float
    refused: int
    faults: tuple[str, ...]


def audit(ledger: Ledger, receipt: Receipt, *, kept_usd: float) -> Audit:
    """Compare *ledger* with *receipt*, and with the *kept_usd* that were billed before the retry."""
    billed = ledger.billed()
    return Audit(
        jobs=len(billed),
        usd=ledger.billed_usd(),
        refused=len(ledger.entries()) - len(ledger.accepted()),
        faults=tuple(_faults(ledger, receipt, kept_usd)),
    )


def _faults(ledger: Ledger, receipt: Receipt, kept_usd: float) -> Iterator[str]:
    bills = Counter(entry.prompt for entry in ledger.billed())
    for number, (prompt, _) in enumerate(_SCENES, start=1):
        if bills.pop(prompt, 0) != 1:
            yield f"scene {number} is not billed exactly once"
    if bills:
        yield f"{bills.total()} jobs are billed that belong to no scene"
    if not math.isclose(ledger.billed_usd(), receipt.spent_usd, abs_tol=_CENT / 100):
        yield f"the ledger bills ${ledger.billed_usd():.2f}, the receipt says ${receipt.spent_usd:.2f}"
    if not math.isclose(kept_usd, receipt.saved_usd, abs_tol=_CENT / 100):
        yield f"${kept_usd:.2f} were billed before the retry, the receipt saved ${receipt.saved_usd:.2f}"


def from_scratch_usd(kept_usd: float) -> float:
    """Return what it would have cost to throw *kept_usd* of work away and to order all scenes again."""
    return round(kept_usd + PRICE_USD * len(_SCENES), 2)
