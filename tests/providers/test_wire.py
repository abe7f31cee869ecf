"""Every way in which a paid request can end, and that no end of it shows the key."""

import asyncio
import contextlib
import gzip
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from models.errors import ErrorCode, OutcomeUnknown, ProviderFailure
from sceneloom.providers import wire as wire_module
from sceneloom.providers.redaction import redacted
from sceneloom.providers.verdicts import Answer, Complaint, Sign, Verdicts, retry_after
from sceneloom.providers.wire import MAY_BUY, NotAllowed, Patience, Wire
from tests.fakes import START, MovedClock
from tests.providers.paid import HASTY, direct_client, everything_shown, mocked, raw_server

KEY = "s3cret-Key/of+the=house"
MOST_TRYING = 12


def _complaint(answer: Answer) -> Complaint:
    error = (answer.json() or {}).get("error") or {}
    return Complaint(str(error.get("code", "")), str(error.get("message", "")))


VERDICTS = Verdicts(
    read=_complaint,
    signs=(
        Sign("blocked", ErrorCode.MODERATION_REJECTED),
        Sign("bad", ErrorCode.ASSET_FETCH_FAILED, message="download"),
        Sign("broke", ErrorCode.PROVIDER_QUOTA_EXHAUSTED),
    ),
    untouched=((503, "turned_away"),),
)


def a_wire(client: httpx.AsyncClient, url: str = "https://paid.example/v1", **changes: Any) -> Wire:
    options = {"key": SecretStr(KEY), "verdicts": VERDICTS, "clock": MovedClock(), "patience": HASTY}
    return Wire(client, base_url=url, **{**options, **changes})


def saying(status: int, body: Any = None, **headers: str) -> Wire:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return a_wire(mocked(lambda _: httpx.Response(status, json=body, headers=named)))


def complaining(status: int, code: str = "", message: str = "", **headers: str) -> Wire:
    return saying(status, {"error": {"code": code, "message": message}}, **headers)


def raising(error: Exception) -> Wire:
    def fail(request: httpx.Request) -> httpx.Response:
        if isinstance(error, httpx.RequestError):
            error.request = request
        raise error

    return a_wire(mocked(fail))


async def bought(wire: Wire) -> Exception:
    with pytest.raises((ProviderFailure, OutcomeUnknown)) as raised:
        await wire.buy("/clips", {"prompt": "a fox"})
    assert isinstance(raised.value, Exception)
    return raised.value


async def failure(wire: Wire) -> ProviderFailure:
    error = await bought(wire)
    assert isinstance(error, ProviderFailure), error
    return error


# -- what is sent --------------------------------------------------------------------------------------------


async def test_a_purchase_is_one_post_with_the_key_the_body_and_our_name_for_it() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"id": "t-1"})

    got = await a_wire(mocked(answer)).buy("/clips", {"n": 1}, params={"hook": "x"}, reference="p1/job/1.0")
    assert got.json() == {"id": "t-1"}
    (request,) = seen
    assert (request.method, str(request.url)) == ("POST", "https://paid.example/v1/clips?hook=x")
    assert request.content == b'{"n":1}'
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.headers["X-Client-Request-Id"] == "p1/job/1.0"
    assert request.extensions["timeout"] == {"connect": 5.0, "read": 0.6, "write": 5.0, "pool": 5.0}


@pytest.mark.parametrize("status", [200, 302, 307, 400, 408, 429, 500, 503])
async def test_nothing_is_sent_twice_whatever_comes_back(status: int) -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(status, headers={"Location": "https://elsewhere.example", "Retry-After": "0"})

    client = httpx.AsyncClient(transport=httpx.MockTransport(answer), follow_redirects=True)
    with contextlib.suppress(ProviderFailure, OutcomeUnknown):
        await a_wire(client).buy("/clips", {})
    assert len(seen) == 1


@pytest.mark.parametrize("key", ["", "  ", "two words", "line\nbreak", "кл\u044eч"])
def test_a_key_that_no_header_can_hold_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ValueError, match="key") as raised:
        a_wire(mocked(lambda _: httpx.Response(200)), key=SecretStr(key))
    assert not key.strip() or key not in str(raised.value)


