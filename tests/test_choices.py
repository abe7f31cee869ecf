"""Whom the settings choose: what is wrong is told by its name, with what is near."""

from datetime import UTC, date, datetime
from typing import Any

import pytest
from structlog.testing import capture_logs

from models.work import JobKind
from sceneloom.accounts import Account
from sceneloom.choices import notices, why_not, why_unknown
from sceneloom.deals import ProviderMisset
from sceneloom.outside import connect_worker, log_notices
from sceneloom.providers.catalogue import Aid
from tests.fakes import MovedClock
from tests.test_deals import KEY, TODAY, settings


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("sora", JobKind.CLIP, "was shut down on 2026-09-24; use ark, runway or google"),
        ("sora", JobKind.IMAGE, "use automatic1111, comfyui, fal, motion, openai, replicate or stability"),
        ("dall-e-3", JobKind.IMAGE, "was shut down on 2026-05-12; use openai"),
        ("ark", JobKind.IMAGE, "ark makes clip, not image"),
        ("ark", JobKind.CLIP, "ark is not set up: set SCENELOOM_ARK_KEY"),
        ("comfyui", JobKind.IMAGE, "comfyui is not set up: set SCENELOOM_COMFYUI_URL"),
        ("runwya", JobKind.CLIP, "no provider runwya; did you mean runway? Set SCENELOOM_RUNWAY_KEY, too"),
        ("mtion", JobKind.CLIP, "there is no provider mtion; did you mean motion?"),
        ("hollywood", JobKind.CLIP, "there is no provider hollywood; there is motion"),
        ("second", JobKind.CLIP, "second is not set up: set SCENELOOM_SECOND_KEY"),
        ("openai", JobKind.IMAGE, "gpt-image-1 is not served any more since 2026-10-23; use gpt-image-2"),
    ],
)
def test_why_a_provider_is_not_there_is_told(name: str, kind: JobKind, said: str) -> None:
    accounts = {
        "second": Account(service="ark", model="x"),
        "openai": Account(key=KEY, image_model="gpt-image-1"),
    }
    assert why_unknown(settings(**accounts), name, kind, TODAY, there=["motion"]).endswith(said)


@pytest.mark.parametrize(
    ("account", "kind", "said"),
    [
        (Account(key=KEY, voice="ava"), JobKind.SPEECH, None),
        (Account(key=KEY), JobKind.SPEECH, "SCENELOOM_ELEVENLABS_VOICE: name the voice"),
        (Account(key=KEY), Aid.TRANSCRIPTION, None),
        (Account(voice="ava"), JobKind.SPEECH, "set SCENELOOM_ELEVENLABS_KEY"),
    ],
)
def test_an_account_is_complete_for_one_kind_or_says_what_it_lacks(
    account: Account, kind: Any, said: str | None
) -> None:
    why = why_not("elevenlabs", account, kind, TODAY)
    assert why is None if said is None else said in str(why)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"clip_provider": "ark"}, "SCENELOOM_CLIP_PROVIDER: ark is not set up: set SCENELOOM_ARK_KEY"),
        ({"clip_provider": "runwya"}, "SCENELOOM_CLIP_PROVIDER: .* did you mean runway?"),
        ({"image_provider": "storybord"}, "SCENELOOM_IMAGE_PROVIDER: .* did you mean storyboard?"),
        ({"speech_provider": "eleven"}, "SCENELOOM_SPEECH_PROVIDER: .* did you mean elevenlabs?"),
        ({"transcription_provider": "wisper"}, "SCENELOOM_TRANSCRIPTION_PROVIDER: .* did you mean whisper?"),
        ({"clip_provider": "sora"}, "SCENELOOM_CLIP_PROVIDER: Sora .* was shut down"),
        ({"clip_fallback": "luma"}, "SCENELOOM_CLIP_FALLBACK: luma is not set up"),
        ({"clip_fallback": "motion,lumma"}, "SCENELOOM_CLIP_FALLBACK: .* did you mean luma?"),
    ],
)
def test_a_worker_does_not_start_without_whom_it_would_ask(chosen: dict[str, str], said: str) -> None:
    with pytest.raises(ProviderMisset, match=said):
        connect_worker(settings(chosen))


def test_an_account_without_a_key_is_told_and_not_ignored() -> None:
    (notice,) = notices(settings(runway=Account(model="gen4.5")), TODAY)
    assert notice == (
        "choices.account_without_key",
        "runway",
        "it cannot be chosen, though SCENELOOM_RUNWAY_MODEL is set: set SCENELOOM_RUNWAY_KEY",
    )
    (unheard_of,) = notices(settings(runwya=Account(model="gen4.5")), TODAY)
    assert "did you mean runway?" in unheard_of.told


@pytest.mark.parametrize(
    ("today", "told"),
    [
        (date(2026, 10, 7), []),
        (date(2026, 10, 8), ["gpt-4o-mini-tts retires on 2027-01-06; use elevenlabs"]),
    ],
)
def test_a_model_that_retires_within_90_days_is_told(today: date, told: list[str]) -> None:
    found = notices(settings(openai=Account(key=KEY)), today)
    assert [notice.told.partition(" (")[0] for notice in found] == told


def test_a_model_that_the_catalogue_does_not_have_is_told_though_it_has_a_price() -> None:
    account = Account(key=KEY, model="gen4.6", usd_per_second=0.1)
    with capture_logs() as logs:
        log_notices(settings(runway=account))
    (told,) = [log for log in logs if log["event"] == "choices.model_unknown"]
    assert (told["log_level"], told["provider"]) == ("warning", "runway")
    assert "did you mean gen4.5" in told["told"]


def test_a_start_tells_once_of_a_retired_model_that_nobody_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = MovedClock()
    clock.time = datetime(2027, 1, 6, tzinfo=UTC)
    monkeypatch.setattr("sceneloom.outside.SystemClock", lambda: clock)
    with capture_logs() as logs:
        log_notices(settings(openai=Account(key=KEY)))
    (told,) = [log for log in logs if log["event"] == "deals.model_retired"]
    assert (told["log_level"], told["provider"]) == ("warning", "openai")
    assert told["told"].startswith("speech is left out: ")
