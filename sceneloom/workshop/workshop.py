"""The workshop: knows every supplier, and looks into the store before anything is made."""

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import timedelta

import structlog

from models.commands import Want
from models.errors import AssetMissing, BadMedia, ErrorCode, ProviderFailure
from models.job import Job
from models.policy import POLL_SCHEDULE, deadline
from models.ports import AssetStore, Reconciled, TaskReport
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
    gate: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gate", asyncio.Semaphore(self.parallel))


class Workshop:
    """Turns jobs into stored, checked outputs, through the supplier that each job has frozen in its row."""

    def __init__(
        self, *, suppliers: Sequence[Supplier], usual: Mapping[JobKind, str], assets: AssetStore
    ) -> None:
        self._suppliers = {(supplier.kind, supplier.offer.provider): supplier for supplier in suppliers}
        self._usual = usual
        self._assets = assets

    def offer_for(self, want: Want, /) -> Offer:
        """Return who makes what *want* asks for; a name that nobody has here fails with its job."""
        name = want.provider or self._usual[want.kind]
        supplier = self._suppliers.get((want.kind, name))
        if supplier is None:
            return Offer(provider=name, model="unknown")
        if _is_only_fetched(want.request):
            return supplier.offer.model_copy(update={"cost_usd": 0.0})
        match want.request:
            case ClipRequest(duration_seconds=seconds):
                cost = supplier.offer.cost_usd + seconds * supplier.usd_per_second
                return supplier.offer.model_copy(update={"cost_usd": round(cost, 6)})
            case SpeechRequest(text=text):
                cost = supplier.offer.cost_usd + len(text) * supplier.usd_per_letter
                return supplier.offer.model_copy(update={"cost_usd": round(cost, 6)})
            case _:
                return supplier.offer

    def misfits(self, want: Want, /) -> Iterable[Misfit]:
        """Return what the model that would make *want* cannot do; nothing where that is not known."""
        supplier = self._suppliers.get((want.kind, want.provider or self._usual[want.kind]))
        limits = supplier.limits if supplier else None
        return () if limits is None else misfits(limits, want.request)

    def names(self, kind: JobKind) -> frozenset[str]:
        """Return the names of all providers of *kind*."""
        return frozenset(name for known, name in self._suppliers if known is kind)

    def needs_intent(self, job: Job) -> bool:
        """Tell whether the next call for *job* must be announced, and the announcement durable, before it."""
        return self.is_task(job) or not self.repeatable(job)

    def repeatable(self, job: Job) -> bool:
        """Tell whether a call for *job* may be made again without a second bill, as far as is known here."""
        supplier = self._suppliers.get((job.kind, job.offer.provider))
        return _is_only_fetched(job.request) or (supplier is not None and supplier.repeatable)

    def is_task(self, job: Job) -> bool:
        """Tell whether the asset of *job* is made as a task that is polled."""
        supplier = self._suppliers.get((job.kind, job.offer.provider))
        return supplier is not None and isinstance(supplier.maker, TaskMaker)

    def place(self, job: Job) -> AbstractAsyncContextManager[object]:
        """Wait for one of the places of the supplier of *job*: so many calls are made at a time."""
        supplier = self._suppliers.get((job.kind, job.offer.provider))
        return supplier.gate if supplier else contextlib.nullcontext()

    def poll_schedule(self, job: Job) -> Sequence[float]:
        """Return the seconds before each poll of the task of *job*."""
        supplier = self._suppliers.get((job.kind, job.offer.provider))
        return supplier.poll_schedule if supplier else POLL_SCHEDULE

    def deadline(self, job: Job) -> timedelta:
        """Return how long the task of *job* may take in all."""
        match job.request:
            case ClipRequest(duration_seconds=seconds):
                return deadline(seconds)
            case _:
                return deadline(0.0)

    async def recall(self, job: Job) -> tuple[Output, Source] | None:
        """Return an equal output that was made before and is still whole, or None.

        One that this very job made, and could not report before its worker died, counts as made.
        """
        if not self._is_cacheable(job):
            return None
        entry = await self._assets.recall(_cache_key(job))
        if entry is None:
            return None
        try:
            output = Output.model_validate(entry["output"])
            for url in (output.url, output.captions_url, output.report_url):
                if url is not None:
                    await self._assets.verify(url)
        except (AssetMissing, BadMedia, ValueError, KeyError) as error:
            _log.warning("workshop.cache_entry_unusable", job=job.job_id, error=str(error))
            return None
        own = entry.get("job_id") == job.job_id and entry.get("attempt") == job.attempt
        return output, Source.MADE if own else Source.CACHED

    async def find(self, job: Job, *, taken: Collection[str]) -> Reconciled | None:
        """Look for the task of a submit without clear outcome; None where its provider cannot tell.

        *taken* are the task ids of other jobs. Raises `ProviderFailure` where the provider does not answer.
        """
        maker = self._supplier(job).maker
        return await maker.find(job, taken=taken) if isinstance(maker, TaskMaker) else None

    async def make(self, job: Job, *, progress: Progress) -> Output:
        """Make the asset of *job* in one call."""
        supplier = self._supplier(job)
        if not isinstance(supplier.maker, Maker):
            raise TypeError(f"{job.offer.provider} makes {job.kind} as a task")
        return await self._remembered(job, await supplier.maker.make(job, progress=progress))

    async def submit(self, job: Job) -> str:
        """Start the task of *job* and return the provider's id of it."""
        return await self._tasks(job).submit(job)

    async def poll(self, job: Job) -> TaskReport:
        """Ask how the task of *job* stands."""
        return await self._tasks(job).poll(job)

    async def collect(self, job: Job, report: TaskReport) -> Output:
        """Store and check what the finished task of *job* has made."""
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
        maker = self._supplier(job).maker
        if not isinstance(maker, TaskMaker):
            raise TypeError(f"{job.offer.provider} makes {job.kind} in one call")
        return maker

    def _supplier(self, job: Job) -> Supplier:
        supplier = self._suppliers.get((job.kind, job.offer.provider))
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
