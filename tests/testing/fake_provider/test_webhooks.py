import base64
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from sceneloom.testing.fake_provider.webhooks import FORGED_URL
from tests.testing.fake_provider.stage import TASKS, Clients, always, listening, playing


async def verify(clients: Clients, body: bytes, headers: Mapping[str, str]) -> None:
    """Check a message as fal documents it. Raises InvalidSignature."""
    key = (await clients.http.get("/.well-known/jwks.json")).json()["keys"][0]
    assert (key["kty"], key["crv"]) == ("OKP", "Ed25519")
    public = base64.urlsafe_b64decode(key["x"] + "=" * (-len(key["x"]) % 4))
    names = ("request-id", "user-id", "timestamp")
    lines = [headers[f"x-fal-webhook-{name}"] for name in names] + [sha256(body).hexdigest()]
    signature = bytes.fromhex(headers["x-fal-webhook-signature"])
    Ed25519PublicKey.from_public_bytes(public).verify(signature, "\n".join(lines).encode())


async def test_ark_calls_back_on_each_change_with_the_body_of_a_get() -> None:
    async with listening() as hook, playing(always(queued=5, running=10)) as ark:
        task_id = await ark.created(callback_url=hook.url)
        await ark.provider.advance(4)
        assert hook.got == []
        await ark.provider.advance(20)
        assert [message["status"] for message in hook.got] == ["running", "succeeded"]
        assert hook.got[1] == (await ark.get(task_id)).json()


async def test_ark_calls_back_on_failure_and_on_cancellation() -> None:
    async with listening() as hook:
        async with playing(always(running=5, outcome="failed", failure="moderation")) as ark:
            await ark.created(callback_url=hook.url)
            await ark.provider.advance(5)
        async with playing(always(queued=5, running=5)) as ark:
            task_id = await ark.created(callback_url=hook.url)
            await ark.bearer("DELETE", f"{TASKS}/{task_id}")
            await ark.provider.advance(60)
        assert [message["status"] for message in hook.got] == ["failed", "cancelled"]


async def test_fal_calls_back_once_signed_at_the_end() -> None:
    async with listening() as hook, playing(always(queued=5, running=10)) as fal:
        made = (await fal.submit(hook=hook.url)).json()
        await fal.provider.advance(15)
        [message] = hook.got
        assert (message["request_id"], message["status"]) == (made["request_id"], "OK")
        assert message["payload"] == (await fal.key("GET", made["response_url"])).json()
        await verify(fal, hook.raw[0], hook.headers[0])
        with pytest.raises(InvalidSignature):
            await verify(fal, hook.raw[0] + b" ", hook.headers[0])
        stamp = int(hook.headers[0]["x-fal-webhook-timestamp"])
        assert abs(stamp - fal.provider.clock.now().timestamp()) < 2


async def test_fal_calls_back_with_the_error() -> None:
    async with listening() as hook, playing(always(outcome="failed", failure="moderation")) as fal:
        await fal.submit(hook=hook.url)
        await fal.provider.advance(0)
        assert (hook.got[0]["status"], hook.got[0]["payload"]["detail"][0]["type"]) == (
            "ERROR",
            "content_policy_violation",
        )


@pytest.mark.parametrize(
    ("wishes", "before", "after"),
    [
        ({}, 1, 1),
        ({"delay": 30}, 0, 1),
        ({"copies": 3}, 3, 3),
        ({"copies": 2, "delay": 30}, 0, 2),
        ({"lost": True}, 0, 0),
    ],
)
async def test_a_message_can_be_late_double_or_lost(wishes: dict[str, Any], before: int, after: int) -> None:
    async with listening() as hook, playing(always(webhook=wishes)) as fal:
        await fal.submit(hook=hook.url)
        await fal.provider.advance(29)
        assert len(hook.got) == before
        await fal.provider.advance(1)
        assert len(hook.got) == after
        assert len({message["request_id"] for message in hook.got}) <= 1


@pytest.mark.parametrize(("lost", "count"), [(False, 2), (True, 1)])
async def test_a_forged_message_claims_success_before_its_time(*, lost: bool, count: int) -> None:
    forged = always(running=60, outcome="failed", webhook={"forged": True, "lost": lost})
    async with listening() as hook, playing(forged) as fal:
        await fal.submit(hook=hook.url)
        await fal.provider.advance(0)
        assert hook.got[0]["status"] == "OK"
        assert hook.got[0]["payload"]["video"]["url"] == FORGED_URL
        with pytest.raises(InvalidSignature):
            await verify(fal, hook.raw[0], hook.headers[0])
        await fal.provider.advance(60)
        assert len(hook.got) == count


async def test_a_forged_message_of_an_unsigned_family_looks_like_a_real_one() -> None:
    async with (
        listening() as hook,
        playing(always(running=60, webhook={"forged": True, "lost": True})) as ark,
    ):
        task_id = await ark.created(callback_url=hook.url)
        await ark.provider.advance(0)
        assert hook.got[0]["content"]["video_url"] == FORGED_URL
        assert await ark.status(task_id) == "running"


async def test_a_stale_message_is_well_signed_and_an_hour_old() -> None:
    async with listening() as hook, playing(always(webhook={"stale": True})) as fal:
        await fal.submit(hook=hook.url)
        await fal.provider.advance(0)
        await verify(fal, hook.raw[0], hook.headers[0])
        age = fal.provider.clock.now().timestamp() - int(hook.headers[0]["x-fal-webhook-timestamp"])
        assert age == pytest.approx(3600, abs=2)


async def test_a_message_is_sent_again_until_it_is_taken() -> None:
    async with listening() as hook, playing() as fal:
        hook.answers = [500, 302, 200]
        await fal.submit(hook=hook.url)
        await fal.provider.advance(4)
        assert len(hook.got) == 1
        await fal.provider.advance(7200)
        assert [delivery.answer for delivery in fal.provider.deliveries] == [500, 302, 200]
        assert [delivery.attempt for delivery in fal.provider.deliveries] == [1, 2, 3]


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/hook", "http://", "http://127.0.0.1:99999/"])
async def test_an_address_where_nobody_answers_is_given_up(address: str) -> None:
    async with playing() as ark:
        await ark.created(callback_url=address)
        await ark.provider.advance(3600)
        assert [delivery.answer for delivery in ark.provider.deliveries] == [None, None, None]


async def test_without_an_address_nobody_is_called() -> None:
    async with playing() as ark:
        await ark.created()
        await ark.provider.advance(60)
        assert ark.provider.deliveries == []
