"""A worker of the real system whose free providers are quick, and write down every asset they make.

python -m tests.e2e.house      settings by SCENELOOM_*, and:
HOUSE_LEDGER   a file that gets a line `JOB_ID ATTEMPT` for each asset, before the asset is reported
HOUSE_SECONDS  how long an asset takes
HOUSE_FAILS    part of a prompt whose picture is refused
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from models.errors import ErrorCode, ProviderFailure
from models.job import Job
from models.ports import AssetStore, Clock
from models.work import ImageRequest, Offer, Output
from sceneloom.app import create_app, run
from sceneloom.assets.store import open_assets
from sceneloom.clock import SystemClock
from sceneloom.outside import (
    Outside,
    create_admission,
    credit_ledger,
    fallback_providers,
    usual_providers,
)
from sceneloom.paid import paid_suppliers
from sceneloom.providers.wire import open_client
from sceneloom.settings import Settings
from sceneloom.workshop.supplier import Progress
from sceneloom.workshop.workshop import Supplier, Workshop


class Ledger:
    """What was made, written before anybody hears of it; whole lines only, from many processes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, job: Job) -> None:
        with self._path.open("a") as file:
            file.write(f"{job.job_id} {job.attempt}\n")

    def lines(self) -> list[str]:
        return self._path.read_text().splitlines() if self._path.exists() else []


class HouseMaker:
    """Makes a few bytes that say which job they are of."""

    def __init__(self, assets: AssetStore, ledger: Ledger, seconds: float, fails: str) -> None:
        self._assets, self._ledger, self._seconds, self._fails = assets, ledger, seconds, fails

    async def make(self, job: Job, *, progress: Progress) -> Output:
        await asyncio.sleep(self._seconds)
        if self._fails and isinstance(job.request, ImageRequest) and self._fails in job.request.prompt:
            raise ProviderFailure(ErrorCode.MODERATION_REJECTED, "the house does not draw this")
        self._ledger.write(job)
        url = await self._assets.put(f"{job.job_id} {job.attempt}".encode(), media_type="image/png")
        return Output(url=url, media_type="image/png", seconds=1.0)


def outside(settings: Settings, *, clock: Clock | None = None, polls: Sequence[float] = ()) -> Outside:
    """Make the outside of a quick house; *polls* stand for the schedule of every paid provider."""
    clock = clock or SystemClock()
    assets = open_assets(settings.asset_location)
    maker = HouseMaker(
        assets,
        Ledger(Path(os.environ["HOUSE_LEDGER"])),
        float(os.environ.get("HOUSE_SECONDS", "0")),
        os.environ.get("HOUSE_FAILS", ""),
    )
    usual = usual_providers(settings)
    suppliers = [
        Supplier(kind=kind, offer=Offer(provider=name, model="house"), maker=maker, repeatable=True)
        for kind, name in usual.items()
    ]
    client = open_client()
    paid = [
        replace(supplier, poll_schedule=polls or supplier.poll_schedule)
        for supplier in paid_suppliers(settings, assets, client=client, clock=clock)
    ]
    bought = {(supplier.kind, supplier.offer.provider) for supplier in paid}
    free = [s for s in suppliers if (s.kind, s.offer.provider) not in bought]
    workshop = Workshop(
        suppliers=[*free, *paid], usual=usual, fallbacks=fallback_providers(settings), assets=assets
    )
    admission = create_admission(workshop, assets, settings, clock)
    return Outside(
        clock=clock,
        admission=admission,
        workshop=workshop,
        ledger=credit_ledger(settings, client, clock),
        closers=(client.aclose,),
    )


if __name__ == "__main__":
    chosen = Settings()
    sys.exit(run(create_app(chosen, outside(chosen)), chosen))
