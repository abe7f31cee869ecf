from typing import Any

import pytest
from pydantic import SecretStr

from sceneloom.accounts import Account
from sceneloom.operations.examination import Finding, Verdict
from sceneloom.operations.setting_checks import missing, packages, providers, settings_check
from sceneloom.settings import Settings


def settings(**changes: Any) -> Settings:
    return Settings(_env_file=None, **changes)


def faults(findings: list[Finding]) -> list[str]:
    return [finding.found for finding in findings if finding.verdict is Verdict.FAULT]


async def test_the_packages_of_this_very_environment_are_fine() -> None:
    (finding,) = await packages(settings())
    assert finding.verdict is Verdict.OK


def test_a_package_that_lacks_or_is_too_old_is_named() -> None:
    wrong = missing(["pydantic>=2", "pydantic>=99.1", "no-such-thing>=1", "tzdata; sys_platform == 'win32'"])
    assert [each.split(" is ")[0] for each in wrong] == ["the package pydantic", "the package no-such-thing"]
    assert "99.1 or newer is needed" in wrong[0]


async def test_without_keys_all_is_local() -> None:
    (finding,) = await providers(settings())
    assert (finding.verdict, "no key is set" in finding.found) == (Verdict.OK, True)


async def test_set_keys_are_named_but_never_shown() -> None:
    (finding,) = await providers(
        settings(accounts={"ark": {"key": "geheim-1"}, "openai": {"key": "geheim-2"}})
    )
    assert finding.verdict is Verdict.OK
    assert "ark, openai" in finding.found
    assert "geheim" not in finding.found


async def test_every_half_set_provider_is_named() -> None:
    found = await providers(
        settings(accounts={"fal": {"key": "k"}, "ark": {"key": "bad\nkey"}, "openai": {"key": "k"}})
    )
    assert [each.split(" ")[0] for each in sorted(faults(found))] == ["ark", "fal"]
    assert "SCENELOOM_FAL_MODEL" in str(faults(found))


async def test_an_account_without_its_key_is_a_warning() -> None:
    (finding,) = await providers(settings(accounts={"luma": {"model": "x"}}))
    assert finding.verdict is Verdict.WARNING
    assert finding.found.endswith("though SCENELOOM_LUMA_MODEL is set: set SCENELOOM_LUMA_KEY")


async def test_a_model_that_is_not_served_any_more_is_to_be_corrected() -> None:
    (finding,) = await providers(settings(accounts={"openai": {"key": "k", "image_model": "dall-e-3"}}))
    assert finding.verdict is Verdict.FAULT
    assert finding.found.startswith("openai cannot work as it is set up: SCENELOOM_OPENAI_IMAGE_MODEL: ")
    assert finding.advice == "correct that, or unset SCENELOOM_OPENAI_KEY"


async def test_every_choice_of_a_provider_that_is_not_there_is_named() -> None:
    found = await providers(settings(clip_provider="ark", image_provider="openia", clip_fallback="fal"))
    assert faults(found) == [
        (
            "SCENELOOM_IMAGE_PROVIDER: there is no provider openia; did you mean openai? "
            "Set SCENELOOM_OPENAI_KEY, too"
        ),
        "SCENELOOM_CLIP_PROVIDER: ark is not set up: set SCENELOOM_ARK_KEY",
        "SCENELOOM_CLIP_FALLBACK: fal is not set up: set SCENELOOM_FAL_KEY",
    ]
    assert "motion" in found[2].advice


async def test_a_half_set_provider_hides_no_other_fault() -> None:
    chosen = {"clip_provider": "fal", "image_provider": "openia", "transcription_provider": "nobody"}
    found = await providers(settings(**chosen, accounts={"fal": {"key": "k"}}))
    assert [each.split(":")[0].split(" ")[0] for each in faults(found)] == [
        "fal",
        "SCENELOOM_TRANSCRIPTION_PROVIDER",
        "SCENELOOM_IMAGE_PROVIDER",
    ]


async def test_an_account_is_not_blamed_for_another_that_times_words() -> None:
    keys = {"ark": {"key": "k-1"}, "elevenlabs": {"key": "k-2"}}
    (finding,) = await providers(settings(transcription_provider="elevenlabs", accounts=keys))
    assert finding.verdict is Verdict.OK


@pytest.mark.parametrize(
    ("name", "said"),
    [("nobody", "there is no provider nobody"), ("whisper", "set SCENELOOM_WHISPER_MODEL")],
)
async def test_who_shall_time_words_and_is_not_there_is_named(name: str, said: str) -> None:
    (finding,) = await providers(settings(transcription_provider=name))
    assert faults([finding]) == [finding.found]
    assert finding.found.startswith("SCENELOOM_TRANSCRIPTION_PROVIDER: ")
    assert said in finding.found


async def test_a_model_of_this_machine_that_is_not_there_is_named() -> None:
    here = {"whisper": {"model": "/nowhere"}}
    (finding,) = await providers(settings(transcription_provider="whisper", accounts=here))
    assert faults([finding]) == [finding.found]
    assert finding.found.startswith("SCENELOOM_WHISPER_MODEL: ")


async def test_a_provider_is_looked_at_without_making_the_asset_folder(tmp_path: Any) -> None:
    await providers(settings(data_folder=tmp_path / "data"))
    assert not (tmp_path / "data").exists()


async def test_only_accounts_count_as_keys_that_are_set() -> None:
    account = Account(key=SecretStr("k"))
    chosen = settings(
        credits="http", credits_url="https://ledger.example", credits_key="k", accounts={"ark": account}
    )
    (finding,) = await providers(chosen)
    assert "keys are set for ark;" in finding.found


@pytest.mark.parametrize("wrong", [[], ["SCENELOOM_PARTITIONS: x is not a whole number"]])
def test_settings_that_could_not_be_read_are_faults(wrong: list[str]) -> None:
    assert faults(settings_check(wrong)) == wrong
