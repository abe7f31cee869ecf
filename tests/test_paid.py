"""The suppliers that cost money, as the settings make them."""

import contextlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from pydantic import SecretStr

from models.commands import Want
from models.errors import ProviderFailure
from models.work import JobKind, SpeechRequest
from sceneloom.accounts import Account
from sceneloom.assets.store import open_assets
from sceneloom.deals import ProviderMisset
from sceneloom.paid import paid_suppliers
from sceneloom.providers.workflow import USUAL
from sceneloom.settings import Settings
from sceneloom.workshop.workshop import Supplier, Workshop
from tests.fakes import START, MovedClock
from tests.providers.paid import a_clip_job, mocked
from tests.providers.wires.openai import wav


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


def an_own_machine(client: httpx.AsyncClient, **facts: Any) -> Supplier:
    accounts = {"comfyui": Account(**{"model": "sdxl", "url": "http://gpu.example:8188", **facts})}
    settings = Settings(_env_file=None, accounts=accounts)
    (supplier,) = paid_suppliers(settings, open_assets("memory://"), client=client, clock=MovedClock())
    return supplier


async def test_an_own_machine_needs_no_key_costs_nothing_and_may_be_asked_again() -> None:
    async with mocked(lambda _: httpx.Response(500)) as client:
        supplier = an_own_machine(client)

    assert supplier.repeatable
    assert not supplier.is_local
    assert (supplier.offer.cost_usd, supplier.offer.endpoint) == (0.0, "http://gpu.example:8188")


async def test_another_workflow_makes_other_pictures(tmp_path: Path) -> None:
    file = tmp_path / "flow.json"
    async with mocked(lambda _: httpx.Response(500)) as client:
        terms = [dict(an_own_machine(client).offer.terms)]
        for text in (USUAL, USUAL.replace("30", "20")):
            file.write_text(text, "utf-8")
            terms.append(dict(an_own_machine(client, workflow=str(file)).offer.terms))

    assert len({each.get("workflow") for each in terms}) == 3


@pytest.mark.parametrize(("text", "said"), [("{}", "API format"), (None, "cannot be read")])
async def test_a_workflow_that_cannot_be_run_ends_the_worker_at_its_start(
    tmp_path: Path, text: str | None, said: str
) -> None:
    file = tmp_path / "flow.json"
    if text is not None:
        file.write_text(text, "utf-8")
    async with mocked(lambda _: httpx.Response(500)) as client:
        with pytest.raises(ProviderMisset, match=said) as refused:
            an_own_machine(client, workflow=str(file))
    assert str(refused.value).startswith("SCENELOOM_COMFYUI_WORKFLOW: ")


VOICE = {"key": SecretStr("k-123456"), "voice": "ava"}
"""An account that can speak at either of two services."""


def speakers(client: httpx.AsyncClient, **chosen: Any) -> dict[str, Supplier]:
    accounts = {"azure": Account.model_validate(VOICE), "elevenlabs": Account.model_validate(VOICE)}
    settings = Settings(_env_file=None, accounts=accounts, **chosen)
    found = paid_suppliers(settings, open_assets("memory://"), client=client, clock=MovedClock())
    return {supplier.offer.provider: supplier for supplier in found}


def price_of(supplier: Supplier, text: str) -> float:
    workshop = Workshop(suppliers=[supplier], usual={}, assets=open_assets("memory://"))
    request = SpeechRequest(text=text, language="en")
    return workshop.offer_for(Want(request=request, provider=supplier.offer.provider)).cost_usd


async def test_the_price_of_speech_without_words_holds_that_of_its_transcription() -> None:
    async with mocked(lambda _: httpx.Response(500)) as client:
        plain, heard = speakers(client), speakers(client, transcription_provider="elevenlabs")

    text = "x" * 1000
    assert price_of(plain["azure"], text) == 0.015
    assert price_of(heard["azure"], text) == 0.015 + 0.00611
    assert price_of(heard["elevenlabs"], text) == price_of(plain["elevenlabs"], text)
    assert heard["azure"].offer.terms["transcription"] == "elevenlabs scribe_v2"
    assert "transcription" not in heard["elevenlabs"].offer.terms


async def test_a_job_that_began_without_transcription_is_not_charged_for_one() -> None:
    paths: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.path)
        return httpx.Response(200, content=wav(1.0))

    async with mocked(answer) as client:
        before, after = speakers(client), speakers(client, transcription_provider="elevenlabs")
        workshop = Workshop(suppliers=[after["azure"]], usual={}, assets=open_assets("memory://"))
        for offer in (before["azure"].offer, after["azure"].offer):
            job = a_clip_job("x").model_copy(
                update={"offer": offer, "request": SpeechRequest(text="Hi", language="en")}
            )
            await workshop.make(job, progress=lambda _: None)

    assert paths == ["/cognitiveservices/v1", "/cognitiveservices/v1", "/v1/speech-to-text"]


async def test_a_transcriber_that_is_not_set_up_ends_the_worker_at_its_start() -> None:
    async with mocked(lambda _: httpx.Response(500)) as client:
        with pytest.raises(ProviderMisset) as refused:
            speakers(client, transcription_provider="openai")
        with pytest.raises(ProviderMisset, match="azure makes speech, not transcription"):
            speakers(client, transcription_provider="azure")
    assert str(refused.value) == (
        "SCENELOOM_TRANSCRIPTION_PROVIDER: openai is not set up: set SCENELOOM_OPENAI_KEY"
    )


LTX = "fal-ai/ltx/text-to-video"


async def test_the_key_of_a_service_that_is_reached_elsewhere_goes_to_no_other_host() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        return httpx.Response(404)

    fal = Account(key=SecretStr("fake-key"), url="http://127.0.0.1:9/queue", model=LTX, usd_per_second=0.1)
    settings = Settings(_env_file=None, accounts={"fal": fal}, clip_provider="fal")
    async with mocked(answer) as client:
        found = paid_suppliers(settings, open_assets("memory://"), client=client, clock=MovedClock())
        (supplier,) = (each for each in found if each.kind is JobKind.CLIP)
        maker: Any = supplier.maker
        job = a_clip_job(LTX).model_copy(update={"offer": supplier.offer, "intended_at": START})
        with contextlib.suppress(ProviderFailure):
            await maker.find(job, taken=frozenset())
    assert set(asked) == {"127.0.0.1"}
