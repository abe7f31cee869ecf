"""fal's signature, against the signer of the fake provider, and the keys that fal publishes."""

import httpx
import pytest

from sceneloom.testing.fake_provider.signing import Signer
from tests.gateway.stage import Door, a_call, knock

BODY = b'{"request_id": "r-1", "gateway_request_id": "r-2", "status": "OK"}'
CALL = a_call("fal")


async def answer_to(door: Door, headers: dict[str, str], body: bytes = BODY) -> httpx.Response:
    async with door.open() as client:
        return await knock(client, CALL, body, headers)


@pytest.mark.parametrize("offset", [-299, 0, 299])
async def test_a_message_of_fal_is_taken_and_names_the_request_of_the_queue(offset: float) -> None:
    door = Door()
    assert (await answer_to(door, door.fal_headers(BODY, offset=offset))).status_code == 200
    assert [hint.provider_task_id for hint in door.hints] == ["r-1"]


@pytest.mark.parametrize("offset", [-301, 301, -3600])
async def test_one_that_is_stale_or_from_the_future_is_refused(offset: float) -> None:
    door = Door()
    answer = await answer_to(door, door.fal_headers(BODY, offset=offset))
    assert (answer.status_code, answer.json()) == (401, {"detail": "not verified"})
    assert door.hints == []


async def test_one_that_somebody_else_signed_or_changed_is_refused() -> None:
    door = Door()
    assert (await answer_to(door, door.fal_headers(BODY, forged=True))).status_code == 401
    assert (await answer_to(door, door.fal_headers(BODY), BODY + b" ")).status_code == 401
    for field in ("Request-Id", "User-Id", "Timestamp"):
        changed = door.fal_headers(BODY) | {f"X-Fal-Webhook-{field}": str(door.stamp(1))}
        assert (await answer_to(door, changed)).status_code == 401
    assert door.hints == []


@pytest.mark.parametrize("field", ["Request-Id", "User-Id", "Timestamp", "Signature"])
async def test_one_without_one_of_its_headers_is_refused(field: str) -> None:
    door = Door()
    headers = {n: v for n, v in door.fal_headers(BODY).items() if not n.endswith(field)}
    assert (await answer_to(door, headers)).status_code == 401


@pytest.mark.parametrize("signature", ["zz", "ab", "0" * 128, "0" * 127])
async def test_a_signature_that_is_none_is_refused(signature: str) -> None:
    door = Door()
    headers = door.fal_headers(BODY) | {"X-Fal-Webhook-Signature": signature}
    assert (await answer_to(door, headers)).status_code == 401


async def test_the_keys_are_fetched_once_a_day() -> None:
    door = Door()
    async with door.open() as client:
        for _ in range(5):
            await knock(client, CALL, BODY, door.fal_headers(BODY))
            door.clock.advance(3600)
        assert door.key_fetches == 1
        door.clock.advance(24 * 3600)
        assert (await knock(client, CALL, BODY, door.fal_headers(BODY))).status_code == 200
    assert door.key_fetches == 2


async def test_a_new_key_is_fetched_when_it_is_first_used() -> None:
    door = Door()
    async with door.open() as client:
        await knock(client, CALL, BODY, door.fal_headers(BODY))
        door.signer = Signer()
        door.clock.advance(61)
        assert (await knock(client, CALL, BODY, door.fal_headers(BODY))).status_code == 200
    assert door.key_fetches == 2


async def test_forgers_cause_few_fetches() -> None:
    door = Door()
    async with door.open() as client:
        for _ in range(20):
            assert (await knock(client, CALL, BODY, door.fal_headers(BODY, forged=True))).status_code == 401
            door.clock.advance(1)
    assert door.key_fetches == 1


@pytest.mark.parametrize(
    "trouble",
    [
        httpx.ConnectError("no way"),
        httpx.Response(500),
        httpx.Response(302, headers={"Location": "https://elsewhere.example"}),
        httpx.Response(200, content=b"<html>"),
        httpx.Response(200, json={"keys": []}),
        httpx.Response(200, json={"keys": [{"crv": "Ed25519", "x": "AAAA"}]}),
        httpx.Response(200, content=b" " * 100_000),
    ],
)
async def test_without_keys_fal_is_asked_to_try_again_and_then_heard(
    trouble: httpx.Response | Exception,
) -> None:
    door = Door()
    door.key_answer = trouble
    async with door.open() as client:
        for _ in range(2):
            assert (await knock(client, CALL, BODY, door.fal_headers(BODY))).status_code == 503
        door.key_answer = None
        door.clock.advance(61)
        assert (await knock(client, CALL, BODY, door.fal_headers(BODY))).status_code == 200
    assert len(door.hints) == 1


async def test_keys_that_cannot_be_fetched_anew_stay_good_for_their_day() -> None:
    door = Door()
    async with door.open() as client:
        await knock(client, CALL, BODY, door.fal_headers(BODY))
        door.key_answer = httpx.ConnectError("no way")
        door.clock.advance(3600)
        assert (await knock(client, CALL, BODY, door.fal_headers(BODY, forged=True))).status_code == 401
        assert (await knock(client, CALL, BODY, door.fal_headers(BODY))).status_code == 200
        door.clock.advance(24 * 3600)
        assert (await knock(client, CALL, BODY, door.fal_headers(BODY))).status_code == 503
