from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from sceneloom.accounts import Account
from sceneloom.assets.store import open_assets
from sceneloom.credentials import Finding, State, check_accounts
from sceneloom.deals import ProviderMisset
from sceneloom.outside import connect
from sceneloom.settings import Settings
from sceneloom.testing.fake_provider import TEST_KEY, FakeProvider
from tests.fakes import MovedClock
from tests.providers.paid import direct_client, mocked

KEY = "k-secret-0123456789"
TODAY = datetime(2026, 11, 30, tzinfo=UTC)


async def found(
    answer: Any, *, transcription: str = "", on: datetime = TODAY, **accounts: Account
) -> list[Finding]:
    settings = Settings.model_construct(accounts=accounts, transcription_provider=transcription)
    clock = MovedClock()
    clock.time = on
    checked = check_accounts(settings, open_assets("memory://"), client=mocked(answer), clock=clock)
    return [finding async for finding in checked]


def a_key(**facts: Any) -> Account:
    return Account(key=SecretStr(KEY), **facts)


async def test_a_key_that_works_is_good_and_only_a_read_is_made() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={})

    assert await found(answer, runway=a_key()) == [Finding("runway", State.GOOD, "clip by gen4.5")]
    (request,) = seen
    assert (request.method, request.url.path) == ("GET", "/v1/organization")
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.headers["X-Runway-Version"] == "2024-11-06"


async def test_an_account_for_two_kinds_is_checked_once() -> None:
    (finding,) = await found(lambda _: httpx.Response(200, json={}), openai=a_key())
    assert finding.detail == "image by gpt-image-2, speech by gpt-4o-mini-tts"


async def test_a_check_tells_what_an_account_cannot_do_any_more() -> None:
    answer = httpx.Response(200, json={})
    (finding,) = await found(lambda _: answer, on=datetime(2027, 1, 6, tzinfo=UTC), openai=a_key())
    assert finding.state is State.GOOD
    assert finding.detail.startswith("image by gpt-image-2; speech is left out: ")


@pytest.mark.parametrize(
    ("status", "state"), [(401, State.REFUSED), (403, State.REFUSED), (500, State.UNEXPECTED)]
)
async def test_a_key_that_is_refused_is_told_without_the_key(status: int, state: State) -> None:
    said = {"error": {"code": "bad", "message": f"wrong key {KEY}"}}
    (finding,) = await found(lambda _: httpx.Response(status, json=said), google=a_key())
    assert finding.state is state
    assert KEY not in finding.detail
    assert "bad" in finding.detail


@pytest.mark.parametrize("key", [TEST_KEY, "another-key"])
async def test_every_provider_that_the_fake_one_speaks_can_be_checked_against_it(key: str) -> None:
    async with FakeProvider() as provider, direct_client() as client:
        secret = SecretStr(key)
        accounts = {
            "ark": Account(key=secret, url=f"{provider.url}/api/v3"),
            "fal": Account(
                key=secret,
                url=provider.url,
                list_url=f"{provider.url}/v1",
                model="acme/clips/text-to-video",
                usd_per_second=0.1,
            ),
            "openai": Account(key=secret, url=f"{provider.url}/v1"),
        }
        settings = Settings.model_construct(accounts=accounts, transcription_provider="")
        checked = check_accounts(settings, open_assets("memory://"), client=client, clock=MovedClock())
        states = {finding.name: finding.state async for finding in checked}

    assert set(states.values()) == {State.GOOD if key == TEST_KEY else State.REFUSED}, states
    assert set(states) == set(accounts)
    assert provider.ledger.accepted() == []


async def test_an_account_without_a_key_is_told() -> None:
    (finding,) = await found(lambda _: httpx.Response(200), runway=Account(model="gen4.5"))
    assert finding.state is State.UNCHECKED
    assert finding.detail.endswith("set SCENELOOM_RUNWAY_KEY")


async def test_a_provider_that_is_away_is_unreachable() -> None:
    def away(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no route")

    (finding,) = await found(away, kling=a_key())
    assert finding.state is State.UNREACHABLE


async def test_an_answer_that_says_nothing_of_the_key_is_unexpected_and_its_status_told_once() -> None:
    (finding,) = await found(lambda _: httpx.Response(405, text="405: Method Not Allowed"), runway=a_key())
    assert finding == Finding("runway", State.UNEXPECTED, "HTTP 405 Method Not Allowed")


@pytest.mark.parametrize("address", ["file:///etc/passwd", "runway.example", "http://", "https://h:x"])
@pytest.mark.parametrize("field", ["url", "list_url"])
async def test_an_address_that_is_none_is_misset_by_the_name_of_its_variable(
    field: str, address: str
) -> None:
    (finding,) = await found(lambda _: httpx.Response(200, json={}), runway=a_key(**{field: address}))
    assert finding.state is State.MISSET
    assert finding.detail.startswith(f"SCENELOOM_RUNWAY_{field.upper()}: write https://HOST")
    settings = Settings.model_construct(assets="memory://", accounts={"runway": a_key(**{field: address})})
    with pytest.raises(ProviderMisset, match=f"SCENELOOM_RUNWAY_{field.upper()}: "):
        connect(settings)


async def test_every_account_is_told_even_where_one_is_set_up_wrongly() -> None:
    findings = await found(
        lambda _: httpx.Response(200, json={}),
        openai=a_key(image_model="dall-e-3"),
        azure=a_key(),
        fal=a_key(model="a/b", usd_per_second=0.1),
        ark=Account(key=SecretStr("two words")),
        luma=a_key(),
        sora=a_key(),
        minimax=a_key(),
    )
    assert {finding.name: finding.state for finding in findings} == {
        "openai": State.MISSET,
        "azure": State.MISSET,
        "fal": State.GOOD,
        "luma": State.UNCHECKED,
        "ark": State.MISSET,
        "sora": State.MISSET,
        "minimax": State.GOOD,
    }
    told = {finding.name: finding.detail for finding in findings}
    assert told["openai"].endswith("dall-e-3 is not served any more since 2026-05-12; use gpt-image-2")
    assert told["azure"].startswith("SCENELOOM_AZURE_VOICE: ")
    assert told["ark"].startswith("SCENELOOM_ARK_KEY: ")
