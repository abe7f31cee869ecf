"""What the settings make of the paid suppliers."""

from typing import Any

import httpx
import pytest

from models.policy import POLL_SCHEDULE, RARE_POLLS
from sceneloom.assets.store import open_assets
from sceneloom.paid import paid_suppliers
from sceneloom.settings import Settings
from sceneloom.workshop.workshop import Supplier
from tests.fakes import MovedClock
from tests.providers.paid import a_clip_job

SECRET = "0123456789abcdef0123456789abcdef"
ACCOUNTS = {
    "ark": {"key": "k"},
    "ark2": {"key": "k", "service": "ark"},
    "fal": {"key": "k", "model": "fal-ai/one/text-to-video", "usd_per_second": "0.1"},
    "openai": {"key": "k"},
    "replicate": {"key": "k", "model": "acme/clips", "usd_per_second": "0.1"},
    "kling": {"key": "k"},
}
ANSWER = {"id": "cgt-1", "request_id": "r-1", "code": 0, "data": {"task_id": "t-1"}}


async def suppliers(sent: list[httpx.Request], **settings: Any) -> dict[str, Supplier]:
    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json=ANSWER)

    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    chosen = Settings(_env_file=None, **{"accounts": ACCOUNTS, **settings})
    found = paid_suppliers(chosen, open_assets("memory://"), client=client, clock=MovedClock())
    return {supplier.offer.provider: supplier for supplier in found}


async def said_by(supplier: Supplier, sent: list[httpx.Request]) -> str:
    await supplier.maker.submit(a_clip_job(supplier.offer.model))  # type: ignore[union-attr]
    request = sent.pop()
    return str(request.url.params.get("fal_webhook", "")) + request.content.decode()


@pytest.mark.parametrize("name", ["ark", "fal"])
async def test_with_webhooks_a_provider_gets_an_address_and_is_asked_rarely(name: str) -> None:
    sent: list[httpx.Request] = []
    known = await suppliers(sent, webhook_url="https://us.example", webhook_secret=SECRET)

    assert known[name].poll_schedule == RARE_POLLS
    assert f"https://us.example/webhooks/{name}/p1/scene-001/clip/1/0/" in await said_by(known[name], sent)


async def test_a_second_account_is_called_back_as_its_service_is() -> None:
    sent: list[httpx.Request] = []
    known = await suppliers(sent, webhook_url="https://us.example", webhook_secret=SECRET)

    assert "https://us.example/webhooks/ark/p1/" in await said_by(known["ark2"], sent)


async def test_what_the_gateway_could_not_prove_gets_no_address() -> None:
    sent: list[httpx.Request] = []
    with_webhooks = {"webhook_url": "https://us.example", "webhook_secret": SECRET}
    known = await suppliers(sent, **with_webhooks)
    for name in ("replicate", "kling"):
        assert known[name].poll_schedule == POLL_SCHEDULE
        assert "webhooks/" not in await said_by(known[name], sent)

    known = await suppliers(sent, **with_webhooks, standard_webhook_secret="whsec_abcd")

    assert known["replicate"].poll_schedule == RARE_POLLS
    assert "https://us.example/webhooks/standard/p1/" in await said_by(known["replicate"], sent)


@pytest.mark.parametrize("name", ["ark", "fal"])
@pytest.mark.parametrize("secret", ["", SECRET])
async def test_without_an_address_of_ours_a_provider_gets_none_and_is_asked_often(
    name: str, secret: str
) -> None:
    sent: list[httpx.Request] = []
    known = await suppliers(sent, webhook_secret=secret)

    assert known[name].poll_schedule == POLL_SCHEDULE
    assert "webhooks" not in await said_by(known[name], sent)
