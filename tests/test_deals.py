from datetime import date
from typing import Any

import pytest
from pydantic import SecretStr

from models.commands import Want
from models.shapes import AspectRatio
from models.work import ClipRequest, JobKind, SpeechRequest
from sceneloom.accounts import Account
from sceneloom.deals import Deal, ProviderMisset, deals, left_out
from sceneloom.outside import connect
from sceneloom.settings import Settings
from tests.providers.paid import a_clip_job

TODAY = date(2026, 11, 30)
KEY = SecretStr("k-123456")


def settings(more: dict[str, Any] | None = None, /, **accounts: Account) -> Settings:
    chosen = {"assets": "memory://", **(more or {}), "accounts": accounts}
    return Settings.model_construct(**chosen)


def the_deal(name: str, today: date = TODAY, **facts: Any) -> Deal:
    (deal,) = deals(settings(**{name: Account(key=KEY, **facts)}), today)
    return deal


def refusal(more: dict[str, Any] | None = None, today: date = TODAY, **accounts: Account) -> str:
    with pytest.raises(ProviderMisset) as refused:
        list(deals(settings(more, **accounts), today))
    return str(refused.value)


def test_an_account_needs_only_a_key() -> None:
    deal = the_deal("ark")
    assert (deal.kind, deal.model) == (JobKind.CLIP, "dreamina-seedance-2-0-260128")
    assert (deal.resolution, deal.price.second) == ("1080p", 0.354)


def test_an_account_without_a_key_is_not_there() -> None:
    assert list(deals(settings(ark=Account(model="x")), TODAY)) == []


def test_the_price_follows_the_model_and_the_resolution() -> None:
    assert the_deal("ark", resolution="480p").price.second == 0.066
    fast = the_deal("ark", model="dreamina-seedance-2-0-fast-260128")
    assert (fast.resolution, fast.price.second) == ("720p", 0.114)


def test_the_price_of_the_account_is_believed() -> None:
    assert the_deal("ark", usd_per_second=0.01).price.second == 0.01
    assert the_deal("ark", usd_per_second=0.0).price.second == 0.0


def test_a_model_that_nobody_knows_needs_a_price_and_is_not_limited() -> None:
    assert refusal(ark=Account(key=KEY, model="new-1")).endswith(
        "What a new one can make is not checked; if it is one, set SCENELOOM_ARK_USD_PER_SECOND, its price"
    )
    deal = the_deal("ark", model="new-1", usd_per_second=0.2)
    assert (deal.model, deal.known.seconds, deal.price.second) == ("new-1", (), 0.2)


def test_a_model_that_nobody_knows_is_told_with_those_that_are_near() -> None:
    assert refusal(ark=Account(key=KEY, model="dreamina-seedance-2-0")).startswith(
        "SCENELOOM_ARK_MODEL: the catalogue has no dreamina-seedance-2-0; did you mean "
        "dreamina-seedance-2-0-260128, "
    )
    said = refusal(openai=Account(key=KEY, speech_model="tts-2"))
    assert said.startswith("SCENELOOM_OPENAI_SPEECH_MODEL: the catalogue has no tts-2; did you mean tts-1")


def test_a_model_is_that_of_the_kind_which_has_it() -> None:
    def models_of(**facts: Any) -> dict[str, str]:
        found = deals(settings(openai=Account(key=KEY, **facts)), TODAY)
        return {str(deal.kind): deal.model for deal in found}

    assert models_of(model="tts-1") == {"image": "gpt-image-2", "speech": "tts-1"}
    assert models_of(model="gpt-image-2.5") == {"image": "gpt-image-2.5", "speech": "gpt-4o-mini-tts"}
    assert models_of(model="tts-1", image_model="gpt-image-2.5")["image"] == "gpt-image-2.5"


def test_a_model_that_no_kind_has_must_say_what_it_makes() -> None:
    assert refusal(openai=Account(key=KEY, model="tts-one")) == (
        "SCENELOOM_OPENAI_MODEL: the catalogue has no tts-one; did you mean tts-1? "
        "Set a new one as SCENELOOM_OPENAI_IMAGE_MODEL or SCENELOOM_OPENAI_SPEECH_MODEL"
    )


