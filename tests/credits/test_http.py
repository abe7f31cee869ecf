"""The HTTP ledger: one order, one entry at the other company, whatever happens to the answers."""

from collections.abc import AsyncIterator

import httpx
import pytest
from pydantic import SecretStr

from models.credit_messages import (
    CreditsRefused,
    CreditsReserved,
    CreditsSettled,
    ReserveCredits,
    SettleCredits,
)
from models.errors import ErrorCode, ProviderFailure
from sceneloom.credits.http import HttpLedger
from tests.credits.ledger import FakeLedger
from tests.fakes import MovedClock

RESERVE = ReserveCredits(user_id="ann", project_id="p1", version=2, micros=600_000)
SETTLE = SettleCredits(user_id="ann", project_id="p1", version=9, micros=450_000)
SECRET = "sk-secret-12345678"


@pytest.fixture
async def server() -> AsyncIterator[FakeLedger]:
    async with FakeLedger().serving() as server:
        yield server


@pytest.fixture
async def ledger(server: FakeLedger) -> AsyncIterator[HttpLedger]:
    async with httpx.AsyncClient() as client:
        yield HttpLedger(
            client, base_url=server.url, key=SecretStr(SECRET), clock=MovedClock(), answer_seconds=0.3
        )


async def failure(ledger: HttpLedger) -> ProviderFailure:
    with pytest.raises(ProviderFailure) as raised:
        await ledger.reserve(RESERVE)
    return raised.value


async def test_an_order_says_what_is_wanted_for_whom_and_with_which_key(
    server: FakeLedger, ledger: HttpLedger
) -> None:
    assert await ledger.reserve(RESERVE) == CreditsReserved(user_id="ann", project_id="p1", version=2)
    assert await ledger.settle(SETTLE) == CreditsSettled(user_id="ann", project_id="p1", version=9)

    (first, second) = server.requests
    assert first[0::2] == (
        "/reservations",
        {"user_id": "ann", "project_id": "p1", "version": 2, "amount_micros": 600_000, "currency": "USD"},
    )
    assert second[0] == "/settlements"
    assert first[1] != second[1]
    assert server.headers[0]["Authorization"] == f"Bearer {SECRET}"
    assert (server.balance, server.held, server.charged) == (550_000, {}, {"p1": 450_000})


async def test_more_than_the_ledger_has_is_refused(server: FakeLedger, ledger: HttpLedger) -> None:
    server.balance = 599_999

    assert await ledger.reserve(RESERVE) == CreditsRefused(user_id="ann", project_id="p1", version=2)


@pytest.mark.parametrize("fault", ["lost", "busy", "503"])
async def test_an_order_that_is_sent_again_has_the_same_key_and_is_taken_once(
    server: FakeLedger, ledger: HttpLedger, fault: str
) -> None:
    server.faults = [fault]
    assert (await failure(ledger)).code is ErrorCode.PROVIDER_UNAVAILABLE

    await ledger.reserve(RESERVE)

    assert len({key for _, key, _ in server.requests}) == 1
    assert server.orders_taken == 1
    assert server.held == {"p1": 600_000}


async def test_a_reservation_that_arrives_after_its_settlement_holds_nothing(
    server: FakeLedger, ledger: HttpLedger
) -> None:
    await ledger.settle(SETTLE)

    assert (await failure(ledger)).code is ErrorCode.PROVIDER_BAD_REQUEST
    assert server.held == {}
    older = SETTLE.model_copy(update={"version": 5, "micros": 1})
    assert isinstance(await ledger.settle(older), CreditsSettled), "a newer one has settled it"
    assert server.charged == {"p1": 450_000}


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("401", ErrorCode.PROVIDER_AUTH),
        ("403", ErrorCode.PROVIDER_AUTH),
        ("404", ErrorCode.PROVIDER_BAD_REQUEST),
        ("422", ErrorCode.PROVIDER_BAD_REQUEST),
        ("429", ErrorCode.PROVIDER_RATE_LIMITED),
        ("408", ErrorCode.PROVIDER_UNAVAILABLE),
        ("302", ErrorCode.PROVIDER_UNAVAILABLE),
        ("500", ErrorCode.PROVIDER_UNAVAILABLE),
    ],
)
async def test_every_other_answer_has_a_name_and_hides_our_key(
    server: FakeLedger, ledger: HttpLedger, status: str, code: ErrorCode
) -> None:
    server.faults = [status]

    raised = await failure(ledger)

    assert raised.code is code
    assert f"HTTP {status}" in raised.detail
    assert SECRET not in str(raised)


async def test_the_ledger_says_when_to_come_back(server: FakeLedger, ledger: HttpLedger) -> None:
    server.faults = ["wait"]

    assert (await failure(ledger)).retry_after == 7.0


async def test_a_ledger_that_is_not_there_is_unavailable() -> None:
    async with httpx.AsyncClient() as client:
        ledger = HttpLedger(
            client, base_url="http://127.0.0.1:9", key=SecretStr(""), clock=MovedClock(), answer_seconds=2.0
        )
        assert (await failure(ledger)).code is ErrorCode.PROVIDER_UNAVAILABLE
