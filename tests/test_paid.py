"""The suppliers that cost money, as the settings make them."""

from datetime import timedelta
from typing import Any

import httpx
import orjson
from pydantic import SecretStr

from models.work import JobKind
from sceneloom.accounts import Account
from sceneloom.assets.store import open_assets
from sceneloom.paid import paid_suppliers
from sceneloom.settings import Settings
from sceneloom.workshop.workshop import Supplier, Workshop
from tests.fakes import MovedClock
from tests.providers.paid import a_clip_job, mocked


def suppliers(client: httpx.AsyncClient, **chosen: Any) -> list[Supplier]:
    account = Account(key=SecretStr("fake-key"), service_tier=chosen.pop("service_tier", ""))
    settings = Settings(_env_file=None, accounts={"ark": account}, **chosen)
    return list(paid_suppliers(settings, open_assets("memory://"), client=client, clock=MovedClock()))


async def ordered(**chosen: Any) -> tuple[dict[str, Any], timedelta]:
    """Order a clip of four seconds at Ark; return the body that was sent, and how long its task may take."""
    bodies: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(orjson.loads(request.content))
        return httpx.Response(200, json={"id": "cgt-1"})

    async with mocked(answer) as client:
        (supplier,) = suppliers(client, **chosen)
        assets = open_assets("memory://")
        workshop = Workshop(suppliers=[supplier], usual={JobKind.CLIP: "ark"}, assets=assets)
        job = a_clip_job("seedance-1")
        job = job.model_copy(update={"offer": job.offer.model_copy(update={"provider": "ark"})})
        assert await workshop.submit(job) == "cgt-1"
    (body,) = bodies
    return body, workshop.deadline(job)


async def test_the_usual_tier_of_ark_says_nothing_of_itself() -> None:
    body, deadline = await ordered()

    assert "service_tier" not in body
    assert deadline == timedelta(minutes=10)


async def test_the_flex_tier_of_ark_is_asked_for_and_has_its_two_days() -> None:
    body, deadline = await ordered(service_tier="flex")

    assert (body["service_tier"], body["execution_expires_after"]) == ("flex", 172_800)
    assert deadline == timedelta(hours=48)
    assert body["watermark"] is False


async def test_paid_calls_keep_to_the_rate_of_the_settings() -> None:
    async with mocked(lambda _: httpx.Response(500)) as client:
        (limited,) = suppliers(client, paid_per_minute=7)
        (unlimited,) = suppliers(client, paid_per_minute=0)

    assert (limited.per_minute, unlimited.per_minute) == (7, 0)
