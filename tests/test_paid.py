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
from tests.fakes import START, MovedClock
from tests.providers.paid import a_clip_job, mocked


def suppliers(
    client: httpx.AsyncClient, *, ark: dict[str, Any] | None = None, **chosen: Any
) -> list[Supplier]:
    account = Account(key=SecretStr("fake-key"), **(ark or {}))
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
    body, deadline = await ordered(ark={"service_tier": "flex"})

    assert (body["service_tier"], body["execution_expires_after"]) == ("flex", 172_800)
    assert deadline == timedelta(hours=48)
    assert body["watermark"] is False


async def test_paid_calls_keep_to_the_rate_of_the_settings() -> None:
    async with mocked(lambda _: httpx.Response(500)) as client:
        (limited,) = suppliers(client, paid_per_minute=7)
        (unlimited,) = suppliers(client, paid_per_minute=0)

    assert (limited.per_minute, unlimited.per_minute) == (7, 0)


async def test_a_job_goes_on_where_and_as_it_began_whatever_the_settings_say_by_now() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={"id": "cgt-1", "status": "running", "items": []})

    old = {
        "model": "seedance-1",
        "url": "https://old.example/api/v3",
        "resolution": "720p",
        "usd_per_second": 0.1,
    }
    new = {
        "model": "seedance-9",
        "url": "https://new.example/api/v3",
        "resolution": "1080p",
        "usd_per_second": 0.1,
    }
    async with mocked(answer) as client:
        (before,), (after,) = suppliers(client, ark=old), suppliers(client, ark=new)
        workshop = Workshop(suppliers=[after], usual={JobKind.CLIP: "ark"}, assets=open_assets("memory://"))
        job = a_clip_job("seedance-1")
        job = job.model_copy(
            update={"offer": before.offer, "provider_task_id": "cgt-1", "intended_at": START}
        )

        await workshop.submit(job)
        await workshop.poll(job)
        await workshop.find(job, taken=())

    assert {request.url.host for request in asked} == {"old.example"}
    body = orjson.loads(asked[0].content)
    assert (body["model"], body["resolution"]) == ("seedance-1", "720p")
    assert job.fingerprint != job.model_copy(update={"offer": after.offer}).fingerprint