def test_a_model_must_be_named_where_there_is_no_usual_one() -> None:
    assert refusal(fal=Account(key=KEY)) == (
        "SCENELOOM_FAL_MODEL: name the model at fal, as in OWNER/APP/text-to-video"
    )


def test_a_resolution_that_the_model_does_not_make_is_refused_with_those_it_makes() -> None:
    said = refusal(ark=Account(key=KEY, resolution="8k"))
    assert said.startswith(
        "SCENELOOM_ARK_RESOLUTION: 8k is not what dreamina-seedance-2-0-260128 makes; use 480p"
    )


def test_a_second_account_has_a_name_of_its_own() -> None:
    deal = the_deal("ark2", service="ark")
    assert (deal.name, deal.service.entry.name) == ("ark2", "ark")
    found = deals(settings(ark=Account(key=KEY), ark2=Account(key=KEY, service="ark")), TODAY)
    assert [deal.name for deal in found] == ["ark", "ark2"]


def test_a_provider_that_nobody_knows_is_told_with_the_nearest() -> None:
    assert "did you mean ark?" in refusal(arkk=Account(key=KEY))
    assert refusal(ark2=Account(key=KEY, service="arc")).startswith("SCENELOOM_ARK2_SERVICE: ")
    assert "SCENELOOM_SECOND_SERVICE names it" in refusal(second=Account(key=KEY))


def test_a_service_that_was_shut_down_names_what_to_use() -> None:
    assert refusal(sora=Account(key=KEY)) == (
        "SCENELOOM_SORA_KEY: Sora (OpenAI's video API) was shut down on 2026-09-24; use ark, runway or google"
    )


def test_a_retired_model_that_was_chosen_is_refused_with_its_replacement() -> None:
    openai = Account(key=KEY, image_model="gpt-image-1")
    assert refusal(openai=openai) == (
        "SCENELOOM_OPENAI_IMAGE_MODEL: gpt-image-1 is not served any more since 2026-10-23; use gpt-image-2"
    )
    before = deals(settings(openai=Account(key=KEY, image_model="gpt-image-1-mini", image_usd=0)), TODAY)
    assert [deal.model for deal in before] == ["gpt-image-1-mini", "gpt-4o-mini-tts"]


def test_a_retired_model_that_nobody_chose_is_left_out_and_told() -> None:
    later = date(2027, 1, 6)
    chosen = settings(openai=Account(key=KEY))
    assert [deal.kind for deal in deals(chosen, later)] == [JobKind.IMAGE]
    (out,) = left_out(chosen, later)
    assert out.name == "openai"
    assert out.told.startswith("speech is left out: SCENELOOM_OPENAI_MODEL: gpt-4o-mini-tts is not served")
    assert not list(left_out(chosen, TODAY))
    assert "gpt-4o-mini-tts" in refusal({"speech_provider": "openai"}, later, openai=Account(key=KEY))


def test_a_clip_costs_its_seconds_and_a_narration_its_letters() -> None:
    accounts = {"ark": Account(key=KEY), "openai": Account(key=KEY, speech_model="tts-1")}
    workshop = connect(settings(**accounts)).workshop
    clip = ClipRequest(prompt="x", aspect_ratio=AspectRatio.PORTRAIT, duration_seconds=5.0)
    speech = SpeechRequest(text="x" * 1000, language="en")
    assert workshop.offer_for(Want(request=clip, provider="ark")).cost_usd == 1.77
    assert workshop.offer_for(Want(request=speech, provider="openai")).cost_usd == 0.015


def test_a_slower_tier_is_waited_for_longer() -> None:
    assert the_deal("ark").deadline_seconds == 600
    assert the_deal("ark", service_tier="default").tier == ""
    flex = the_deal("ark", service_tier="flex")
    assert (flex.tier, flex.deadline_seconds) == ("flex", 172_800)
    said = refusal(runway=Account(key=KEY, service_tier="flex"))
    assert said.startswith("SCENELOOM_RUNWAY_SERVICE_TIER: flex is no tier of Runway")


def test_a_fallback_that_could_not_make_the_clip_is_none() -> None:
    accounts = {"ark": Account(key=KEY), "luma": Account(key=KEY)}
    workshop = connect(settings({"clip_fallback": "luma"}, **accounts)).workshop
    makes = a_clip_job("m", duration_seconds=5.0)
    assert workshop.fallback_for(makes) == workshop.offer_for(Want(request=makes.request, provider="luma"))
    assert workshop.fallback_for(a_clip_job("m", duration_seconds=7.0)) is None


