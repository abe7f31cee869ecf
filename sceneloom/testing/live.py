"""Asks a real provider for one asset of each kind that it makes: `make live PROVIDER=name`.

It goes the way of a worker. It costs money, so it begins only within a limit, and orders nothing twice.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final, cast
from uuid import uuid4

from pydantic import ValidationError

from models.commands import Want
from models.errors import OutcomeUnknown, ProviderFailure
from models.job import Job
from models.policy import deadline
from models.ports import AssetStore, TaskReport
from models.shapes import AspectRatio
from models.work import ClipRequest, ImageRequest, JobKind, JobRequest, Output, SpeechRequest
from sceneloom.assets.errors import DownloadFailed, DownloadRefused
from sceneloom.assets.store import open_assets
from sceneloom.choices import why_unknown
from sceneloom.clock import SystemClock
from sceneloom.deals import ProviderMisset
from sceneloom.paid import paid_suppliers
from sceneloom.providers.services import services
from sceneloom.providers.wire import open_client
from sceneloom.settings import Settings
from sceneloom.workshop.supplier import Maker, TaskMaker
from sceneloom.workshop.workshop import Supplier, Workshop

USUAL_LIMIT: Final = 0.25
"""US dollars that one run may cost, where the caller does not say."""

_WORDS: Final = "The fox sleeps."
_SECONDS: Final = 5.0
_FAILED: Final = 1
_INVALID: Final = 2

Say = Callable[[str], object]


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 where all was made, 1 where something was not, 2 where nothing could be asked for."""
    parser = argparse.ArgumentParser(prog="python -m sceneloom.testing.live", description=__doc__)
    parser.add_argument("provider", help="an account, by its name in SCENELOOM_NAME_KEY")
    parser.add_argument(
        "--max-usd",
        type=float,
        default=USUAL_LIMIT,
        help="ask for nothing if all would cost more (%(default)s)",
    )
    parser.add_argument("--out", default="out/live", help="the folder for what is made (%(default)s)")
    chosen = parser.parse_args(arguments)
    try:
        settings = Settings()
    except ValidationError as error:
        sys.stderr.write(f"{error}\n")
        return _INVALID
    return asyncio.run(
        ask(settings, chosen.provider, max_usd=chosen.max_usd, assets=open_assets(chosen.out), say=_say)
    )


async def ask(settings: Settings, name: str, *, max_usd: float, assets: AssetStore, say: Say) -> int:
    """Ask the account *name* for one asset of each kind, for *max_usd* in all; return an exit code."""
    async with open_client() as client:
        try:
            alone = _only(settings, name)
            suppliers = list(paid_suppliers(alone, assets, client=client, clock=SystemClock()))
        except ProviderMisset as misset:
            say(str(misset))
            return _INVALID
        jobs = [(supplier, job) for supplier in suppliers for job in _jobs(supplier, assets, say)]
        price = round(sum(job.offer.cost_usd for _, job in jobs), 6)
        if not jobs:
            say(f"{name} has nothing that can be asked for")
            return _INVALID
        if price > max_usd:
            say(f"this would cost ${price:.4f}, and the limit is ${max_usd:.4f}: raise it with --max-usd")
            return _INVALID
        made = [await _made(supplier, job, say) for supplier, job in jobs]
    return 0 if all(made) else _FAILED


def _only(settings: Settings, name: str) -> Settings:
    """Return *settings* with one account. Raises `ProviderMisset` where it is not there."""
    account = settings.accounts.get(name)
    service = services().get(account.service or name if account else name)
    needs_key = service is None or service.entry.needs_key
    if account is None or (needs_key and not account.key.get_secret_value()):
        kind = next(iter(service.adapters)) if service else JobKind.CLIP
        today = SystemClock().now().date()
        raise ProviderMisset(why_unknown(settings, name, kind, today, there=settings.accounts))
    ear = name if settings.transcription_provider == name else ""
    return settings.model_copy(update={"accounts": {name: account}, "transcription_provider": ear})


def _jobs(supplier: Supplier, assets: AssetStore, say: Say) -> Iterator[Job]:
    request = _request(supplier)
    want = Want(request=request, provider=supplier.offer.provider)
    workshop = Workshop(suppliers=[supplier], usual={}, assets=assets)
    for misfit in workshop.misfits(want):
        say(f"{supplier.kind}: cannot be tried here: {misfit.text}")
        return
    yield Job(
        project_id=f"live-{uuid4().hex[:12]}",
        scene_id="scene-001",
        user_id="live",
        offer=workshop.offer_for(want),
        request=request,
        created_at=SystemClock().now(),
    )


def _request(supplier: Supplier) -> JobRequest:
    """Return the least that the supplier makes."""
    limits = supplier.limits
    match supplier.kind:
        case JobKind.IMAGE:
            size = AspectRatio.PORTRAIT.size
            return ImageRequest(prompt="a fox in the snow", width=size.width, height=size.height)
        case JobKind.SPEECH:
            return SpeechRequest(text=_WORDS, language="en")
        case _:
            ratios = limits.ratios if limits else ()
            ratio = next((each for each in AspectRatio if each in ratios), AspectRatio.PORTRAIT)
            seconds = float(min(limits.seconds)) if limits and limits.seconds else _SECONDS
            return ClipRequest(prompt="a fox in the snow", aspect_ratio=ratio, duration_seconds=seconds)


async def _made(supplier: Supplier, job: Job, say: Say) -> bool:
    say(f"{job.kind} by {job.offer.model} for ${job.offer.cost_usd:.4f} …")
    try:
        output = await _output(supplier, job)
    except OutcomeUnknown as unknown:
        say(f"  nobody knows whether it was accepted, so look at the provider's own list: {unknown}")
        return False
    except TimeoutError:
        say("  the task is not over yet: it may still be billed, and is not asked for any more")
        return False
    except (ProviderFailure, DownloadFailed, DownloadRefused) as failure:
        say(f"  failed: {failure}")
        return False
    length = f", {output.seconds:.1f} s" if output.seconds else ""
    words = f", words in {output.captions_url}" if output.captions_url else ""
    say(f"  {output.media_type}{length}: {output.url}{words}")
    return True


async def _output(supplier: Supplier, job: Job) -> Output:
    maker = supplier.tasks
    if maker is None:
        return await cast("Maker", supplier.maker).make(job, progress=lambda _: None)
    task_id = await maker.submit(job)
    running = job.model_copy(update={"provider_task_id": task_id})
    most = max(supplier.deadline_seconds, deadline(_SECONDS).total_seconds())
    async with asyncio.timeout(most):
        report = await _done(maker, running, supplier.poll_schedule)
    if report.error_code is not None:
        raise ProviderFailure(report.error_code, report.detail)
    return await maker.collect(running, report)


async def _done(maker: TaskMaker, job: Job, schedule: Sequence[float]) -> TaskReport:
    """Poll until the task is over; a poll that fails says nothing about it."""
    number = 0
    while True:
        await asyncio.sleep(schedule[min(number, len(schedule) - 1)])
        number += 1
        try:
            report = await maker.poll(job)
        except ProviderFailure as failure:
            _say(f"  not told: {failure}")
            continue
        if report.done:
            return report


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