async def test_the_line_break_at_the_end_of_a_key_file_does_not_matter() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"header": request.headers["Authorization"]})

    got = await a_wire(mocked(answer), key=SecretStr(f"{KEY}\n")).buy("/clips", {})
    assert got.json() == {"header": f"Bearer {KEY}"}


# -- surely nothing bought -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("refused"),
        httpx.ConnectTimeout("no answer to SYN"),
        httpx.PoolTimeout("no free connection"),
        httpx.ProxyError("407"),
        httpx.UnsupportedProtocol("gopher"),
    ],
)
async def test_what_was_surely_not_sent_may_be_sent_later(error: Exception) -> None:
    assert (await failure(raising(error))).code is ErrorCode.PROVIDER_UNAVAILABLE


async def test_a_closed_port_is_surely_not_sent() -> None:
    async with raw_server(lambda _r, _w: asyncio.sleep(0)) as url:
        pass
    async with direct_client() as client:
        assert (await failure(a_wire(client, url))).code is ErrorCode.PROVIDER_UNAVAILABLE


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, ErrorCode.PROVIDER_BAD_REQUEST),
        (401, ErrorCode.PROVIDER_AUTH),
        (402, ErrorCode.PROVIDER_QUOTA_EXHAUSTED),
        (403, ErrorCode.PROVIDER_AUTH),
        (404, ErrorCode.PROVIDER_MODEL_RETIRED),
        (409, ErrorCode.PROVIDER_BAD_REQUEST),
        (410, ErrorCode.PROVIDER_MODEL_RETIRED),
        (413, ErrorCode.PROVIDER_BAD_REQUEST),
        (422, ErrorCode.PROVIDER_BAD_REQUEST),
        (429, ErrorCode.PROVIDER_RATE_LIMITED),
    ],
)
async def test_a_refusal_without_a_known_name_is_judged_by_its_status(status: int, code: ErrorCode) -> None:
    assert (await failure(complaining(status, "strange"))).code is code
    assert (await failure(saying(status))).code is code


@pytest.mark.parametrize(
    ("status", "name", "message", "code"),
    [
        (400, "blocked", "", ErrorCode.MODERATION_REJECTED),
        (429, "broke", "", ErrorCode.PROVIDER_QUOTA_EXHAUSTED),
        (400, "bad", "could not download it", ErrorCode.ASSET_FETCH_FAILED),
        (400, "bad", "no such ratio", ErrorCode.PROVIDER_BAD_REQUEST),
    ],
)
async def test_the_provider_s_own_name_goes_before_the_status(
    status: int, name: str, message: str, code: ErrorCode
) -> None:
    refused = await failure(complaining(status, name, message))
    assert refused.code is code
    assert refused.detail == f"HTTP {status} {name}: {message}".rstrip(": ")


async def test_words_of_the_message_alone_decide_nothing() -> None:
    refused = await failure(complaining(400, "bad", "the prompt says: blocked, broke"))
    assert refused.code is ErrorCode.PROVIDER_BAD_REQUEST


async def test_a_5xx_that_the_provider_documents_as_not_taken_may_be_sent_again() -> None:
    refused = await failure(complaining(503, "turned_away", retry_after="3"))
    assert (refused.code, refused.retry_after) == (ErrorCode.PROVIDER_UNAVAILABLE, 3.0)


async def test_a_refusal_counts_even_when_its_reasons_never_arrive() -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 429 Slow\r\nRetry-After: 9\r\nContent-Length: 50\r\n\r\n{")
        await writer.drain()

    async with raw_server(half) as url, direct_client() as client:
        refused = await failure(a_wire(client, url))
    assert (refused.code, refused.retry_after) == (ErrorCode.PROVIDER_RATE_LIMITED, 9.0)


# -- nobody can tell -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        httpx.ReadTimeout("slow"),
        httpx.WriteTimeout("slow"),
        httpx.ReadError("reset"),
        httpx.WriteError("pipe"),
        httpx.RemoteProtocolError("Server disconnected without sending a response."),
        httpx.CloseError("odd"),
        httpx.DecodingError("not gzip"),
        ConnectionResetError(104, "reset"),
        TimeoutError(),
    ],
)
async def test_trouble_after_the_request_left_leaves_the_outcome_unknown(error: Exception) -> None:
    assert isinstance(await bought(raising(error)), OutcomeUnknown)


