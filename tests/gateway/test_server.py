"""The gateway as a server of its own, called by the fake provider over real connections."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from models.job_events import PollNow
from sceneloom.callbacks import callback_url
from sceneloom.gateway.app import create_gateway
from sceneloom.gateway.reception import Reception
from sceneloom.gateway.senders import senders
from sceneloom.gateway.server import web_server
from sceneloom.providers.ark import Ark
from sceneloom.providers.fal import Fal
from sceneloom.settings import Settings
from sceneloom.testing.fake_provider import FakeProvider
from tests.gateway.stage import SECRET
from tests.providers.paid import FAKE_KEY, Shelf, a_clip_job, direct_client, faking

ARK_MODEL = "dreamina-seedance-2-0-260128"
FAL_MODEL = "fal-ai/bytedance/seedance/v2/text-to-video"


class House:
    """A fake provider, the gateway that it calls, and what that heard."""

    def __init__(self, provider: FakeProvider, submit: Callable[[str], Awaitable[str]]) -> None:
        self.provider = provider
        self.submit = submit
        self.hints: list[PollNow] = []

    async def publish(self, hint: PollNow) -> None:
        self.hints.append(hint)

    def answers(self) -> list[int | None]:
        return [delivery.answer for delivery in self.provider.deliveries]

    def tasks(self) -> list[str | None]:
        return [hint.provider_task_id for hint in self.hints]


async def always_there() -> bool:
    return True


@asynccontextmanager
async def running(webhook: dict[str, Any], **then: Any) -> AsyncIterator[House]:
    scenario = {"defaults": {"running": 10, "webhook": webhook, **then}}
    async with faking(scenario) as (provider, client):
        listener = socket.create_server(("127.0.0.1", 0))
        base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"

        async def submit(name: str) -> str:
            where = partial(callback_url, base_url, SECRET, name)
            facts: dict[str, Any] = {
                "client": client,
                "key": FAKE_KEY,
                "clock": provider.clock,
                "assets": Shelf(),
            }
            if name == "ark":
                ark = Ark(**facts, cost_usd=0.1, base_url=f"{provider.url}/api/v3", callback=where)
                return await ark.submit(a_clip_job(ARK_MODEL))
            fal = Fal(**facts, cost_usd=0.1, base_url=provider.url, callback=where)
            return await fal.submit(a_clip_job(FAL_MODEL))

        house = House(provider, submit)
        settings = Settings(
            _env_file=None, webhook_secret=SECRET, fal_jwks_url=f"{provider.url}/.well-known/jwks.json"
        )
        async with direct_client() as keys:
            reception = Reception(
                senders=senders(settings, client=keys, clock=provider.clock),
                secret=SECRET,
                publish=house.publish,
                clock=provider.clock,
            )
            server = web_server(create_gateway(reception, broker_answers=always_there))
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                yield house
            finally:
                server.should_exit = True
                await serving
                listener.close()


@pytest.mark.parametrize("name", ["ark", "fal"])
async def test_the_news_of_a_task_arrives_as_a_hint_that_names_it(name: str) -> None:
    async with running({}) as house:
        task_id = await house.submit(name)
        await house.provider.advance(10)

        assert set(house.answers()) == {200}
        assert house.tasks()[-1] == task_id.rpartition("/")[2]
        assert {hint.job_id for hint in house.hints} == {"p1/scene-001/clip"}


@pytest.mark.parametrize(
    ("webhook", "answers", "hints"),
    [
        ({"copies": 3}, [200, 200, 200], 1),
        ({"delay": 30}, [200], 1),
        ({"lost": True}, [], 0),
        ({"forged": True, "lost": True}, [401], 0),
        ({"stale": True}, [401], 0),
    ],
)
async def test_fal_is_heard_once_in_its_own_voice_and_not_too_late(
    webhook: dict[str, Any], answers: list[int], hints: int
) -> None:
    async with running(webhook) as house:
        await house.submit("fal")
        await house.provider.advance(10)
        first = list(house.answers())
        await house.provider.advance(30)
        first = first or house.answers()

        assert first == answers
        assert len(house.hints) == hints


async def test_a_forger_who_knows_the_address_of_an_unsigned_task_gets_a_hint_and_no_more() -> None:
    async with running({"forged": True, "lost": True}) as house:
        task_id = await house.submit("ark")
        await house.provider.advance(0)

        assert house.tasks() == [task_id]  # a name, which is asked for at the provider: no output, no verdict
