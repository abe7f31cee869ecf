"""No forged message passes, whatever its bytes and headers; it is refused, and nothing crashes."""

from typing import Any, Final
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from sceneloom.callbacks import PREFIX
from sceneloom.clock import SystemClock
from tests.fuzzing import any_json, patiently
from tests.gateway.stage import SECRET, STANDARD_SECRET, Door, a_call, knock

pytestmark = pytest.mark.fuzz

BODY: Final = b'{"request_id": "r-1", "id": "r-1", "data": {"id": "r-1", "request_id": "r-1"}}'
SIGNED: Final = ("fal", "elevenlabs", "standard")
NAMES: Final = st.sampled_from(
    [
        *("x-fal-webhook-request-id", "x-fal-webhook-user-id", "x-fal-webhook-timestamp"),
        *("x-fal-webhook-signature", "elevenlabs-signature", "webhook-id", "webhook-timestamp"),
        *("webhook-signature", "content-type", "content-encoding", "x-forwarded-for"),
    ]
)
VALUES: Final = (
    st.binary(max_size=60).filter(lambda value: not set(value) & set(b"\r\n\0"))
    | st.sampled_from(
        [b"", b"0" * 128, b"v1,", b"v1,=", b"t=1,v0=", b"9" * 30, b"-1", b"1e9", b"nan", b"\xff"]
    )
    | st.from_regex(rb"v1a?,[A-Za-z0-9+/]{0,44}={0,2}", fullmatch=True)
    | st.from_regex(rb"t=[0-9]{1,12},v0=[0-9a-f]{0,64}", fullmatch=True)
)


def genuine(door: Door, provider: str) -> dict[str, str]:
    """Return the headers with which *provider* sends the body."""
    if provider == "standard":
        now = SystemClock().now()
        signature = Webhook(STANDARD_SECRET.get_secret_value()).sign("m-1", now, BODY.decode())
        stamp = str(int(now.timestamp()))
        return {"webhook-id": "m-1", "webhook-timestamp": stamp, "webhook-signature": signature}
    return dict((door.fal_headers if provider == "fal" else door.elevenlabs_headers)(BODY))


@pytest.mark.parametrize("provider", SIGNED)
async def test_the_genuine_message_is_taken(provider: str) -> None:
    door = Door()
    async with door.open() as client:
        answer = await knock(client, a_call(provider), BODY, genuine(door, provider))
    assert (answer.status_code, len(door.hints)) == (200, 1)


async def refusal_of(door: Door, client: httpx.AsyncClient, provider: str, body: bytes, headers: Any) -> int:
    answer = await knock(client, a_call(provider), body, headers)
    assert door.hints == []
    assert 400 <= answer.status_code < 500, answer.text
    assert SECRET.get_secret_value() not in answer.text
    assert len(answer.content) < 200
    return answer.status_code


@pytest.mark.parametrize("provider", SIGNED)
@patiently(25)
@given(
    body=st.binary(max_size=80) | any_json.map(repr).map(lambda text: text.encode(errors="replace")),
    headers=st.dictionaries(NAMES, VALUES, max_size=5),
)
async def test_any_bytes_with_any_headers_are_refused(
    provider: str, body: bytes, headers: dict[str, bytes]
) -> None:
    door = Door()
    async with door.open() as client:
        await refusal_of(door, client, provider, body, headers)


@pytest.mark.parametrize("provider", SIGNED)
@patiently(25)
@given(data=st.data())
async def test_a_genuine_message_with_something_changed_is_refused(
    provider: str, data: st.DataObject
) -> None:
    door = Door()
    body, headers = bytearray(BODY), genuine(door, provider)
    raw: dict[str, Any] = {name: value.encode() for name, value in headers.items()}
    name = data.draw(st.sampled_from(sorted(raw)))
    if data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(body) - 1))
        body[place] ^= 1 << data.draw(st.integers(0, 6))
    elif data.draw(st.booleans()):
        changed = data.draw(VALUES)
        if changed.strip() == raw[name]:
            return
        raw[name] = changed
    else:
        del raw[name]
    async with door.open() as client:
        await refusal_of(door, client, provider, bytes(body), raw)


@patiently(40)
@given(
    token=st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    job_id=st.sampled_from(["p1/scene-001/clip", "p1", "../..", "%2e%2e/%00"]),
)
async def test_an_address_that_we_did_not_make_opens_nothing(token: str, job_id: str) -> None:
    door = Door()
    async with door.open() as client:
        where = f"{PREFIX}/ark/{job_id}/1/0/"
        url = f"http://gateway{where}{quote(token, safe='')}"
        answer = await client.post(url, content=BODY)
    assert door.hints == []
    assert answer.status_code in {307, 403, 404, 405}
    assert SECRET.get_secret_value() not in answer.text