@pytest.mark.parametrize("status", [302, 303, 307, 408, 500, 502, 503, 504, 529])
async def test_an_answer_that_does_not_say_no_leaves_the_outcome_unknown(status: int) -> None:
    assert isinstance(await bought(complaining(status, "blocked")), OutcomeUnknown)
    assert isinstance(await bought(saying(status)), OutcomeUnknown)


async def _never(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()


async def _hang_up(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")


async def _half_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n{"id": "t-')
    await writer.drain()


async def _drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("talk", [_never, _hang_up, _half_body, _drip])
async def test_a_connection_that_fails_midway_leaves_the_outcome_unknown(talk: Any) -> None:
    patience = Patience(connect=1.0, read=0.2, write=0.2, pool=0.2, total=0.4)
    async with raw_server(talk) as url, direct_client() as client:
        assert isinstance(await bought(a_wire(client, url, patience=patience)), OutcomeUnknown)


async def test_a_connection_is_not_kept_for_the_next_purchase() -> None:
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(2)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    async with raw_server(answer) as url, direct_client() as client:
        for _ in range(2):
            await a_wire(client, url).buy("/clips", {})
    assert connections == 2


async def always() -> bool:
    return True


async def no() -> bool:
    return False


async def nothing() -> bool:
    return await asyncio.Event().wait()


@pytest.mark.parametrize("second", [no, nothing])
async def test_who_is_not_told_at_once_to_buy_once_there_is_a_connection_sends_nothing(
    second: Callable[[], Awaitable[bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire_module, "_AT_ONCE_SECONDS", 0.05)
    arrived = bytearray()
    answers = [always, second]

    async def listen(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        arrived.extend(await reader.read())

    async def may_buy() -> bool:
        return await answers.pop(0)()

    MAY_BUY.set(may_buy)
    async with raw_server(listen) as url, direct_client() as client:
        with pytest.raises(NotAllowed):
            await a_wire(client, url).buy("/clips", {})
    assert answers == []
    assert not arrived


# -- harmless questions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [httpx.ReadTimeout("slow"), httpx.ConnectError("no"), TimeoutError()])
async def test_a_question_without_an_answer_is_only_unavailable(error: Exception) -> None:
    with pytest.raises(ProviderFailure) as raised:
        await raising(error).read("/clips/1")
    assert raised.value.code is ErrorCode.PROVIDER_UNAVAILABLE


@pytest.mark.parametrize("status", [301, 401, 404, 410, 429, 500])
async def test_a_question_that_gets_no_object_is_only_unavailable(status: int) -> None:
    with pytest.raises(ProviderFailure) as raised:
        await complaining(status, "blocked", retry_after="11").read("/clips/1")
    assert (raised.value.code, raised.value.retry_after) == (ErrorCode.PROVIDER_UNAVAILABLE, 11.0)


@pytest.mark.parametrize("body", [b"", b"<html>", b'"t-1"', b"[]", b'{"id": ', b"\xff\xfe", b"[" * 100_000])
async def test_a_body_that_is_no_object_is_only_unavailable(body: bytes) -> None:
    with pytest.raises(ProviderFailure) as raised:
        await a_wire(mocked(lambda _: httpx.Response(200, content=body))).read("/clips/1")
    assert raised.value.code is ErrorCode.PROVIDER_UNAVAILABLE


# -- Retry-After ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "Retry-After": "2"}, 1.5),
        ({"retry-after-ms": "soon", "Retry-After": "2"}, 2.0),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "1e300"}, 86_400.0),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "a while"}, None),
        ({"Retry-After": "Thu, 01 Jan 2026 00:02:00 GMT"}, 120.0),
        ({"Retry-After": "Wed, 31 Dec 2025 23:00:00 GMT"}, 0.0),
        ({"Retry-After": "Thu, 01 Jan 2026 00:02:00 -0000"}, 120.0),
        ({"Retry-After": "Thu, 01 Jan 2026 00:02:00 GMT", "Date": "Thu, 01 Jan 2026 00:01:30 GMT"}, 30.0),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(httpx.Headers(headers), START) == seconds


@given(st.text(max_size=40))
def test_any_retry_after_is_a_wait_of_at_most_a_day_or_none(text: str) -> None:
    try:
        headers = httpx.Headers({"Retry-After": text})
    except UnicodeEncodeError:
        return
    wait = retry_after(headers, datetime(2026, 1, 1, tzinfo=UTC))
    assert wait is None or timedelta() <= timedelta(seconds=wait) <= timedelta(days=1)


# -- secrets -------------------------------------------------------------------------------------------------

ENDS = [
    lambda: raising(httpx.ConnectError(f"proxy said {KEY}")),
    lambda: raising(httpx.ReadTimeout(f"Bearer {KEY}")),
    lambda: raising(httpx.LocalProtocolError(f"Illegal header value b'Bearer {KEY}'")),
    lambda: complaining(401, "auth", f"the key {KEY} is wrong"),
    lambda: complaining(401, KEY, "auth"),
    lambda: complaining(500, "oops", f"request had Authorization: Bearer {KEY}"),
    lambda: complaining(400, "oops", f"{'x' * 285}{KEY}"),
    lambda: a_wire(mocked(lambda request: httpx.Response(400, text=str(request.headers.raw)))),
]


@pytest.mark.parametrize("end", ENDS)
async def test_the_key_is_in_no_error_nor_anything_chained_to_it(
    end: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    wire = end()
    shown = [everything_shown(await bought(wire)), repr(wire), caplog.text]
    with pytest.raises(ProviderFailure) as raised:
        await wire.read("/clips/1")
    shown.append(everything_shown(raised.value))
    assert not any(KEY[:MOST_TRYING] in text for text in shown)


async def test_the_key_is_in_no_frame_of_a_real_connection_that_broke() -> None:
    patience = Patience(connect=1.0, read=0.1, write=0.1, pool=0.1, total=0.3)
    async with raw_server(_never) as url, direct_client() as client:
        shown = everything_shown(await bought(a_wire(client, url, patience=patience)))
    assert "OutcomeUnknown" in shown
    assert KEY[:MOST_TRYING] not in shown


async def test_a_hidden_callback_address_is_not_shown() -> None:
    hook = "https://us.example/hooks/unguessable"
    with pytest.raises(ProviderFailure) as raised:
        await complaining(400, "bad", f"callback_url {hook} is not allowed").buy("/x", {}, hidden=[hook])
    assert "unguessable" not in str(raised.value)


KEYS = st.from_regex(r"[A-Za-z0-9+/=_.-]{8,64}", fullmatch=True)


@given(KEYS, st.text(max_size=400), st.text(max_size=400))
def test_a_hidden_text_never_survives_wherever_it_stands(key: str, before: str, after: str) -> None:
    shown = redacted(f"{before}{key}{after}", [key])
    assert key not in shown
    assert len(shown) <= 300
    assert shown.isprintable()


def test_a_hidden_text_is_found_again_and_again_however_it_is_written() -> None:
    said = "abc/DEF-1, ABC/def-1 and abc%2FDEF-1"
    assert redacted(said, ["abc/DEF-1"]) == "***, *** and ***"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Incorrect key sk-proj-abcd****wxyz.", "Incorrect ***"),
        ("got Bearer abc123.def456", "got ***"),
        ("api_key=abcdef123 rejected", "*** rejected"),
        (
            "https://tos.example/v.mp4?X-Tos-Signature=ab12&x=1 expired",
            "https://tos.example/v.mp4?*** expired",
        ),
        ("0a1b2c3d-1111-2222-3333-444455556666:0123456789abcdef0123 is unknown", "*** is unknown"),
        ("eyJhbGciOi.eyJzdWIi.c2ln is stale", "*** is stale"),
        ("two\nlines\x00and\u2028more", "two lines and more"),
        ("completion_tokens: 1234567", "completion_tokens: 1234567"),
        ("is it ready? no=idea", "is it ready? no=idea"),
    ],
)
def test_what_looks_like_a_key_is_masked(said: str, shown: str) -> None:
    assert redacted(said) == shown


async def test_an_answer_that_is_compressed_more_than_once_is_not_unpacked() -> None:
    bomb = gzip.compress(gzip.compress(b"\0" * 50_000_000))
    headers = {"Content-Encoding": "gzip, gzip"}

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers=headers, stream=httpx.ByteStream(bomb))

    async with mocked(answer) as client:
        with pytest.raises(ProviderFailure, match="compressed more than once"):
            await a_wire(client).read("/tasks")