def test_fallbacks_are_asked_in_their_order_and_none_twice() -> None:
    accounts = {name: Account(key=KEY) for name in ("ark", "luma", "runway", "google")}
    line = {"clip_fallback": "luma, google,ark,luma,runway"}
    workshop = connect(settings(line, **accounts)).workshop

    def asked_from(provider: str) -> list[str]:
        job, asked = a_clip_job("m", duration_seconds=8.0), [provider]
        job = job.model_copy(update={"offer": job.offer.model_copy(update={"provider": provider})})
        while offer := workshop.fallback_for(job):
            asked.append(offer.provider)
            job = job.stood_in_for(offer, job.created_at)
        return asked

    assert asked_from("house") == ["house", "google", "ark", "runway"]  # luma makes 5 or 10 s
    assert asked_from("ark") == ["ark", "google", "runway"]
    assert asked_from("runway") == ["runway", "google", "ark"]
    assert asked_from("google") == ["google", "ark", "runway"]


def test_a_stand_in_that_is_no_fallback_any_more_is_the_last() -> None:
    workshop = connect(settings({"clip_fallback": "luma"}, luma=Account(key=KEY))).workshop
    job = a_clip_job("m", duration_seconds=5.0).model_copy(update={"stands_in_for": "ark"})
    assert workshop.fallback_for(job) is None


def test_a_key_that_no_header_may_hold_is_told_by_its_variable() -> None:
    with pytest.raises(ProviderMisset, match=r"^SCENELOOM_ARK_KEY: .* no HTTP header may hold"):
        connect(settings(ark=Account(key=SecretStr("two words"))))


def test_an_account_without_a_voice_may_be_there_for_transcription() -> None:
    listening = settings({"transcription_provider": "elevenlabs"}, elevenlabs=Account(key=KEY))
    assert [deal.model for deal in deals(listening, TODAY)] == ["scribe_v2"]
    both = {"transcription_provider": "elevenlabs", "speech_provider": "elevenlabs"}
    assert refusal(both, elevenlabs=Account(key=KEY)).startswith("SCENELOOM_ELEVENLABS_VOICE: ")


def test_nobody_transcribes_unless_chosen_and_the_model_that_speaks_never_does() -> None:
    speaking = {"elevenlabs": Account(key=KEY, voice="ava", model="eleven_v4")}
    assert [deal.model for deal in deals(settings(**speaking), TODAY)] == ["eleven_v4"]
    chosen = settings({"transcription_provider": "elevenlabs"}, **speaking)
    assert [deal.model for deal in deals(chosen, TODAY)] == ["eleven_v4", "scribe_v2"]


@pytest.mark.parametrize(
    ("facts", "kinds"),
    [
        ({"model": "acme/clips", "usd_per_second": 0.1}, {JobKind.CLIP: "acme/clips"}),
        ({"image_model": "acme/flux", "image_usd": 0.03}, {JobKind.IMAGE: "acme/flux"}),
        (
            {"model": "acme/clips", "usd_per_second": 0.1, "image_model": "acme/flux", "image_usd": 0.03},
            {JobKind.CLIP: "acme/clips", JobKind.IMAGE: "acme/flux"},
        ),
    ],
)
@pytest.mark.parametrize("host", ["fal", "replicate"])
def test_a_host_of_models_makes_what_a_model_is_chosen_for(
    host: str, facts: dict[str, Any], kinds: dict[JobKind, str]
) -> None:
    found = deals(settings(**{host: Account(key=KEY, **facts)}), TODAY)
    assert {deal.kind: deal.model for deal in found} == kinds


def test_a_host_that_is_the_usual_one_needs_its_model_and_price() -> None:
    clips = {"model": "acme/clips", "usd_per_second": 0.1}
    drawing = {"image_provider": "fal"}
    assert refusal(drawing, fal=Account(key=KEY, **clips)).startswith("SCENELOOM_FAL_IMAGE_MODEL: ")
    assert refusal(drawing, fal=Account(key=KEY, **clips, image_model="a/b")).startswith(
        "SCENELOOM_FAL_IMAGE_USD: "
    )
    assert refusal(fal=Account(key=KEY)).startswith("SCENELOOM_FAL_MODEL: ")
