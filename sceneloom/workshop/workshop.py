"""The workshop: knows every supplier, and looks into the store before anything is made."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import cast

import structlog

from models.commands import Want
from models.errors import AssetMissing, BadMedia, ErrorCode, ProviderFailure
from models.job import Job
from models.policy import POLL_SCHEDULE, deadline
from models.ports import AssetStore, Clock, Reconciled, TaskReport
from models.work import (
    ClipRequest,
    ImageRequest,
    JobKind,
    JobRequest,
    Offer,
    Output,
    Source,
    SpeechRequest,
)
from sceneloom.providers.catalogue import Misfit, Model, misfits
from sceneloom.workshop.pace import Outcome, Pace
from sceneloom.workshop.single_flight import LOOK_SECONDS, SingleFlight
from sceneloom.workshop.supplier import Maker, Progress, TaskMaker

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Supplier:
    """Who makes one kind of asset under one name.

    `repeatable` says that a call may be made again without a second bill, as with everything local.
    """

    kind: JobKind
    offer: Offer
    maker: Maker | TaskMaker
    repeatable: bool
    parallel: int = 2
    poll_schedule: Sequence[float] = POLL_SCHEDULE
    usd_per_second: float = 0.0
    """The price of a second of clip, where a call has no fixed price."""
    usd_per_letter: float = 0.0
    """The same of a letter of narration."""
    limits: Model | None = None
    """What the model can do, where the catalogue says."""
    per_minute: int = 0
    """How many calls each worker makes in a minute; 0 is no limit."""
    deadline_seconds: float = 0.0
    """How long a task may take at least, where the provider's service tier is slower than our rule."""
    rebuild: Callable[[Offer], Maker | TaskMaker] | None = None
    """Makes the maker for an offer of this account as it was set up when a job began."""
    tasks: TaskMaker | None = field(init=False)
    """The maker, where it makes tasks: so that each poll need not look."""
    pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        pace = Pace(
            provider=self.offer.provider,
            parallel=self.parallel,
            per_minute=self.per_minute,
            heeds=not self.repeatable or not self.is_local,
        )
        object.__setattr__(self, "pace", pace)
        tasks = self.maker if isinstance(self.maker, TaskMaker) else None
        object.__setattr__(self, "tasks", tasks)

    @property
    def is_local(self) -> bool:
        """Whether the assets are made on this machine, by what has no entry in the catalogue."""
        return self.limits is None

    def maker_for(self, offer: Offer) -> Maker | TaskMaker:
        """Return the maker for what a job has frozen in its row, whatever the settings say by now."""
        if self.rebuild is None or not offer.endpoint or offer.is_as(self.offer):
            return self.maker
        return self.rebuild(offer)


