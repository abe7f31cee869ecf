"""The signatures with a shared secret, and which messages they let pass."""

import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from standardwebhooks import Webhook

from sceneloom.clock import SystemClock
from sceneloom.gateway.errors import Refused
from sceneloom.gateway.schemes import check_age, parse_signature
from tests.fakes import START
from tests.gateway.stage import STANDARD_SECRET, Door, a_call, knock

BODY = b'{"data": {"request_id": "task-7"}}'


async def answers(headers: dict[str, str], *, provider: str, door: Door, body: bytes = BODY) -> int:
    async with door.open() as client:
        return (await knock(client, a_call(provider), body, headers)).status_code


# -- as ElevenLabs signs


@pytest.mark.parametrize("offset", [-299, 0, 299])
async def test_a_message_signed_as_elevenlabs_does_is_taken(offset: float) -> None:
    door = Door()
    headers = door.elevenlabs_headers(BODY, offset=offset)
    assert await answers(headers, provider="elevenlabs", door=door) == 200
    assert [hint.provider_task_id for hint in door.hints] == ["task-7"]


@pytest.mark.parametrize("offset", [-301, 301, -86_400])
async def test_one_that_is_stale_or_from_the_future_is_refused(offset: float) -> None:
    door = Door()
    headers = door.elevenlabs_headers(BODY, offset=offset)
    assert await answers(headers, provider="elevenlabs", door=door) == 401
    assert door.hints == []


async def test_one_that_somebody_else_signed_or_changed_is_refused() -> None:
    door = Door()
    forged = door.elevenlabs_headers(BODY, secret=SecretStr("a guess"))
    assert await answers(forged, provider="elevenlabs", door=door) == 401
    of_another = door.elevenlabs_headers(b"{}")
    assert await answers(of_another, provider="elevenlabs", door=door) == 401
    younger = door.elevenlabs_headers(BODY, offset=-400)["ElevenLabs-Signature"]
    younger = younger.replace(str(door.stamp(-400)), str(door.stamp()))
    assert await answers({"ElevenLabs-Signature": younger}, provider="elevenlabs", door=door) == 401
    assert door.hints == []


@pytest.mark.parametrize(
    "value", [b"", b"t=1", b"v0=ab", b"t=1,t=2,v0=ab", b"t=1,v0=\xfc", b"t=\xfc,v0=ab", b"nonsense"]
)
async def test_one_without_a_whole_signature_is_refused(value: bytes) -> None:
    async with Door().open() as client:
        answer = await knock(client, a_call("elevenlabs"), BODY, {"ElevenLabs-Signature": value})
    assert answer.status_code == 401


async def test_one_of_several_signatures_is_enough_as_while_a_secret_changes() -> None:
    door = Door()
    value = door.elevenlabs_headers(BODY)["ElevenLabs-Signature"].replace(",v0=", f",v0={'0' * 64},v0=")
    assert await answers({"ElevenLabs-Signature": value}, provider="elevenlabs", door=door) == 200


@given(st.text())
def test_any_header_is_parsed_or_refused(value: str) -> None:
    with contextlib.suppress(Refused):
        stamp, signatures = parse_signature(value)
        assert f"t={stamp}" in value
        assert all(f"v0={each}" in value for each in signatures)


@given(st.from_regex(r"\A[0-9]{1,11}\Z"), st.lists(st.from_regex(r"\A[0-9a-f]{1,64}\Z")))
def test_what_is_well_written_is_read_as_written(stamp: str, signatures: list[str]) -> None:
    value = ",".join([f"t={stamp}", *(f"v0={each}" for each in signatures)])
    assert parse_signature(value) == (stamp, signatures)


@given(st.text(max_size=30))
def test_any_time_is_near_or_refused(stamp: str) -> None:
    with contextlib.suppress(Refused):
        check_age(stamp, START)
        assert abs(int(stamp) - START.timestamp()) <= 300


# -- Standard Webhooks: the library asks the system for the time


def signed(*, offset: float = 0.0, secret: SecretStr = STANDARD_SECRET, number: str = "m1") -> dict[str, str]:
    when: datetime = SystemClock().now() + timedelta(seconds=offset)
    stamp = datetime.fromtimestamp(int(when.timestamp()), UTC)
    return {
        "webhook-id": number,
        "webhook-timestamp": str(int(when.timestamp())),
        "webhook-signature": Webhook(secret.get_secret_value()).sign(number, stamp, BODY.decode()),
    }


async def test_a_message_in_the_standard_form_is_taken_and_its_id_makes_it_known() -> None:
    door = Door()
    async with door.open() as client:
        first = await knock(client, a_call("standard"), BODY, signed())
        again = await knock(client, a_call("standard"), BODY, signed(offset=-9))
        other = await knock(client, a_call("standard"), BODY, signed(number="m2"))
    assert [answer.json()["status"] for answer in (first, again, other)] == ["taken", "known", "taken"]


@pytest.mark.parametrize("offset", [-310, 310])
async def test_a_standard_message_that_is_stale_or_from_the_future_is_refused(offset: float) -> None:
    assert await answers(signed(offset=offset), provider="standard", door=Door()) == 401


@pytest.mark.parametrize("gone", ["webhook-id", "webhook-timestamp", "webhook-signature"])
async def test_a_standard_message_without_one_of_its_headers_is_refused(gone: str) -> None:
    headers = {name: value for name, value in signed().items() if name != gone}
    assert await answers(headers, provider="standard", door=Door()) == 401


@pytest.mark.parametrize(
    "changes",
    [
        {"webhook-signature": "v1,AAAA"},
        {"webhook-signature": "no-comma"},
        {"webhook-signature": "v1,not base64!"},
        {"webhook-id": "m2"},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": "nan"},
    ],
)
async def test_a_standard_message_that_was_changed_is_refused(changes: dict[str, str]) -> None:
    door = Door()
    assert await answers(signed() | changes, provider="standard", door=door) == 401
    assert door.hints == []


async def test_a_standard_message_of_another_secret_or_body_is_refused() -> None:
    door = Door()
    forged = signed(secret=SecretStr("whsec_" + "QUJD" * 8))
    assert await answers(forged, provider="standard", door=door) == 401
    assert await answers(signed(), provider="standard", door=door, body=b'{"id": "evil"}') == 401
    assert door.hints == []


async def test_a_standard_secret_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="SCENELOOM_STANDARD_WEBHOOK_SECRET: it is not base64"):
        async with Door(standard_webhook_secret="whsec_a").open():
            pass