class Workshop:
    """Turns jobs into stored, checked outputs, through the supplier that each job has frozen in its row."""

    def __init__(
        self,
        *,
        suppliers: Sequence[Supplier],
        usual: Mapping[JobKind, str],
        assets: AssetStore,
        fallbacks: Mapping[JobKind, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        self._suppliers = {(supplier.kind, supplier.offer.provider): supplier for supplier in suppliers}
        self._usual = usual
        self._fallbacks = fallbacks
        self._assets = assets
        self._flights = SingleFlight(assets)

    def offer_for(self, want: Want, /) -> Offer:
        """Return who makes what *want* asks for; a name that nobody has here fails with its job."""
        return self._offer(want.provider or self._usual[want.kind], want.request)

    def fallback_for(self, job: Job, /) -> Offer | None:
        """Return who may make the asset of *job*, whose provider cannot be had, or None where nobody can."""
        for name in self._next_in_line(job):
            is_here = (job.kind, name) in self._suppliers
            if is_here and not any(self.misfits(Want(request=job.request, provider=name))):
                return self._offer(name, job.request)
        return None

    def _next_in_line(self, job: Job) -> Sequence[str]:
        """Return the fallbacks that may still be asked about *job*, never one that was."""
        line, name = self._fallbacks.get(job.kind, ()), job.offer.provider
        asked = {name, job.stands_in_for}
        if job.stands_in_for is not None:
            # One that is not in the line any more was there when an older setting chose it.
            line = line[line.index(name) + 1 :] if name in line else ()
        return [each for each in line if each not in asked]

    def _offer(self, name: str, request: JobRequest) -> Offer:
        supplier = self._suppliers.get((request.kind, name))
        if supplier is None:
            return Offer(provider=name, model="unknown")
        if _is_only_fetched(request):
            return supplier.offer.model_copy(update={"cost_usd": 0.0})
        cost = supplier.offer.cost_usd
        match request:
            case ClipRequest(duration_seconds=seconds):
                cost += seconds * supplier.usd_per_second
            case SpeechRequest(text=text):
                cost += len(text) * supplier.usd_per_letter
            case _:
                pass
        as_task = supplier.tasks is not None
        return supplier.offer.model_copy(update={"cost_usd": round(cost, 6), "as_task": as_task})

    def misfits(self, want: Want, /) -> Iterable[Misfit]:
        """Return what the model that would make *want* cannot do; nothing where that is not known."""
        supplier = self._suppliers.get((want.kind, want.provider or self._usual[want.kind]))
        limits = supplier.limits if supplier else None
        return () if limits is None else misfits(limits, want.request)

    def is_local(self, want: Want, /) -> bool:
        """Tell whether *want* is made on this machine; what nobody here makes counts as if it were."""
        supplier = self._suppliers.get((want.kind, want.provider or self._usual[want.kind]))
        return supplier is None or supplier.is_local

    def names(self, kind: JobKind) -> frozenset[str]:
        """Return the names of all providers of *kind*."""
        return frozenset(name for known, name in self._suppliers if known is kind)

    @property
    def announced(self) -> frozenset[tuple[JobKind, str]]:
        """The kinds, with their providers, whose calls must be announced."""
        return frozenset(place for place, by in self._suppliers.items() if by.tasks or not by.repeatable)

    def needs_intent(self, job: Job) -> bool:
        """Tell whether the next call for *job* must be announced, and the announcement durable, before it."""
        return self.is_task(job) or not self.repeatable(job)

    def repeatable(self, job: Job) -> bool:
        """Tell whether a call for *job* may be made again without a second bill, as far as is known here."""
        supplier = self._known(job)
        return _is_only_fetched(job.request) or (supplier is not None and supplier.repeatable)

    def is_task(self, job: Job) -> bool:
        """Tell whether the asset of *job* is made as a task that is polled."""
        supplier = self._known(job)
        return supplier is not None and supplier.tasks is not None and not _is_only_fetched(job.request)

    def place(self, job: Job) -> AbstractAsyncContextManager[object]:
        """Wait for one of the places of the supplier of *job*: so many calls are made at a time."""
        supplier = self._known(job)
        return supplier.pace.gate if supplier else contextlib.nullcontext()

    def look(self, job: Job) -> AbstractAsyncContextManager[object]:
        """Wait until *job* may look into the store: those before it come first."""
        supplier = self._known(job)
        return supplier.pace.looks if supplier else contextlib.nullcontext()

    async def waits_until(self, job: Job, clock: Clock) -> datetime | None:
        """Return when to look at *job* again, None where it may take a place and wait for its turn.

        It waits while its provider needs a rest, and while an equal job is being bought. Raises
        `ProviderFailure` where that rest is too long, and what the asset store raises where it is away.
        """
        supplier, now = self._known(job), clock.now()
        if supplier is None:
            return None  # the call says so at once
        if (until := supplier.pace.wait_until(now)) is not None:
            return until
        if self.is_shared(job):
            if not await self._flights.claim(job, now, needs=self.deadline(job)):
                return now + timedelta(seconds=LOOK_SECONDS)
            if await self.recall(job) is not None:
                return now  # an equal job was finished after this one had looked, and before it could claim
        return None

    async def turn(self, job: Job, clock: Clock) -> datetime | None:
        """Return None where a call for *job* begins now, else when to ask again. Raises as `waits_until`."""
        supplier = self._known(job)
        return await supplier.pace.turn(clock, job.job_id) if supplier else None

    def learned(self, job: Job, outcome: Outcome, now: datetime) -> None:
        """Hear how a call for *job* ended."""
        supplier = self._known(job)
        if supplier is not None and not _is_only_fetched(job.request):
            supplier.pace.learned(outcome, now, job.job_id)

    def not_called(self, job: Job) -> None:
        """Hear that the call for *job* whose turn it was is not made."""
        supplier = self._known(job)
        if supplier is not None:
            supplier.pace.not_called(job.job_id)

    async def let_go(self, job: Job) -> None:
        """Let equal jobs be bought, as this attempt at *job*, which is shared, is over."""
        await self._flights.release(job)

    def is_shared(self, job: Job) -> bool:
        """Tell whether *job* waits while an equal one is bought: what costs nothing may be made twice."""
        return job.use_cache and not self.repeatable(job) and self._is_cacheable(job)

    def poll_schedule(self, job: Job) -> Sequence[float]:
        """Return the seconds before each poll of the task of *job*."""
        supplier = self._known(job)
        return supplier.poll_schedule if supplier else POLL_SCHEDULE

    def deadline(self, job: Job) -> timedelta:
        """Return how long the task of *job* may take in all."""
        supplier = self._known(job)
        least = timedelta(seconds=supplier.deadline_seconds if supplier else 0.0)
        match job.request:
            case ClipRequest(duration_seconds=seconds):
                return max(least, deadline(seconds))
            case _:
                return max(least, deadline(0.0))

    async def recall(self, job: Job) -> tuple[Output, Source] | None:
        """Return an equal output that was made before and is still whole, or None.

        One that this very job made, and could not report before its worker died, counts as made; a job that
        does not want what was made before takes only that.
        """
        if not self._is_cacheable(job):
            return None
        entry = await self._assets.recall(_cache_key(job))
        if entry is None:
            return None
        own = entry.get("job_id") == job.job_id and entry.get("attempt") == job.attempt
        if not (own or job.use_cache):
            return None
        try:
            output = Output.model_validate(entry["output"])
            for url in (output.url, output.captions_url, output.report_url):
                if url is not None:
                    await self._assets.verify(url)
        except (AssetMissing, BadMedia, ValueError, KeyError) as error:
            _log.warning("workshop.cache_entry_unusable", job=job.job_id, error=str(error))
            return None
        return output, Source.MADE if own else Source.CACHED

    async def find(self, job: Job, *, taken: Collection[str]) -> Reconciled | None:
        """Look for the task of a submit without clear outcome; None where its provider cannot tell.

        *taken* are the task ids of other jobs. Raises `ProviderFailure` where the provider does not answer.
        """
        return await self._tasks(job).find(job, taken=taken) if self.is_task(job) else None

    async def confirm(self, job: Job, named: str) -> str | None:
        """Return the id of the task of *job* that a webhook calls *named*, once its provider knows of it.

        None where the provider sends no webhooks. Raises `ProviderFailure` where it knows of no such task.
        """
        return await self._tasks(job).confirm(job, named) if self.is_task(job) else None

    async def make(self, job: Job, *, progress: Progress) -> Output:
        """Make the asset of *job* in one call."""
        maker = self._supplier(job).maker_for(job.offer)
        if not isinstance(maker, Maker):
            raise TypeError(f"{job.offer.provider} makes {job.kind} as a task")
        return await self._remembered(job, await maker.make(job, progress=progress))

    async def submit(self, job: Job) -> str:
        """Start the task of *job* and return the provider's id of it."""
        return await self._tasks(job).submit(job)

    async def take_back(self, job: Job) -> bool:
        """Have the provider stop the task of *job*, and tell whether it surely is not billed."""
        return await self._tasks(job).take_back(job) if self.is_task(job) else False

    async def poll(self, job: Job) -> TaskReport:
        """Ask how the task of *job* stands."""
        async with self._supplier(job).pace.polls:
            return await self._tasks(job).poll(job)

    async def collect(self, job: Job, report: TaskReport) -> Output:
        """Store and check what the finished task of *job* has made."""
        async with self._supplier(job).pace.collections:
            return await self._remembered(job, await self._tasks(job).collect(job, report))

    async def _remembered(self, job: Job, output: Output) -> Output:
        if self._is_cacheable(job):
            entry = {
                "output": output.model_dump(mode="json"),
                "job_id": job.job_id,
                "attempt": job.attempt,
            }
            try:
                await self._assets.remember(_cache_key(job), entry)
            except Exception as error:  # noqa: BLE001 -- the output is there; only the next equal request pays again
                _log.warning("workshop.not_remembered", job=job.job_id, error=repr(error))
        return output

    def _is_cacheable(self, job: Job) -> bool:
        """Tell whether equal requests have equal outputs: a picture that somebody else keeps may change."""
        match job.request:
            case ImageRequest(picture_url=str(url)) | ClipRequest(first_frame_url=str(url)):
                return self._assets.owns(url)
            case _:
                return True

    def _tasks(self, job: Job) -> TaskMaker:
        supplier = self._supplier(job)
        if supplier.tasks is None:
            raise TypeError(f"{job.offer.provider} makes {job.kind} in one call")
        maker = supplier.maker_for(job.offer)
        return supplier.tasks if maker is supplier.maker else cast("TaskMaker", maker)

    def _known(self, job: Job) -> Supplier | None:
        return self._suppliers.get((job.kind, job.offer.provider))

    def _supplier(self, job: Job) -> Supplier:
        supplier = self._known(job)
        if supplier is None:
            raise ProviderFailure(
                ErrorCode.PROVIDER_AUTH, f"the {job.kind} provider {job.offer.provider} is not set up here"
            )
        return supplier


def _cache_key(job: Job) -> str:
    return f"made/{job.fingerprint[:2]}/{job.fingerprint}"


def _is_only_fetched(request: JobRequest) -> bool:
    """Tell whether *request* is for the user's own picture, which no provider makes."""
    return isinstance(request, ImageRequest) and request.picture_url is not None
